import { backoffMs } from '@rollcall/platform/retry.ts';
import { type OpenOutcome, planLookUp } from '../../domain/lookups.ts';
import { isSettled } from '../../domain/payment-states.ts';
import type { Payment } from './payments.ts';

type Open = Pick<
  Payment,
  | 'state'
  | 'purpose'
  | 'createdAt'
  | 'calledAt'
  | 'checkoutRef'
  | 'expiresAt'
  | 'processingAt'
  | 'lookUps'
  | 'lastLookUpAt'
>;

/** A payer waits for the checkout: its call is made again soon, while the provider may answer again. */
export const CHECKOUT_AGAIN_MS = 2000;
const CHECKOUT_AGAIN = { baseMs: CHECKOUT_AGAIN_MS, maxMs: 900_000, random: () => 1 };
/** A call that is under way is over by then, or its process was killed. */
const CALL_OVER_MS = 60_000;

/** What the worker does next for a payment. */
export type PaymentWork =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'wait'; readonly until: Date }
  /** A checkout whose outcome is not known is made again: every provider knows our key for it. */
  | { readonly kind: 'call_again' }
  | { readonly kind: 'look_up' }
  /** Nobody can pay it any more, since the provider never had it. */
  | { readonly kind: 'expire' }
  | { readonly kind: 'give_up' };

/**
 * Pure. A payer may pay until the payment expires; what then is not known is looked up for three days,
 * and what the provider works on for a month.
 */
export function planWork(payment: Open, now: Date): PaymentWork {
  const { state, purpose, calledAt, checkoutRef, expiresAt, processingAt, lookUps, lastLookUpAt } = payment;
  if (isSettled(state)) return { kind: 'nothing' };
  if (purpose !== 'charge' && checkoutRef === undefined) return planCheckout(payment, now);
  if (calledAt === undefined) return now < expiresAt ? { kind: 'wait', until: expiresAt } : { kind: 'expire' };
  if (checkoutRef !== undefined && now < expiresAt) return { kind: 'wait', until: expiresAt };
  const since = checkoutRef === undefined ? calledAt : expiresAt;
  const isAccepted = processingAt !== undefined;
  const outcome = { since: instant(since), isAccepted, ...lookUpsAfter(since, { lookUps, lastLookUpAt }) };
  const decision = planLookUp(outcome, instant(now));
  if (decision.kind === 'wait') return { kind: 'wait', until: new Date(decision.until.epochMilliseconds) };
  return decision.kind === 'give_up' ? decision : { kind: 'look_up' };
}

/** Pure. Its outcome is not known, or the provider was not reached: every provider knows our key. */
function planCheckout({ state, createdAt, calledAt, expiresAt, lookUps, lastLookUpAt }: Open, now: Date): PaymentWork {
  if (now >= expiresAt) return { kind: 'expire' };
  const isUnderWay = state === 'pending' && calledAt !== undefined;
  const until = isUnderWay
    ? later(calledAt, CALL_OVER_MS)
    : later(lastLookUpAt ?? calledAt ?? createdAt, backoffMs(lookUps, CHECKOUT_AGAIN));
  return now < until ? { kind: 'wait', until } : { kind: 'call_again' };
}

function later(since: Date, ms: number): Date {
  return new Date(since.getTime() + ms);
}

/** Pure. When the worker looks at it again; undefined: never. */
export function dueAt(payment: Open, now: Date): Date | undefined {
  const work = planWork(payment, now);
  if (work.kind === 'nothing') return undefined;
  return work.kind === 'wait' ? work.until : now;
}

/** Lookups while the payer could still pay, and calls for the checkout, say nothing about the time after. */
function lookUpsAfter(
  since: Date,
  { lookUps, lastLookUpAt }: Pick<Open, 'lookUps' | 'lastLookUpAt'>,
): Pick<OpenOutcome, 'lookUps' | 'lastLookUpAt'> {
  if (lastLookUpAt === undefined || lastLookUpAt < since) return { lookUps: 0, lastLookUpAt: undefined };
  return { lookUps, lastLookUpAt: instant(lastLookUpAt) };
}

function instant(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}
