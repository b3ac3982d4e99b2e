import { describe, expect, test } from 'vitest';
import { priceItem, totalsOf } from './invoices.ts';
import { invoiceTitle, missingOnTaxInvoice } from './tax-invoice.ts';

const supplier = { name: 'Kettle (Pty) Ltd', address: ['1 Long Street', 'Cape Town'], vatNumber: '4123456789' };
const nobody = { name: '', address: [] };

function invoiceOf(gross: bigint, change: Partial<Parameters<typeof missingOnTaxInvoice>[0]> = {}) {
  const line = priceItem({ description: 'Tea', unitAmount: gross, quantity: 1n, taxRate: 150_000n }, 'inclusive');
  return { supplierCountry: 'ZA', supplier, recipient: nobody, currency: 'ZAR', totals: totalsOf([line]), ...change };
}

test('only a South African supplier with a VAT number issues a tax invoice', () => {
  expect(invoiceTitle({ supplierCountry: 'ZA', supplier })).toBe('Tax Invoice');
  expect(invoiceTitle({ supplierCountry: 'KE', supplier })).toBe('Invoice');
  expect(invoiceTitle({ supplierCountry: 'ZA', supplier: { ...supplier, vatNumber: undefined } })).toBe('Invoice');
});

describe('a tax invoice', () => {
  test('of R5 000 needs no recipient, and of a cent more needs one', () => {
    expect(missingOnTaxInvoice(invoiceOf(500_000n))).toEqual([]);
    expect(missingOnTaxInvoice(invoiceOf(500_001n))).toEqual(['recipient.name', 'recipient.address']);
  });

  test('of another currency needs the recipient whatever its total', () => {
    expect(missingOnTaxInvoice(invoiceOf(1n, { currency: 'USD' }))).toEqual(['recipient.name', 'recipient.address']);
  });

  test('names its supplier with a VAT number of South Africa', () => {
    const stranger = { name: ' ', address: [' '], vatNumber: '123' };
    expect(missingOnTaxInvoice(invoiceOf(1n, { supplier: stranger }))).toEqual([
      'supplier.name',
      'supplier.address',
      'supplier.vatNumber',
    ]);
  });
});

test('an invoice that is no tax invoice lacks nothing', () => {
  expect(missingOnTaxInvoice(invoiceOf(500_001n, { supplierCountry: 'KE' }))).toEqual([]);
});
