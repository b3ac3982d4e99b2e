import { expect, test } from 'vitest';
import { quotaStates, usedUpForMs } from './quotas.ts';

const uses = { inHour: 10, inDay: 99, hourEndsInMs: 5000, dayEndsInMs: 80_000 };

test.each([
  [{ perHour: undefined, perDay: undefined }, 0],
  [{ perHour: 11, perDay: 100 }, 0],
  [{ perHour: 10, perDay: 100 }, 5000],
  [{ perHour: 11, perDay: 99 }, 80_000],
  // The settings were others before.
  [{ perHour: 1, perDay: 1 }, 80_000],
  [{ perHour: undefined, perDay: 99 }, 80_000],
])('with a quota of %j it is used up for %i ms', (quota, ms) => {
  expect(usedUpForMs(quotaStates(quota, uses))).toBe(ms);
});
