import { expect, test } from 'vitest';
import { formatTimeout, parseTimeout } from './timeout.ts';

test.each([
  ['1H', 3_600_000],
  ['2M', 120_000],
  ['3S', 3000],
  ['250m', 250],
  ['500u', 0.5],
  ['99999999n', 99.999999],
  ['0m', 0],
])('%s is %d ms', (text, ms) => {
  expect(parseTimeout(text)).toBeCloseTo(ms, 9);
});

test.each(['', '1', 'm', '123456789m', '-1S', '1.5S', '1s', ' 1S', '1S, 1S'])('%j is no timeout', (text) => {
  expect(parseTimeout(text)).toBeUndefined();
});

test.each([
  [0.0001, '1u'],
  [0.25, '250u'],
  [1000, '1000000u'],
  [99_999.999, '99999999u'],
  [100_000, '100000m'],
  [99_999_999, '99999999m'],
  [100_000_000, '100000S'],
  [99_999_999_000 + 1000, '1666666M'],
  [99_999_999 * 3_600_000, '99999999H'],
])('%d ms are written as %s', (ms, text) => {
  expect(formatTimeout(ms)).toBe(text);
});

test('what is passed on is never longer than what was left', () => {
  for (let ms = 0.01; ms < 1e12; ms *= 1.37) {
    const passedOn = parseTimeout(formatTimeout(ms));
    expect(passedOn).toBeLessThanOrEqual(ms * (1 + 1e-12));
    expect(passedOn).toBeGreaterThan(ms * 0.9);
  }
});
