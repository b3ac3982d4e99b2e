import { expect, test } from 'vitest';
import { parseSellers } from './sellers.ts';

const kettle = { name: 'Kettle (Pty) Ltd', address: ['1 Long Street'], country: 'ZA', vatNumber: '4123456789' };

test('a subject has the seller that names it, or the one for all others', () => {
  const books = {
    ...kettle,
    name: 'Books',
    subjects: ['books'],
    series: 'BK',
    creditNoteSeries: 'BKC',
    currency: 'EUR',
  };
  const sellerOf = parseSellers(JSON.stringify({ sellers: [kettle, books] }));
  expect(sellerOf('books')).toMatchObject({ party: { name: 'Books' }, series: 'BK', currency: 'EUR' });
  expect(sellerOf('shop')).toMatchObject({ party: { name: kettle.name }, series: 'INV', currency: 'ZAR' });
  expect(parseSellers(JSON.stringify({ sellers: [books] }))('shop')).toBeUndefined();
});

test.each([
  ['no seller', { sellers: [] }, '/sellers'],
  ['a series in small letters', { sellers: [{ ...kettle, series: 'inv' }] }, '/sellers/0/series'],
  ['a line break', { sellers: [{ ...kettle, name: 'a\nb' }] }, '/sellers/0/name'],
  ['what there is not', { sellers: [{ ...kettle, vat: 1 }] }, '/sellers/0'],
  ['gold', { sellers: [{ ...kettle, currency: 'XAU' }] }, 'must be a currency'],
  ['one series for two', { sellers: [kettle, { ...kettle, subjects: ['a'] }] }, 'two series are called INV'],
  ['one series for invoices and credit notes', { sellers: [{ ...kettle, series: 'CN' }] }, 'two series are called CN'],
])('%s is refused', (_what, sellers, message) => {
  expect(() => parseSellers(JSON.stringify(sellers))).toThrow(message);
});
