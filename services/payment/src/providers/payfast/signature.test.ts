import { expect, test } from 'vitest';
import { formSignature } from './form.ts';
import { apiSignature, encodeFields, type Field, phpUrlEncode, signatureOfEncoded } from './signature.ts';

// Vectors: made with payfast-php-sdk 1.1.6 and payfast-common 1.4.1 under PHP 8.2, which agree but
// where a test says otherwise. PASSPHRASE is that of PayFast's own examples.
const PASSPHRASE = 'jt7NOE43FZPn';

const form: Field[] = [
  ['merchant_id', '10000100'],
  ['merchant_key', '46f0cd694581a'],
  ['return_url', 'https://shop.example.co.za/pay/return?o=1'],
  ['cancel_url', 'https://shop.example.co.za/pay/cancel'],
  ['notify_url', 'https://shop.example.co.za/hooks/payfast'],
  ['name_first', 'Thandi'],
  ['name_last', "O'Brien & Söhne"],
  ['email_address', 'thandi+test@example.co.za'],
  ['m_payment_id', 'INV-2026-000123'],
  ['amount', '149.50'],
  ['item_name', 'Order #123 (2 items)'],
  ['item_description', ''],
  ['custom_str1', 'tenant~a/b'],
];

const subscription: Field[] = [
  ['merchant_id', '10000100'],
  ['merchant_key', '46f0cd694581a'],
  ['notify_url', 'https://shop.example.co.za/hooks/payfast'],
  ['m_payment_id', 'SUB-7'],
  ['amount', '99.00'],
  ['item_name', 'Pro plan'],
  ['subscription_type', '1'],
  ['billing_date', '2026-12-01'],
  ['recurring_amount', '99.00'],
  ['frequency', '3'],
  ['cycles', '0'],
];

test('text is encoded as PHP does', () => {
  expect(phpUrlEncode("aZ09-_. !'()*~+/é😀")).toBe('aZ09-_.+%21%27%28%29%2A%7E%2B%2F%C3%A9%F0%9F%98%80');
});

test('half of a surrogate pair does not throw', () => {
  expect(phpUrlEncode('\ud83d')).toBe('%EF%BF%BD');
});

test('a form is signed as both libraries of PayFast do', () => {
  expect(formSignature(form, PASSPHRASE)).toBe('a6b771a39df7e7a603038c2907f985ed');
});

test('a field with blanks around it is signed as it is posted, without', () => {
  const blank = form.map(([name, value]) => [name, ` ${value} `] as const);
  expect(formSignature(blank, PASSPHRASE)).toBe('a6b771a39df7e7a603038c2907f985ed');
});

test('a passphrase of special characters is encoded once, as payfast-common does', () => {
  expect(formSignature(form, 'a b/c+d')).toBe('f8ddbea1b282a667edb639121ab6b3a2');
});

test('a field of 0 is signed, as payfast-common does', () => {
  expect(formSignature(subscription, PASSPHRASE)).toBe('6a2c3b5abb4d36e050a1bdb04fc35ea5');
});

test.each(form.filter(([, value]) => value !== ''))('another %s has another signature', (name) => {
  const changed = form.map(([field, value]) => [field, field === name ? `${value}1` : value] as const);
  expect(formSignature(changed, PASSPHRASE)).not.toBe('a6b771a39df7e7a603038c2907f985ed');
});

const headers: Field[] = [
  ['version', 'v1'],
  ['merchant-id', '10000100'],
  ['timestamp', '2026-11-20T12:00:01+02:00'],
];

test('a call without a body is signed over its headers, sorted', () => {
  expect(apiSignature(headers, PASSPHRASE)).toBe('cc023b15122e2600f54c65ff1a4f2641');
});

test('a call with a body is signed over both, sorted together', () => {
  const body: Field[] = [
    ['run_date', '2027-01-01'],
    ['frequency', '3'],
    ['amount', '12900'],
    ['cycles', ''],
  ];
  expect(apiSignature([...headers, ...body], PASSPHRASE)).toBe('b1e56c9db132e2e1429864eb6f7b1943');
});

test('the encoded text is what PayFast confirms', () => {
  const itn = encodeFields([
    ['item_name', 'Order #123 (2 items)'],
    ['item_description', ''],
  ]);
  expect(itn).toBe('item_name=Order+%23123+%282+items%29&item_description=');
  expect(signatureOfEncoded(itn, PASSPHRASE)).toMatch(/^[0-9a-f]{32}$/);
});
