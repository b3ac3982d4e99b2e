import {
  type BillingPeriod,
  type BillingSchedule,
  billingPeriodAt,
  dateIn,
  periodKey,
  startOfDay,
} from '@rollcall/payment/domain/calendar.ts';

const HOUR_MS = 3_600_000;

interface BilledPeriod extends BillingPeriod {
  /** The date of the customer's zone at which the job billed it. */
  readonly billedOn: Temporal.PlainDate;
}

/** The date in a time zone at each hour from a day before a date on. */
export function hourlyDates(timeZone: string, from: Temporal.PlainDate, days: number): readonly Temporal.PlainDate[] {
  const firstMs = startOfDay(timeZone, from).epochMilliseconds - 24 * HOUR_MS;
  return Array.from({ length: (days + 1) * 24 }, (_, hour) =>
    dateIn(timeZone, Temporal.Instant.fromEpochMilliseconds(firstMs + hour * HOUR_MS)),
  );
}

/** What a job bills that runs at each of these hours, and knows what was billed by its key alone. */
export function billHourly(schedule: BillingSchedule, dates: readonly Temporal.PlainDate[]): readonly BilledPeriod[] {
  const billed = new Map<string, BilledPeriod>();
  let planned: Temporal.PlainDate | undefined;
  for (const date of dates) {
    // Planned twice on a day, it is the same.
    if (planned?.equals(date) === true) continue;
    planned = date;
    const period = billingPeriodAt(schedule, date);
    if (period === undefined) continue;
    const key = periodKey('subscription', period.start);
    if (!billed.has(key)) billed.set(key, { ...period, billedOn: date });
  }
  return [...billed.values()];
}

/** The first fault of what was billed: a gap, a period twice, or a day late; undefined where there is none. */
export function billingFault(schedule: BillingSchedule, billed: readonly BilledPeriod[]): string | undefined {
  let next = schedule.anchor;
  for (const [position, { index, start, end, billedOn }] of billed.entries()) {
    if (index !== position) return `period ${index} came as number ${position}`;
    if (!start.equals(next)) return `${start.toString()} does not follow ${next.toString()}`;
    if (!billedOn.equals(start)) return `${start.toString()} was billed on ${billedOn.toString()}`;
    next = end;
  }
  return billed.length === 0 ? 'nothing was billed' : undefined;
}
