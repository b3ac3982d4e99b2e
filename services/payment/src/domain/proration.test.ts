import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { billingPeriod } from './calendar.ts';
import { amountForRest } from './proration.ts';

const anchor = Temporal.PlainDate.from('2026-01-31');
const schedule = { anchor, interval: { unit: 'month', count: 1 }, timeZone: 'Africa/Johannesburg' } as const;
// 28 days.
const january = billingPeriod(schedule, 0);

test.each([
  ['2026-01-31', 2800n],
  ['2026-02-14', 1400n],
  ['2026-02-27', 100n],
  ['2026-02-28', 0n],
  ['2026-01-01', 2800n],
  ['2027-01-01', 0n],
])('of R28.00 for 28 days, from %s on there are %i cents left', (from, left) => {
  expect(amountForRest(2800n, january, Temporal.PlainDate.from(from))).toBe(left);
});

test('the rest never grows from day to day, and is within the amount', () => {
  const days = fc.tuple(fc.nat(40), fc.nat(40));
  fc.assert(
    fc.property(fc.bigInt({ min: 0n, max: 10n ** 12n }), fc.nat(60), days, (amount, index, [day, later]) => {
      const period = billingPeriod(schedule, index);
      const from = period.start.add({ days: day });
      const first = amountForRest(amount, period, from);
      const second = amountForRest(amount, period, from.add({ days: later }));
      expect(second <= first && first <= amount && second >= 0n).toBe(true);
    }),
  );
});
