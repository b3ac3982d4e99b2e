import { type PrintedInvoice, renderInvoice } from '@rollcall/payment/invoice-pdf.ts';
import { invoiceOf, item } from '@rollcall/payment/testing/printed-invoice.ts';
import { describe, expect, test } from 'vitest';
import { canNotRead, textOf } from './pdf-text.ts';

async function linesOf(invoice: PrintedInvoice): Promise<readonly string[]> {
  const text = textOf(Buffer.from(await renderInvoice(invoice)));
  return text.split('\n').map((line) => line.trim().replaceAll(/\s+/g, ' '));
}

describe.skipIf(canNotRead)('the text of an invoice, by pdftotext,', () => {
  test('has the words, parties, lines and totals of a South African tax invoice', async () => {
    const text = await linesOf(invoiceOf([item('Rooibos'), item('Book', 0n)]));
    expect(text).toEqual(
      expect.arrayContaining([
        'Tax Invoice',
        'Number: INV-000123',
        'Date: 2026-11-27',
        'Due: 2026-12-04',
        'Kettle (Pty) Ltd Łukasz Ελένη Дмитрий',
        'VAT number: 4123456789',
        'Description Quantity Unit price VAT % Excl. VAT VAT Total',
        'Rooibos 2 241.67 15 483.34 72.50 555.84',
        'Book 2 241.67 0 483.34 0.00 483.34',
        'Total excl. VAT 966.68',
        'VAT 15 % of 483.34 72.50',
        'Total ZAR 1039.18',
        'Page 1 of 1',
      ]),
    );
  });

  test('of a credit note names the invoice, in a currency without decimals', async () => {
    const text = await linesOf(
      invoiceOf([item('Tea')], { title: 'Credit Note', number: 'CN-1', correctsNumber: 'INV-1', currency: 'JPY' }),
    );
    expect(text).toEqual(
      expect.arrayContaining([
        'Credit Note',
        'Credit for invoice: INV-1',
        'Tea 2 24167 15 48334 7250 55584',
        'Total JPY 55584',
      ]),
    );
  });
});
