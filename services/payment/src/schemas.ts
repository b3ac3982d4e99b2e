import { documented } from '@rollcall/platform/http/documented.ts';
import { ONE_LINE, patternInWords } from '@rollcall/platform/http/patterns.ts';
import { type Parsed, parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { CONTROL } from '@rollcall/platform/text-rules.ts';
import { type TSchema, Type } from 'typebox';
import { isTimeZone } from './domain/calendar.ts';
import { formatTaxRate, parseTaxRate } from './domain/invoices.ts';
import { currencies, isCurrency } from './domain/money.ts';

/** In the body of requests; in minor units. */
export const LARGEST = 1_000_000_000_000;

/** One line of text for people: nothing in it acts on a terminal or begins another header of a mail. */
export function line(maxLength: number, description: string) {
  return Type.String({
    minLength: 1,
    maxLength,
    ...patternInWords(
      `^[^${CONTROL}]*[^${CONTROL}\\s][^${CONTROL}]*$`,
      'must be one line that is not blank, without control characters',
    ),
    description,
  });
}

/** An address that communication takes as well. */
export const Email = Type.Refine(
  Type.String({ minLength: 3, maxLength: 254, description: 'One address, without a name' }),
  (text) => 'value' in parseEmailAddress(text),
  (text) => faultOf(parseEmailAddress(text)),
);

/** @param text of {@link Email}. @returns it as it came; a domain that is not in ASCII is put so, as providers take it. */
export function emailOf(text: string): string {
  const parsed = parseEmailAddress(text);
  return 'value' in parsed && parsed.value.toLowerCase() !== text.toLowerCase() ? parsed.value : text;
}

function faultOf(parsed: Parsed<string>): string {
  return 'fault' in parsed ? parsed.fault : 'is not valid';
}

/** The page of the shop, as a link of ours has it. */
export const ReturnUrl = Type.Refine(
  Type.String({
    maxLength: 2048,
    ...patternInWords(`^https?://[^\\s${CONTROL}]+$`, 'must be a URL of https or http, without blanks'),
    description: 'Where the payer may go back to',
  }),
  (url) => URL.canParse(url) && new URL(url).username === '' && new URL(url).password === '',
  () => 'must be a URL of https or http, without credentials',
);

/** Words of the caller. */
export const Metadata = Type.Record(
  Type.String({ pattern: '^[A-Za-z0-9_.-]{1,40}$' }),
  Type.String({ maxLength: 500, ...ONE_LINE }),
  { additionalProperties: false, maxProperties: 20, description: 'Kept, and given back as it came' },
);

export const TimeZone = Type.Refine(
  Type.String({
    maxLength: 64,
    description: "IANA's name, such as Africa/Johannesburg; its days are those of billing",
  }),
  isTimeZone,
  () => "must be IANA's name of a time zone",
);

const LANGUAGE_TAG = 'must be a language tag of BCP 47, such as en-ZA';

export const Locale = Type.Refine(
  Type.String({
    maxLength: 35,
    ...patternInWords('^[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*$', LANGUAGE_TAG),
    description: 'Of mails: BCP 47',
  }),
  isLocale,
  () => LANGUAGE_TAG,
);

export const Currency = Type.Refine(
  Type.String({ description: 'Code of ISO 4217, in capitals', ...documented({ enum: currencies }) }),
  isCurrency,
  () => 'must be a currency of ISO 4217',
);

export const TaxRate = Type.Refine(
  Type.Number({ minimum: 0, maximum: 100, description: 'Per cent, with at most four decimals; 0 when absent' }),
  (rate) => parseTaxRate(String(rate)) !== undefined,
  () => 'must have at most four decimals',
);

export const TaxBehavior = Type.Enum(['inclusive', 'exclusive'], {
  description: 'Whether amounts have tax in them, or get it on top',
});

export const Timestamp = Type.String({ format: 'date-time' });
export const Id = Type.String({ format: 'uuid' });

export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Union([schema, Type.Null()]);
}

/** @param rate of {@link TaxRate}. @returns millionths. */
export function taxRateOf(rate: number): bigint {
  return parseTaxRate(String(rate)) ?? 0n;
}

/** @param taxRate in millionths. @returns per cent. */
export function percentOf(taxRate: bigint): number {
  return Number(formatTaxRate(taxRate));
}

function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length === 1;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}
