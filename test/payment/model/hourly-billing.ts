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

/**
 * What a job bills that runs each hour from the schedule's anchor on, for so many days, and knows
 * what was billed by its key alone.
 */
export function billHourly(schedule: BillingSchedule, days: number): readonly BilledPeriod[] {
  const billed = new Map<string, BilledPeriod>();
  const firstMs = startOfDay(schedule.timeZone, schedule.anchor).epochMilliseconds - 24 * HOUR_MS;
  for (let hour = 0; hour < (days + 1) * 24; hour += 1) {
    const at = Temporal.Instant.fromEpochMilliseconds(firstMs + hour * HOUR_MS);
    const date = dateIn(schedule.timeZone, at);
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
