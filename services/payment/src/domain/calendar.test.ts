import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type BillingSchedule,
  billingPeriod,
  billingPeriodAt,
  dateIn,
  daysBetween,
  type Interval,
  isTimeZone,
  periodKey,
  startOfDay,
} from './calendar.ts';

const day = (text: string): Temporal.PlainDate => Temporal.PlainDate.from(text);
const monthly: Interval = { unit: 'month', count: 1 };

function scheduleOf(anchor: string, interval: Interval = monthly, timeZone = 'Africa/Johannesburg'): BillingSchedule {
  return { anchor: day(anchor), interval, timeZone };
}

function starts(schedule: BillingSchedule, count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => billingPeriod(schedule, index).start.toString());
}

// From 31 January the next dates were computed from 28 February, and days drifted (killbill/killbill#127).
test('the 31st of January is followed by the last days of short months, and by the 31st again', () => {
  expect(starts(scheduleOf('2026-01-31'), 6)).toEqual([
    '2026-01-31',
    '2026-02-28',
    '2026-03-31',
    '2026-04-30',
    '2026-05-31',
    '2026-06-30',
  ]);
});

test('a leap day is billed on the 28th of February in other years, and on the 29th again', () => {
  expect(starts(scheduleOf('2024-02-29', { unit: 'year', count: 1 }), 5)).toEqual([
    '2024-02-29',
    '2025-02-28',
    '2026-02-28',
    '2027-02-28',
    '2028-02-29',
  ]);
});

test.each<[Interval, readonly string[]]>([
  [{ unit: 'day', count: 1 }, ['2026-11-30', '2026-12-01', '2026-12-02']],
  [{ unit: 'day', count: 30 }, ['2026-11-30', '2026-12-30', '2027-01-29']],
  [{ unit: 'week', count: 2 }, ['2026-11-30', '2026-12-14', '2026-12-28']],
  [{ unit: 'month', count: 3 }, ['2026-11-30', '2027-02-28', '2027-05-30']],
  [{ unit: 'year', count: 2 }, ['2026-11-30', '2028-11-30', '2030-11-30']],
])('each %j has its dates', (interval, dates) => {
  expect(starts(scheduleOf('2026-11-30', interval), 3)).toEqual(dates);
});

describe('the period of a date', () => {
  test('ends before the day on which the next begins', () => {
    const schedule = scheduleOf('2026-01-31');
    expect(billingPeriodAt(schedule, day('2026-02-27'))?.index).toBe(0);
    expect(billingPeriodAt(schedule, day('2026-02-28'))?.index).toBe(1);
    expect(billingPeriodAt(schedule, day('2026-03-30'))?.index).toBe(1);
    expect(billingPeriodAt(schedule, day('2026-03-31'))?.index).toBe(2);
  });

  test('is none before the anchor', () => {
    expect(billingPeriodAt(scheduleOf('2026-01-31'), day('2026-01-30'))).toBeUndefined();
  });

  test('is the one that holds it, and each follows the one before, for every anchor and interval', () => {
    const epoch = day('2024-01-01');
    const interval = fc.record({
      unit: fc.constantFrom('day' as const, 'week' as const, 'month' as const, 'year' as const),
      count: fc.integer({ min: 1, max: 13 }),
    });
    fc.assert(
      fc.property(fc.nat(1500), interval, fc.nat(5000), (anchorDay, every, later) => {
        const schedule = { ...scheduleOf('2024-01-01', every), anchor: epoch.add({ days: anchorDay }) };
        const date = schedule.anchor.add({ days: later });
        const period = billingPeriodAt(schedule, date);
        if (period === undefined) throw new Error('no period');
        expect(Temporal.PlainDate.compare(period.start, date)).not.toBe(1);
        expect(Temporal.PlainDate.compare(date, period.end)).toBe(-1);
        expect(billingPeriod(schedule, period.index + 1).start.equals(period.end)).toBe(true);
      }),
      { numRuns: 2000 },
    );
  });
});

describe('days in a time zone', () => {
  test('are those of the customer: at 23:00 UTC it is tomorrow in Johannesburg', () => {
    const at = Temporal.Instant.from('2026-11-30T23:00:00Z');
    expect(dateIn('Africa/Johannesburg', at).toString()).toBe('2026-12-01');
    expect(dateIn('Pacific/Pago_Pago', at).toString()).toBe('2026-11-30');
    expect(dateIn('Pacific/Kiritimati', at).toString()).toBe('2026-12-01');
  });

  test('begin at one in the morning where summer time skips midnight', () => {
    expect(startOfDay('Africa/Cairo', day('2026-04-24')).toString()).toBe('2026-04-23T22:00:00Z');
    expect(startOfDay('Africa/Cairo', day('2026-04-25')).toString()).toBe('2026-04-24T21:00:00Z');
  });

  test('are counted as dates, not as 24 hours', () => {
    expect(daysBetween(day('2026-03-01'), day('2026-04-01'))).toBe(31);
    expect(daysBetween(day('2026-04-01'), day('2026-03-01'))).toBe(-31);
  });
});

test.each(['Africa/Johannesburg', 'America/Argentina/Buenos_Aires', 'Etc/GMT+11', 'UTC', 'America/Port-au-Prince'])(
  '%s is a time zone',
  (name) => {
    expect(isTimeZone(name)).toBe(true);
  },
);

test.each([
  '',
  '+02:00',
  'Africa/Nowhere',
  '2026-11-30T00:00Z',
  '2026-11-30T00:00[UTC]',
  'Africa/Johannesburg\n',
  '../UTC',
  'x'.repeat(1000),
])('%j is no time zone', (name) => {
  expect(isTimeZone(name)).toBe(false);
});

test('a period is known by its subscription and first day', () => {
  expect(periodKey('s1', day('2026-02-28'))).toBe('s1:2026-02-28');
});
