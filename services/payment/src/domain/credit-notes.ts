import type { InvoiceLine, TaxedAmount } from './invoices.ts';
import { divideRounded, total } from './money.ts';

/** Part of a line of a finalised invoice that is taken back. */
export interface CreditItem {
  /** Of the invoice, from 0. */
  readonly lineIndex: number;
  /** With tax, in minor units; positive. All that is left of the line where undefined, also of a discount. */
  readonly gross?: bigint | undefined;
}

/** Positive is what the customer gets back; a discount that is taken back with it is negative. */
interface CreditLine extends TaxedAmount {
  readonly lineIndex: number;
  readonly description: string;
  readonly taxRate: bigint;
}

export interface Credit {
  /** None where it cannot be. */
  readonly lines: readonly CreditLine[];
  /** Why it cannot be; empty: it can. */
  readonly excesses: readonly Excess[];
}

/** More than what is left of a line, or of one that there is not; of the whole where both are undefined. */
export interface Excess {
  /** Of the items, from 0. */
  readonly item: number | undefined;
  readonly lineIndex: number | undefined;
  readonly left: bigint;
}

interface CreditableInvoice {
  readonly lines: readonly InvoiceLine[];
  /** Of credit notes before: gross by index of the line. */
  readonly credited: ReadonlyMap<number, bigint>;
}

/**
 * The lines of a credit note. Tax is that of the whole that is credited by now, less that of credit
 * notes before. So the last credit of a line takes exactly the tax that is left of it.
 *
 * @throws RangeError for an amount that is not positive, or a line that is said twice.
 */
export function creditLines({ lines, credited }: CreditableInvoice, items: readonly CreditItem[]): Credit {
  if (new Set(items.map(({ lineIndex }) => lineIndex)).size < items.length)
    throw new RangeError('a line is said twice');
  const creditLines: CreditLine[] = [];
  const excesses: Excess[] = [];
  for (const [item, { lineIndex, gross }] of items.entries()) {
    if (gross !== undefined && gross <= 0n) throw new RangeError('a credit must be positive');
    const line = lines[lineIndex];
    const before = credited.get(lineIndex) ?? 0n;
    const left = line === undefined ? 0n : line.gross - before;
    const wanted = gross ?? left;
    const isThere = gross === undefined ? left !== 0n : gross <= left;
    if (line === undefined || !isThere) {
      excesses.push({ item, lineIndex, left: left > 0n ? left : 0n });
      continue;
    }
    const tax = taxIn(line, before + wanted) - taxIn(line, before);
    creditLines.push({
      lineIndex,
      description: line.description,
      taxRate: line.taxRate,
      net: wanted - tax,
      tax,
      gross: wanted,
    });
  }
  const given = total(creditLines.map((line) => line.gross));
  const left = total(lines.map((line) => line.gross)) - total([...credited.values()]);
  // Discounts are lines of their own: the others are more than the whole.
  const isWhole = excesses.length > 0 || (given > 0n && given <= left);
  const all = isWhole ? excesses : [{ item: undefined, lineIndex: undefined, left }];
  return { lines: all.length === 0 ? creditLines : [], excesses: all };
}

/** The lines of which something is left, discounts too: all of them are what is left of the whole. */
export function restOf({ lines, credited }: CreditableInvoice): readonly CreditItem[] {
  return lines.flatMap(({ gross }, lineIndex) => (gross === (credited.get(lineIndex) ?? 0n) ? [] : [{ lineIndex }]));
}

/** The tax in the first so many minor units of a line. */
function taxIn({ tax, gross }: InvoiceLine, part: bigint): bigint {
  return gross < 0n ? divideRounded(-tax * part, -gross) : divideRounded(tax * part, gross);
}
