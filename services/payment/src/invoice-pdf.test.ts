import { spawnSync } from 'node:child_process';
import { describe, expect, test } from 'vitest';
import { type InvoiceItem, priceItem, totalsOf } from './domain/invoices.ts';
import { type PrintedInvoice, renderInvoice } from './invoice-pdf.ts';

function item(description: string, taxRate = 150_000n): InvoiceItem {
  return { description, unitAmount: 24_167n, quantity: 2n, taxRate };
}

function invoiceOf(items: readonly InvoiceItem[], change: Partial<PrintedInvoice> = {}): PrintedInvoice {
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

/** The objects of a PDF. Streams in it are compressed, dictionaries are not. */
async function objectsOf(invoice: PrintedInvoice): Promise<string> {
  return Buffer.from(await renderInvoice(invoice)).toString('latin1');
}

test('the same invoice is the same bytes, and another one is not', async () => {
  const invoice = invoiceOf([item('Tea')]);
  const bytes = await renderInvoice(invoice);
  expect(await renderInvoice(invoice)).toEqual(bytes);
  expect(await renderInvoice({ ...invoice, dueOn: undefined })).not.toEqual(bytes);
});

test('it is tagged, has its fonts in it and no others', async () => {
  const objects = await objectsOf(invoiceOf([item('Tea')]));
  expect(objects).toContain('/Marked true');
  expect(objects).toContain('/Lang (en)');
  expect(objects.match(/\/FontFile2/g)).toHaveLength(2);
  expect(objects).not.toContain('Helvetica');
});

test('lines that do not fit go on to the next pages', async () => {
  const objects = await objectsOf(invoiceOf(Array.from({ length: 100 }, (_, index) => item(`Tea ${index}`))));
  expect(objects.match(/\/Type \/Page\b/g)?.length).toBeGreaterThan(2);
});

test('markup in texts of customers does not get into the XML of the file', async () => {
  const hostile = '</rdf:li><x>&';
  const objects = await objectsOf(
    invoiceOf([item(hostile)], { number: hostile, supplier: { name: hostile, address: [hostile] } }),
  );
  expect(objects).toContain('<rdf:li xml:lang="x-default">Tax Invoice /rdflix</rdf:li>');
  expect(objects).not.toContain('<x>');
});

// Poppler's, where it is installed.
const canReadPdf = spawnSync('pdftotext', ['-v']).error === undefined;

async function textOf(invoice: PrintedInvoice): Promise<readonly string[]> {
  const { stdout } = spawnSync('pdftotext', ['-layout', '-', '-'], { input: await renderInvoice(invoice) });
  return stdout
    .toString()
    .split('\n')
    .map((line) => line.trim().replaceAll(/\s+/g, ' '));
}

describe.skipIf(!canReadPdf)('its text, by pdftotext,', () => {
  test('has the words, parties, lines and totals of a South African tax invoice', async () => {
    const text = await textOf(invoiceOf([item('Rooibos'), item('Book', 0n)]));
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
    const text = await textOf(
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
