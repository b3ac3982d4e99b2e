import { type InvoiceItem, priceItem, totalsOf } from '../domain/invoices.ts';
import type { PrintedInvoice } from '../invoice-pdf.ts';

/** Two pieces. */
export function item(description: string, taxRate = 150_000n): InvoiceItem {
  return { description, unitAmount: 24_167n, quantity: 2n, taxRate };
}

/** A tax invoice of these. */
export function invoiceOf(items: readonly InvoiceItem[], change: Partial<PrintedInvoice> = {}): PrintedInvoice {
  const lines = items.map((each) => priceItem(each, 'exclusive'));
  return {
    title: 'Tax Invoice',
    number: 'INV-000123',
    issuedAt: Temporal.Instant.from('2026-11-26T23:00:00Z'),
    issuedOn: Temporal.PlainDate.from('2026-11-27'),
    dueOn: Temporal.PlainDate.from('2026-12-04'),
    supplier: { name: 'Kettle (Pty) Ltd', address: ['1 Long Street', 'Cape Town'], vatNumber: '4123456789' },
    recipient: { name: 'Łukasz Ελένη Дмитрий', address: ['5 Short Road'] },
    currency: 'ZAR',
    lines,
    totals: totalsOf(lines),
    ...change,
  };
}
