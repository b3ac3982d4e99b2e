import { expect, test } from 'vitest';
import { fromStripeAmount, rejectionsOf, toStripeAmount } from './amounts.ts';

// Case A13: what the provider gets, digit by digit.
test.each([
  [14_950n, 'ZAR', 14_950],
  [9899n, 'JPY', 9899],
  [35_200n, 'KWD', 35_200],
  [35n, 'UGX', 3500],
  [35n, 'ISK', 3500],
  [3500n, 'MGA', 35],
  [99_999_999n, 'USD', 99_999_999],
])('%i minor units of %s are %i at Stripe, and back', (amount, currency, stripeAmount) => {
  expect(rejectionsOf({ amount, currency })).toEqual([]);
  expect(toStripeAmount({ amount, currency })).toBe(stripeAmount);
  expect(fromStripeAmount(stripeAmount, currency.toLowerCase())).toEqual({ amount, currency });
});

test.each([
  [35_201n, 'KWD', 10n],
  [3501n, 'MGA', 100n],
])('%i minor units of %s are refused: only multiples of %i', (amount, currency, multipleOf) => {
  expect(rejectionsOf({ amount, currency })).toEqual([{ code: 'AMOUNT_NOT_SUPPORTED', multipleOf }]);
  expect(() => toStripeAmount({ amount, currency })).toThrow(RangeError);
});

test.each(['ZZZ', 'zar', 'IQD', 'CLF', ''])('%s is no currency of Stripe', (currency) => {
  expect(rejectionsOf({ amount: 1000n, currency })).toMatchObject([{ code: 'CURRENCY_NOT_SUPPORTED' }]);
  expect(fromStripeAmount(1000, currency)?.currency).toBe(currency === 'zar' ? 'ZAR' : undefined);
});

test('a fraction of a minor unit is no money', () => {
  expect(fromStripeAmount(3550, 'ugx')).toBeUndefined();
});
