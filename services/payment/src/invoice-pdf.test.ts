import { expect, test } from 'vitest';
import { type PrintedInvoice, renderInvoice } from './invoice-pdf.ts';
import { invoiceOf, item } from './testing/printed-invoice.ts';

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
