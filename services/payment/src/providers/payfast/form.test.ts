import { expect, test } from 'vitest';
import { somePayFastSettings } from '../testing/payfast-settings.ts';
import { someCheckout } from '../testing/requests.ts';
import { checkoutForm, formSignature } from './form.ts';

const settings = somePayFastSettings(new URL('https://www.payfast.co.za'));

test('the form is posted to PayFast, its fields in the order of the documentation', () => {
  const { url, fields } = checkoutForm(settings, someCheckout());
  expect(url).toBe('https://www.payfast.co.za/eng/process');
  expect(fields.map(([name]) => name)).toEqual([
    'merchant_id',
    'merchant_key',
    'return_url',
    'cancel_url',
    'notify_url',
    'email_address',
    'm_payment_id',
    'amount',
    'item_name',
    'signature',
  ]);
  expect(Object.fromEntries(fields)).toMatchObject({ amount: '149.50', item_name: 'Order #123 (2 items)' });
});

test('its signature is that of the other fields', () => {
  const { fields } = checkoutForm(settings, someCheckout());
  expect(fields.at(-1)?.[1]).toBe(formSignature(fields.slice(0, -1), settings.passphrase));
});

test('one that keeps the card asks for a token, whose first amount may be 0', () => {
  const { fields } = checkoutForm(settings, someCheckout({ purpose: 'keep', money: { amount: 0n, currency: 'ZAR' } }));
  expect(Object.fromEntries(fields)).toMatchObject({ subscription_type: '2', amount: '0.00' });
});

test('the page of PayFast is at more hosts than the form goes to', () => {
  const simulated = checkoutForm({ ...settings, siteUrl: new URL('http://127.0.0.1:1') }, someCheckout());
  expect(simulated).not.toHaveProperty('leadsTo');
  const live = checkoutForm({ ...settings, siteUrl: new URL('https://www.payfast.co.za') }, someCheckout());
  expect(live.leadsTo).toEqual(['https://*.payfast.co.za', 'https://*.payfast.io']);
});

test('a name is cut between characters, an address that is too long left out', () => {
  const request = someCheckout({ itemName: '😀'.repeat(101), customerEmail: `${'a'.repeat(95)}@example.com` });
  const fields = Object.fromEntries(checkoutForm(settings, request).fields);
  expect(fields['item_name']).toBe('😀'.repeat(100));
  expect(fields).not.toHaveProperty('email_address');
});

test('the passphrase is not among its fields', () => {
  expect(JSON.stringify(checkoutForm(settings, someCheckout()))).not.toContain(settings.passphrase);
});
