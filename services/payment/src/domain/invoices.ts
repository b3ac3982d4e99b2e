import { divideRounded, LARGEST_AMOUNT, total } from './money.ts';

// Tax is computed for each line and rounded half away from zero; totals are sums of lines. Nothing else rounds.

/** A tax rate of one is 100 %: 150000n is 15 %, 99750n is 9.975 %. */
const WHOLE_RATE = 1_000_000n;

export interface InvoiceItem {
  readonly description: string;
  /** Of one piece, in minor units; negative for a discount or a credit. */
  readonly unitAmount: bigint;
  /** 1 or more. */
  readonly quantity: bigint;
  /** In millionths: 150000n is 15 %. */
  readonly taxRate: bigint;
}

/** Amounts in minor units. */
export interface TaxedAmount {
  /** Without tax. */
  readonly net: bigint;
  readonly tax: bigint;
  /** What is to be paid: net and tax. */
  readonly gross: bigint;
}

export interface InvoiceLine extends InvoiceItem, TaxedAmount {}

export interface InvoiceTotals extends TaxedAmount {
  /** What each rate adds, the highest rate first. */
  readonly byRate: readonly (TaxedAmount & { readonly taxRate: bigint })[];
}

/** Whether the amounts of items have tax in them, or get it on top. */
export type TaxBehavior = 'inclusive' | 'exclusive';

/**
 * Reads a tax rate of per cent, such as `15` or `9.975`, into millionths.
 *
 * @returns undefined for what is no number of 0 to 100 with at most four decimals.
 */
export function parseTaxRate(percent: string): bigint | undefined {
  const [, whole, fraction = ''] = /^(\d{1,3})(?:\.(\d{1,4}))?$/.exec(percent) ?? [];
  if (whole === undefined) return undefined;
  const rate = BigInt(whole + fraction.padEnd(4, '0'));
  return rate <= WHOLE_RATE ? rate : undefined;
}

/** A tax rate of millionths in per cent, without zeros at its end: `15`, `9.975`. */
export function formatTaxRate(taxRate: bigint): string {
  const text = taxRate.toString().padStart(5, '0');
  const fraction = text.slice(-4).replace(/0+$/, '');
  return fraction === '' ? text.slice(0, -4) : `${text.slice(0, -4)}.${fraction}`;
}

/** The line of an invoice that an item makes, with its tax. */
export function priceItem(item: InvoiceItem, behavior: TaxBehavior): InvoiceLine {
  const amount = item.unitAmount * item.quantity;
  if (behavior === 'exclusive') {
    const tax = divideRounded(amount * item.taxRate, WHOLE_RATE);
    return { ...item, net: amount, tax, gross: amount + tax };
  }
  const tax = divideRounded(amount * item.taxRate, WHOLE_RATE + item.taxRate);
  return { ...item, net: amount - tax, tax, gross: amount };
}

/** What the lines of an invoice, or of a credit note, come to. */
export function totalsOf(lines: readonly (TaxedAmount & { readonly taxRate: bigint })[]): InvoiceTotals {
  const rates = [...new Set(lines.map(({ taxRate }) => taxRate))].sort((one, other) => (one < other ? 1 : -1));
  return {
    ...sumOf(lines),
    byRate: rates.map((taxRate) => ({ taxRate, ...sumOf(lines.filter((line) => line.taxRate === taxRate)) })),
  };
}

/** Whether an invoice, or a period of a plan, may be of this total: nothing is to be paid, or what may be charged. */
export function isInvoiceable({ gross }: Pick<TaxedAmount, 'gross'>): boolean {
  return gross >= 0n && gross <= LARGEST_AMOUNT;
}

function sumOf(amounts: readonly TaxedAmount[]): TaxedAmount {
  return {
    net: total(amounts.map(({ net }) => net)),
    tax: total(amounts.map(({ tax }) => tax)),
    gross: total(amounts.map(({ gross }) => gross)),
  };
}
