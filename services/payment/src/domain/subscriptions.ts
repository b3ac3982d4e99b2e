import {
  type BillingPeriod,
  type BillingSchedule,
  billingPeriod,
  type Interval,
  periodKey,
  startOfDay,
} from './calendar.ts';
import { type InvoiceLine, priceItem, type TaxBehavior, totalsOf } from './invoices.ts';
import type { SubscriptionEvent, SubscriptionState } from './subscription-states.ts';

/** A version of a plan: a subscription keeps its own until it is changed. */
export interface Plan {
  readonly name: string;
  /** Of a period, in minor units. */
  readonly amount: bigint;
  readonly currency: string;
  readonly interval: Interval;
  /** In millionths. */
  readonly taxRate: bigint;
  readonly taxBehavior: TaxBehavior;
}

/** The invoice of a subscription that is not paid. There is one at most: the next one waits for it. */
export interface OpenInvoice {
  /** Its period, by `periodKey`. */
  readonly key: string;
  /** In minor units. */
  readonly due: bigint;
  readonly issuedAt: Temporal.Instant;
  /** Charges that were begun, or reminders that were sent. */
  readonly attempts: number;
  /** Of the last charge. While it is unsettled there is no other. */
  readonly charge: 'none' | 'unsettled' | 'failed';
  /** Dunning counts from here: the first failure, or the day on which it was due. */
  readonly failedAt: Temporal.Instant | undefined;
}

export interface Subscription {
  readonly id: string;
  readonly state: SubscriptionState;
  readonly plan: Plan;
  /** Of another interval: it takes the place of `plan` when what is billed is over. */
  readonly pendingPlan: Plan | undefined;
  /** Charged by us where the provider keeps cards, else paid by the customer as an invoice is. */
  readonly collection: 'charge_automatically' | 'send_invoice';
  readonly schedule: BillingSchedule;
  /** Of the schedule: the first period that has no invoice. What is before its start is billed. */
  readonly nextIndex: number;
  readonly open: OpenInvoice | undefined;
  readonly cancelAtPeriodEnd: boolean;
  /** For the next invoice, as amounts of the plan are: what changes of the plan have added. */
  readonly pendingAmount: bigint;
  /** With tax: what credit notes left for invoices to come. */
  readonly creditBalance: bigint;
  readonly createdAt: Temporal.Instant;
}

export interface DunningPolicy {
  /** Days after the first failure at which it is tried again, growing. */
  readonly retryDays: readonly number[];
  /** What becomes of the subscription after the last one. */
  readonly whenExhausted: 'dunning_ended' | 'cancel';
  /** How long customers have to pay an invoice that is sent to them. */
  readonly daysUntilDue: number;
}

/** SERVICES, section 4: retries after 1, 3, 5 and 7 days, then unpaid. */
export const defaultDunning: DunningPolicy = {
  retryDays: [1, 3, 5, 7],
  whenExhausted: 'dunning_ended',
  daysUntilDue: 7,
};

/** How long the first payment may take. */
const INCOMPLETE_HOURS = 24;

export interface PeriodInvoice {
  /** No other invoice of the service has it. */
  readonly key: string;
  readonly period: BillingPeriod;
  readonly lines: readonly InvoiceLine[];
  /** Of the total: from the credit balance, and what is to be paid. */
  readonly fromCredit: bigint;
  readonly due: bigint;
}

/** The next thing to do for a subscription. It is done in one transaction, then planned anew. */
export type SubscriptionDecision =
  | { readonly kind: 'invoice'; readonly invoice: PeriodInvoice }
  | { readonly kind: 'charge' | 'remind'; readonly key: string; readonly attempt: number; readonly due: bigint }
  /** The invoice was not paid by its day. */
  | { readonly kind: 'overdue'; readonly key: string; readonly at: Temporal.Instant }
  | { readonly kind: 'move'; readonly event: SubscriptionEvent }
  /** The plan of another interval holds from now on. */
  | { readonly kind: 'change_plan' }
  /** Nothing before that time; nothing by itself where undefined. */
  | { readonly kind: 'wait'; readonly until: Temporal.Instant | undefined };

const forever: SubscriptionDecision = { kind: 'wait', until: undefined };

/** Decides what to do for a subscription now. Planned twice, at any replica, it is the same. */
export function planSubscription(
  subscription: Subscription,
  now: Temporal.Instant,
  dunning: DunningPolicy,
): SubscriptionDecision {
  const { state, open, schedule } = subscription;
  if (state === 'cancelled') return forever;
  if (state === 'incomplete') return planIncomplete(subscription, now);
  const paidUntil = startOfDay(schedule.timeZone, billingPeriod(schedule, subscription.nextIndex).start);
  const periodIsOver = isReached(paidUntil, now);
  if (subscription.cancelAtPeriodEnd && periodIsOver) return { kind: 'move', event: 'cancel' };
  if (state === 'unpaid') return { kind: 'wait', until: subscription.cancelAtPeriodEnd ? paidUntil : undefined };
  if (open !== undefined) {
    const collection = planCollection(subscription, open, { now, dunning });
    return subscription.cancelAtPeriodEnd ? earlier(collection, paidUntil) : collection;
  }
  if (state === 'paused') return forever;
  if (!periodIsOver) return { kind: 'wait', until: paidUntil };
  if (state === 'trialing') return { kind: 'move', event: 'trial_ended' };
  if (subscription.pendingPlan !== undefined) return { kind: 'change_plan' };
  return { kind: 'invoice', invoice: nextInvoice(subscription) };
}

/** The line of an invoice that a period of a plan makes. */
export function pricePlan(
  { amount, taxRate, taxBehavior }: Omit<Plan, 'name' | 'currency' | 'interval'>,
  description = '',
): InvoiceLine {
  return priceItem({ description, unitAmount: amount, quantity: 1n, taxRate }, taxBehavior);
}

/** The invoice of the first period that has none. */
export function nextInvoice(subscription: Subscription): PeriodInvoice {
  const { plan, pendingAmount, creditBalance, schedule } = subscription;
  const period = billingPeriod(schedule, subscription.nextIndex);
  const lastDay = period.end.subtract({ days: 1 });
  const lines = [
    pricePlan(plan, `${plan.name}, ${period.start.toString()} to ${lastDay.toString()}`),
    ...(pendingAmount === 0n ? [] : [pricePlan({ ...plan, amount: pendingAmount }, 'Change of plan')]),
  ];
  const { gross } = totalsOf(lines);
  const fromCredit = creditBalance < gross ? creditBalance : gross;
  return { key: periodKey(subscription.id, period.start), period, lines, fromCredit, due: gross - fromCredit };
}

function planIncomplete(subscription: Subscription, now: Temporal.Instant): SubscriptionDecision {
  const { open, schedule, createdAt } = subscription;
  // Its outcome may still come; lookups see to it that it does.
  if (open?.charge === 'unsettled') return forever;
  const expiresAt = createdAt.add({ hours: INCOMPLETE_HOURS });
  if (isReached(expiresAt, now)) return { kind: 'move', event: 'first_payment_expired' };
  const begins = startOfDay(schedule.timeZone, schedule.anchor);
  // With a trial, nothing is due yet: the provider only learns how to charge.
  const isDue = open === undefined && isReached(begins, now);
  return isDue ? { kind: 'invoice', invoice: nextInvoice(subscription) } : { kind: 'wait', until: expiresAt };
}

interface Now {
  readonly now: Temporal.Instant;
  readonly dunning: DunningPolicy;
}

function planCollection({ collection }: Subscription, open: OpenInvoice, { now, dunning }: Now): SubscriptionDecision {
  if (open.charge === 'unsettled') return forever;
  const { key, due } = open;
  const next = {
    kind: collection === 'send_invoice' ? 'remind' : 'charge',
    key,
    attempt: open.attempts + 1,
    due,
  } as const;
  if (open.failedAt === undefined) {
    if (collection === 'charge_automatically') return next;
    const dueAt = open.issuedAt.add({ hours: 24 * dunning.daysUntilDue });
    return isReached(dueAt, now) ? { kind: 'overdue', key, at: dueAt } : { kind: 'wait', until: dueAt };
  }
  // The first charge was no retry; all reminders are.
  const retries = collection === 'send_invoice' ? open.attempts : open.attempts - 1;
  const days = dunning.retryDays[retries];
  if (days === undefined) return { kind: 'move', event: dunning.whenExhausted };
  const retryAt = open.failedAt.add({ hours: 24 * days });
  return isReached(retryAt, now) ? next : { kind: 'wait', until: retryAt };
}

function earlier(decision: SubscriptionDecision, at: Temporal.Instant): SubscriptionDecision {
  if (decision.kind !== 'wait') return decision;
  const { until } = decision;
  return until !== undefined && Temporal.Instant.compare(until, at) < 0 ? decision : { kind: 'wait', until: at };
}

function isReached(at: Temporal.Instant, now: Temporal.Instant): boolean {
  return Temporal.Instant.compare(now, at) >= 0;
}
