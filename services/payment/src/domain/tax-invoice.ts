import type { InvoiceTotals } from './invoices.ts';

// South African tax invoices: Value-Added Tax Act 89 of 1991, section 20, as third parties explain it.

/** A party of an invoice, as it is printed. */
export interface Party {
  readonly name: string;
  /** Lines of the postal address. */
  readonly address: readonly string[];
  readonly vatNumber?: string | undefined;
}

/** Above this a tax invoice names its recipient: R5 000. */
const FULL_ABOVE = 500_000n;

/** Ten digits, the first of which is 4. */
const SOUTH_AFRICAN_VAT_NUMBER = /^4\d{9}$/;

interface Invoice {
  /** ISO 3166-1 code of the supplier's country. */
  readonly supplierCountry: string;
  readonly supplier: Party;
  readonly recipient: Party;
  readonly currency: string;
  readonly totals: InvoiceTotals;
}

export type InvoiceTitle = 'Tax Invoice' | 'Invoice';

/** The words on top: only a vendor that is registered for VAT in South Africa may say "Tax Invoice". */
export function invoiceTitle({
  supplierCountry,
  supplier,
}: Pick<Invoice, 'supplierCountry' | 'supplier'>): InvoiceTitle {
  return supplierCountry === 'ZA' && supplier.vatNumber !== undefined ? 'Tax Invoice' : 'Invoice';
}

/**
 * What a South African tax invoice lacks, as paths of its fields. An invoice of another kind lacks
 * nothing. Number, date, lines and totals are there by construction.
 */
export function missingOnTaxInvoice(invoice: Invoice): readonly string[] {
  if (invoiceTitle(invoice) === 'Invoice') return [];
  const { supplier, recipient, currency, totals } = invoice;
  // The limit is in rand; other currencies get the full form, which is never wrong.
  const full = currency !== 'ZAR' || totals.gross > FULL_ABOVE;
  return [
    ...missingOf('supplier', supplier),
    ...(SOUTH_AFRICAN_VAT_NUMBER.test(supplier.vatNumber ?? '') ? [] : ['supplier.vatNumber']),
    ...(full ? missingOf('recipient', recipient) : []),
  ];
}

function missingOf(path: string, { name, address }: Party): readonly string[] {
  return [
    ...(name.trim() === '' ? [`${path}.name`] : []),
    ...(address.some((line) => line.trim() !== '') ? [] : [`${path}.address`]),
  ];
}
