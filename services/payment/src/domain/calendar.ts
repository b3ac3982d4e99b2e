// Billing periods are whole days of the customer's time zone, so that one pays from a date to a date.

export type IntervalUnit = 'day' | 'week' | 'month' | 'year';

/** How often one pays: `{ unit: 'month', count: 3 }` is each quarter. */
export interface Interval {
  readonly unit: IntervalUnit;
  /** 1 or more. */
  readonly count: number;
}

interface Step {
  readonly days: number;
  readonly months: number;
}

const units: Readonly<Record<IntervalUnit, Step>> = {
  day: { days: 1, months: 0 },
  week: { days: 7, months: 0 },
  month: { days: 0, months: 1 },
  year: { days: 0, months: 12 },
};

export interface BillingSchedule {
  /** The first day of the first period. Its day of the month holds for all of them. */
  readonly anchor: Temporal.PlainDate;
  readonly interval: Interval;
  /** Of the customer, by IANA's name. */
  readonly timeZone: string;
}

export interface BillingPeriod {
  /** 0 for the first. */
  readonly index: number;
  readonly start: Temporal.PlainDate;
  /** The first day of the next period. */
  readonly end: Temporal.PlainDate;
}

/**
 * Whether IANA knows a time zone of this name. Offsets are none: they know no summer time.
 *
 * Temporal takes a whole timestamp for the zone in it, so that the form is checked first.
 */
export function isTimeZone(name: string): boolean {
  if (!/^[A-Za-z][\w+-]*(?:\/[A-Za-z][\w+-]*){0,2}$/.test(name) || name.length > 64) return false;
  try {
    return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(name).timeZoneId !== '';
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

/** The date in a time zone. */
export function dateIn(timeZone: string, at: Temporal.Instant): Temporal.PlainDate {
  return at.toZonedDateTimeISO(timeZone).toPlainDate();
}

/** When a day begins in a time zone: at midnight, or where summer time skips it at the end of the gap. */
export function startOfDay(timeZone: string, date: Temporal.PlainDate): Temporal.Instant {
  return date.toZonedDateTime(timeZone).toInstant();
}

/**
 * The period of an index. Each is counted from the anchor, never from the one before: the 31st of
 * January is followed by the 28th of February, and then by the 31st of March.
 */
export function billingPeriod({ anchor, interval }: BillingSchedule, index: number): BillingPeriod {
  return { index, start: startOf(anchor, interval, index), end: startOf(anchor, interval, index + 1) };
}

/** The period that a date is in; undefined before the anchor. */
export function billingPeriodAt(schedule: BillingSchedule, date: Temporal.PlainDate): BillingPeriod | undefined {
  const { anchor, interval } = schedule;
  if (Temporal.PlainDate.compare(date, anchor) < 0) return undefined;
  const step = stepOf(interval);
  // An anchor's day that a month lacks is its last day, so that each period begins in a month of its own.
  const index = step.months === 0 ? Math.floor(daysBetween(anchor, date) / step.days) : monthIndex(schedule, date);
  return billingPeriod(schedule, index);
}

/** Days from one date to another; negative where the other is earlier. */
export function daysBetween(from: Temporal.PlainDate, to: Temporal.PlainDate): number {
  return from.until(to, { largestUnit: 'days' }).days;
}

/** One unpaid or billed period of a subscription: no other has the key. */
export function periodKey(subscriptionId: string, start: Temporal.PlainDate): string {
  return `${subscriptionId}:${start.toString()}`;
}

function monthIndex({ anchor, interval }: BillingSchedule, date: Temporal.PlainDate): number {
  const months = (date.year - anchor.year) * 12 + (date.month - anchor.month);
  const index = Math.floor(months / stepOf(interval).months);
  return Temporal.PlainDate.compare(startOf(anchor, interval, index), date) > 0 ? index - 1 : index;
}

function startOf(anchor: Temporal.PlainDate, interval: Interval, index: number): Temporal.PlainDate {
  const { days, months } = stepOf(interval);
  return anchor.add({ days: days * index, months: months * index });
}

function stepOf({ unit, count }: Interval): Step {
  const { days, months } = units[unit];
  return { days: days * count, months: months * count };
}
