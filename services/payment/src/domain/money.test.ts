import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  allocate,
  divideRounded,
  formatDecimal,
  isChargeable,
  isCurrency,
  LARGEST_AMOUNT,
  minorUnitDigits,
  parseDecimal,
  total,
} from './money.ts';

const amount = fc.bigInt({ min: -LARGEST_AMOUNT, max: LARGEST_AMOUNT });
const currency = fc.constantFrom('ZAR', 'JPY', 'KWD', 'UGX', 'CLF');

test.each([
  ['ZAR', 2],
  ['USD', 2],
  ['JPY', 0],
  ['UGX', 0],
  ['CLP', 0],
  ['KWD', 3],
  ['BHD', 3],
  // CLDR, and so Intl, says 0 of both.
  ['IQD', 3],
  ['LBP', 2],
])('%s has %i decimal digits', (code, digits) => {
  expect(minorUnitDigits(code)).toBe(digits);
});

test.each(['zar', 'ZZZ', 'XXX', 'XTS', 'XAU', '', 'ZAR ', '__proto__'])('%j is no currency to pay with', (code) => {
  expect(isCurrency(code)).toBe(false);
  expect(() => minorUnitDigits(code)).toThrow(RangeError);
});

test('a payment is of 1 to 10^12 minor units', () => {
  expect([0n, -1n, LARGEST_AMOUNT + 1n].map(isChargeable)).toEqual([false, false, false]);
  expect([1n, LARGEST_AMOUNT].map(isChargeable)).toEqual([true, true]);
});

describe('decimals', () => {
  // 9,899 yen were charged as 989,900, and 35.200 dinars as 3.520 (woocommerce-gateway-stripe#435, #2720).
  test.each([
    ['149.50', 'ZAR', 14950n],
    ['-5.75', 'ZAR', -575n],
    ['9899', 'JPY', 9899n],
    ['35.200', 'KWD', 35200n],
    ['0.05', 'ZAR', 5n],
    ['0.00', 'ZAR', 0n],
    ['1000000000000.00', 'ZAR', 100_000_000_000_000n],
  ])('%s of %s are exact both ways', (text, code, units) => {
    expect(parseDecimal(text, code)).toBe(units);
    expect(formatDecimal(units, code)).toBe(text);
  });

  test.each([
    ['149.5', 14950n],
    ['149', 14900n],
    ['149.500', 14950n],
    ['007.00', 700n],
  ])('%s is read although we write it otherwise', (text, units) => {
    expect(parseDecimal(text, 'ZAR')).toBe(units);
  });

  test.each(['', '.5', '5.', '1,50', '1 000.00', '1e3', '+1.00', '--1', '0x10', '149.505', 'NaN', '1.00\n', '१.००'])(
    '%j is no amount of rand',
    (text) => {
      expect(parseDecimal(text, 'ZAR')).toBeUndefined();
    },
  );

  test('yen have no fraction but zeros', () => {
    expect(parseDecimal('9899.00', 'JPY')).toBe(9899n);
    expect(parseDecimal('9899.50', 'JPY')).toBeUndefined();
  });

  test('what is written is read as the same amount, in every currency', () => {
    fc.assert(
      fc.property(amount, currency, (units, code) => {
        expect(parseDecimal(formatDecimal(units, code), code)).toBe(units);
      }),
    );
  });
});

describe('rounding', () => {
  test.each([
    [5n, 2n, 3n],
    [-5n, 2n, -3n],
    [4n, 3n, 1n],
    [-4n, 3n, -1n],
    [0n, 7n, 0n],
    // Tax in an inclusive price: 15/115 of R149.50 and of R99.99.
    [14950n * 15n, 115n, 1950n],
    [9999n * 15n, 115n, 1304n],
  ])('%i/%i is %i', (dividend, divisor, rounded) => {
    expect(divideRounded(dividend, divisor)).toBe(rounded);
  });

  test('is off by half a unit at most, and the same for both signs', () => {
    fc.assert(
      fc.property(amount, fc.bigInt({ min: 1n, max: 10n ** 9n }), (dividend, divisor) => {
        const off = 2n * (divideRounded(dividend, divisor) * divisor - dividend);
        expect(off <= divisor && off >= -divisor).toBe(true);
        expect(divideRounded(-dividend, divisor)).toBe(-divideRounded(dividend, divisor));
      }),
    );
  });

  test('needs a positive divisor', () => {
    expect(() => divideRounded(1n, 0n)).toThrow(RangeError);
  });
});

describe('allocation', () => {
  test('gives what is left over to the first parts', () => {
    expect(allocate(10_000n, [1n, 1n, 1n])).toEqual([3334n, 3333n, 3333n]);
    expect(allocate(-10_000n, [1n, 1n, 1n])).toEqual([-3334n, -3333n, -3333n]);
    expect(allocate(5n, [0n, 3n, 7n])).toEqual([0n, 2n, 3n]);
  });

  test('loses nothing, and no part is off by a unit or more', () => {
    const weights = fc.array(fc.bigInt({ min: 0n, max: 10n ** 9n }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(amount, weights, (units, shares) => {
        fc.pre(shares.some((share) => share > 0n));
        const parts = allocate(units, shares);
        expect(total(parts)).toBe(units);
        const sum = total(shares);
        for (const [index, share] of shares.entries()) {
          const off = (parts[index] ?? 0n) * sum - units * share;
          expect(off < sum && off > -sum).toBe(true);
          expect(share > 0n || parts[index] === 0n).toBe(true);
        }
      }),
    );
  });

  test('needs weights', () => {
    expect(() => allocate(1n, [])).toThrow(RangeError);
    expect(() => allocate(1n, [0n])).toThrow(RangeError);
    expect(() => allocate(1n, [2n, -1n])).toThrow(RangeError);
  });
});
