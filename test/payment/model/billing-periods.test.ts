import { expect, test } from 'vitest';
import { billHourly, billingFault, hourlyDates } from './hourly-billing.ts';

const monthly = { unit: 'month', count: 1 } as const;

// A run at 20:00 and one at 23:00 UTC were two days for a customer at UTC+2 (getlago/lago-api#1074).
test.each([
  ['Pacific/Pago_Pago', '2026-01-31', monthly],
  ['Africa/Cairo', '2026-04-24', { unit: 'day', count: 1 }],
  ['America/New_York', '2024-02-29', monthly],
  ['Pacific/Kiritimati', '2026-12-31', { unit: 'week', count: 1 }],
] as const)('in %s a job that runs each hour from %s bills ten years once', (timeZone, anchor, interval) => {
  const schedule = { anchor: Temporal.PlainDate.from(anchor), interval, timeZone };
  const billed = billHourly(schedule, hourlyDates(timeZone, schedule.anchor, 3652));
  expect(billingFault(schedule, billed)).toBeUndefined();
  expect(billed.length).toBeGreaterThan(118);
});
