import { describe, expect, test } from 'vitest';
import { encodeFields, type Field, formSignatures, signCall, signFields } from './signatures.ts';

// Made with Python's standard library; payfast-php-sdk 1.1.6 and payfast-common 1.4.1 agreed under PHP 8.2, but
// where it says otherwise.
const PASSPHRASE = 'jt7NOE43FZPn';
const FORM: readonly Field[] = [
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
const SUBSCRIPTION: readonly Field[] = [
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
const CALL: readonly Field[] = [
  ['version', 'v1'],
  ['merchant-id', '10000100'],
  ['timestamp', '2026-11-20T12:00:01+02:00'],
];

describe('a form', () => {
  test.each([
    ['without a passphrase', undefined, '237217175ae6df988c37ec04c7d068fd'],
    ['with one', PASSPHRASE, 'a6b771a39df7e7a603038c2907f985ed'],
    // SDK 1.1.6 encodes such a one twice.
    ['with a passphrase of special characters', 'a b/c+d', 'f8ddbea1b282a667edb639121ab6b3a2'],
  ])('is signed as by both libraries, %s', (_name, passphrase, signature) => {
    expect(formSignatures(FORM, passphrase)[0]).toBe(signature);
    expect(formSignatures(FORM.toReversed(), passphrase)[0]).toBe(signature);
  });

  test('is signed as by either library where a value is 0', () => {
    expect(formSignatures(SUBSCRIPTION, PASSPHRASE)).toEqual([
      '6a2c3b5abb4d36e050a1bdb04fc35ea5',
      'ffbbd159844faaa7135b65944fecb66b',
    ]);
  });

  test('has another signature when a value changes', () => {
    const changed = FORM.map(([name, value]): Field => [name, name === 'amount' ? '149.51' : value]);
    expect(formSignatures(changed, PASSPHRASE)).not.toContain('a6b771a39df7e7a603038c2907f985ed');
  });
});

const blank = (name: string): Field => [name, ''];

test('a notification is signed in its order, with its blanks', () => {
  const fields: readonly Field[] = [
    ['m_payment_id', 'INV-2026-000123'],
    ['pf_payment_id', '1089250'],
    ['payment_status', 'COMPLETE'],
    ['item_name', 'Order #123 (2 items)'],
    blank('item_description'),
    ['amount_gross', '149.50'],
    ['amount_fee', '-5.75'],
    ['amount_net', '143.75'],
    ['custom_str1', 'tenant~a/b'],
    ...['custom_str2', 'custom_str3', 'custom_str4', 'custom_str5'].map(blank),
    ...['custom_int1', 'custom_int2', 'custom_int3', 'custom_int4', 'custom_int5'].map(blank),
    ['name_first', 'Thandi'],
    ['name_last', "O'Brien & Söhne"],
    ['email_address', 'thandi+test@example.co.za'],
    ['merchant_id', '10000100'],
  ];
  expect(signFields(fields, PASSPHRASE)).toBe('3ea4821dc4d8413e2df8bced1fc9e12d');
  expect(signFields(fields, undefined)).toBe('f429614e9b8bb368227c8e40c6f45392');
  expect(encodeFields(fields)).toContain('name_last=O%27Brien+%26+S%C3%B6hne&');
});

test('a call is signed by name, the passphrase among the names, without testing', () => {
  expect(signCall(CALL, PASSPHRASE)).toBe('cc023b15122e2600f54c65ff1a4f2641');
  const update: readonly Field[] = [...CALL, ['amount', '12900'], ['frequency', '3'], ['run_date', '2027-01-01']];
  expect(signCall([...update, ['testing', 'true'], ['cycles', '']], PASSPHRASE)).toBe(
    'b1e56c9db132e2e1429864eb6f7b1943',
  );
});
