import { type BillingPeriod, daysBetween } from './calendar.ts';
import { divideRounded } from './money.ts';

/**
 * The part of a period's amount that is for the days from a date to the end of the period, rounded
 * half away from zero. What is for the days before is the rest, so that no minor unit is lost.
 *
 * @param from all of the period for a date before it, nothing for one after.
 * @returns minor units.
 */
export function amountForRest(amount: bigint, period: BillingPeriod, from: Temporal.PlainDate): bigint {
  const days = daysBetween(period.start, period.end);
  const left = Math.max(0, Math.min(days, daysBetween(from, period.end)));
  return divideRounded(amount * BigInt(left), BigInt(days));
}
