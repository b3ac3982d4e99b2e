import { expect, test } from 'vitest';
import { createSpamFilter } from './spam-filter.ts';

test('an object may cause 25 Events at once, and then one every five minutes', () => {
  const filter = createSpamFilter();
  const allowed = Array.from({ length: 40 }, () => filter.allow('shop', 0)).filter(Boolean);
  expect(allowed).toHaveLength(25);
  expect(filter.allow('shop', 299_999)).toBe(false);
  expect(filter.allow('shop', 300_001)).toBe(true);
  expect(filter.allow('shop', 300_002)).toBe(false);
  expect(filter.allow('billing', 300_002)).toBe(true);
});
