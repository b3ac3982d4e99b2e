import { expect, test } from 'vitest';
import { createRateMeter } from './message-rate.ts';

test('allows the burst at once and then the rate', () => {
  const meter = createRateMeter({ perSecond: 10, burst: 3 });
  expect([0, 0, 0, 0].map((ms) => meter.admit(ms))).toEqual([true, true, true, false]);
  expect(meter.admit(50)).toBe(false);
  expect(meter.admit(150)).toBe(true);
  expect(meter.admit(150)).toBe(false);
  expect([60_000, 60_000, 60_000, 60_000].map((ms) => meter.admit(ms))).toEqual([true, true, true, false]);
});
