import { readFile } from 'node:fs/promises';
import { CONTROL } from '@rollcall/platform/text-rules.ts';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';
import { isCurrency } from '../domain/money.ts';
import type { FindSeller } from './domain/sellers.ts';

const strict = { additionalProperties: false };
const text = (maxLength: number) => Type.String({ minLength: 1, maxLength, pattern: `^[^${CONTROL}]*$` });
const Series = Type.String({ pattern: '^[A-Z0-9][A-Z0-9/-]{0,15}$' });

const Seller = Type.Object(
  {
    subjects: Type.Optional(Type.Array(text(256), { minItems: 1 })),
    name: text(200),
    address: Type.Array(text(100), { minItems: 1, maxItems: 8 }),
    country: Type.String({ pattern: '^[A-Z]{2}$' }),
    vatNumber: Type.Optional(text(40)),
    currency: Type.Optional(Type.Refine(Type.String(), isCurrency, () => 'must be a currency of ISO 4217')),
    series: Type.Optional(Series),
    creditNoteSeries: Type.Optional(Series),
  },
  strict,
);

const Sellers = Type.Object({ sellers: Type.Array(Seller, { minItems: 1, maxItems: 100 }) }, strict);

/**
 * Reads `sellers`: who issues invoices, and for which subjects; one without subjects issues for all
 * others.
 *
 * @throws Error naming all faults.
 */
export function parseSellers(yaml: string): FindSeller {
  const value: unknown = parse(yaml);
  if (!Value.Check(Sellers, value)) {
    const faults = Value.Errors(Sellers, value).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`);
    throw new Error(`The sellers are not valid:\n  ${faults.join('\n  ')}`);
  }
  const sellers = value.sellers.map(sellerOf);
  const series = sellers.flatMap((seller) => [seller.series, seller.creditNoteSeries]);
  const twice = series.find((each, index) => series.indexOf(each) !== index);
  if (twice !== undefined) throw new Error(`The sellers are not valid:\n  two series are called ${twice}`);
  return (subject) =>
    sellers.find(({ subjects }) => subjects?.includes(subject)) ??
    sellers.find(({ subjects }) => subjects === undefined);
}

/** Of a file. @throws as {@link parseSellers}, or where it cannot be read. */
export async function readSellers(file: string): Promise<FindSeller> {
  return parseSellers(await readFile(file, 'utf8'));
}

function sellerOf({ name, address, vatNumber, ...seller }: Static<typeof Seller>) {
  return {
    currency: 'ZAR',
    series: 'INV',
    creditNoteSeries: 'CN',
    ...seller,
    party: { name, address, vatNumber },
  };
}
