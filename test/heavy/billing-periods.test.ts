import type { IntervalUnit } from '@rollcall/payment/domain/calendar.ts';
import { expect, test } from 'vitest';
import { billHourly, billingFault, hourlyDates } from '../payment/model/hourly-billing.ts';

/** From UTC-11 to UTC+14, whole hours and parts of one, with and without summer time, north and south. */
const timeZones = [
  'Pacific/Pago_Pago',
  'America/St_Johns',
  'America/Santiago',
  'UTC',
  'Europe/London',
  'Africa/Cairo',
  'Africa/Johannesburg',
  'Asia/Beirut',
  'Asia/Kathmandu',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
  'Pacific/Kiritimati',
];
/** The day of the month matters to months and years; to weeks, each day of one. */
const lastAnchorDays: Readonly<Record<IntervalUnit, number>> = { day: 1, week: 7, month: 31, year: 31 };
const units: readonly IntervalUnit[] = ['day', 'week', 'month', 'year'];

test.each(timeZones)('in %s each hour of ten years bills each period once, whatever its anchor', (timeZone) => {
  const dates = hourlyDates(timeZone, Temporal.PlainDate.from('2024-01-01'), 3652);
  for (const unit of units) {
    for (let day = 1; day <= lastAnchorDays[unit]; day += 1) {
      const schedule = {
        anchor: new Temporal.PlainDate(2024, 1, 1).with({ day }),
        interval: { unit, count: 1 },
        timeZone,
      };
      expect(billingFault(schedule, billHourly(schedule, dates)), `${unit} from day ${day}`).toBeUndefined();
    }
  }
});
