import type { InvoiceLine, TaxedAmount } from './invoices.ts';
import { divideRounded } from './money.ts';

/** Part of a line of a finalised invoice that is taken back. */
export interface CreditItem {
  /** Of the invoice, from 0. */
  readonly lineIndex: number;
  /** With tax, in minor units; positive. All that is left of the line where undefined. */
  readonly gross?: bigint | undefined;
}

/** Amounts are positive: what the customer gets back. */
interface CreditLine extends TaxedAmount {
  readonly lineIndex: number;
  readonly description: string;
  readonly taxRate: bigint;
}

export type Credit =
  | { readonly kind: 'credited'; readonly lines: readonly CreditLine[] }
  /** More than what is left of a line, or of one that there is not. */
  | { readonly kind: 'exceeds'; readonly lineIndex: number; readonly left: bigint };

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
  for (const { lineIndex, gross } of items) {
    if (gross !== undefined && gross <= 0n) throw new RangeError('a credit must be positive');
    const line = lines[lineIndex];
    const before = credited.get(lineIndex) ?? 0n;
    const left = line === undefined ? 0n : line.gross - before;
    const wanted = gross ?? left;
    if (line === undefined || wanted > left || wanted <= 0n)
      return { kind: 'exceeds', lineIndex, left: left > 0n ? left : 0n };
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
  return { kind: 'credited', lines: creditLines };
}

/** The tax in the first so many minor units of a line. */
function taxIn({ tax, gross }: InvoiceLine, part: bigint): bigint {
  return divideRounded(tax * part, gross);
}
