import { type BillingSchedule, billingPeriod, dateIn } from './calendar.ts';
import { isInvoiceable, priceItem, totalsOf } from './invoices.ts';
import { amountForRest } from './proration.ts';
import { type SubscriptionEvent, subscriptionTable } from './subscription-states.ts';
import { nextInvoice, type OpenInvoice, type PeriodInvoice, type Plan, type Subscription } from './subscriptions.ts';
import { move } from './transitions.ts';

/** What a change makes of a subscription. What `stays` was done before, or came too late. */
export type SubscriptionChange =
  | { readonly kind: 'changed'; readonly subscription: Subscription }
  | { readonly kind: 'stays' }
  | { readonly kind: 'refused' };

interface NewSubscription {
  readonly id: string;
  readonly plan: Plan;
  readonly trialDays: number;
  readonly collection: Subscription['collection'];
  /** Of the customer. */
  readonly timeZone: string;
  readonly createdAt: Temporal.Instant;
}

/**
 * A subscription from the customer's today on, or from the end of its trial. It is incomplete until
 * something was paid, or a provider knows how to charge; who gets invoices need not pay first.
 */
export function createSubscription(input: NewSubscription): Subscription {
  const { id, plan, trialDays, collection, timeZone, createdAt } = input;
  const schedule: BillingSchedule = {
    anchor: dateIn(timeZone, createdAt).add({ days: trialDays }),
    interval: plan.interval,
    timeZone,
  };
  const begun = trialDays > 0 ? 'trialing' : 'active';
  return {
    id,
    state: collection === 'send_invoice' ? begun : 'incomplete',
    plan,
    pendingPlan: undefined,
    collection,
    schedule,
    nextIndex: 0,
    open: undefined,
    cancelAtPeriodEnd: false,
    pendingAmount: 0n,
    creditBalance: 0n,
    createdAt,
  };
}

/** The invoice of its next period was issued. One of which nothing is due is paid. */
export function withInvoice(subscription: Subscription, invoice: PeriodInvoice, at: Temporal.Instant): Subscription {
  const { key, period, due, fromCredit } = invoice;
  const invoiced = {
    ...subscription,
    nextIndex: period.index + 1,
    pendingAmount: 0n,
    creditBalance: subscription.creditBalance - fromCredit,
  };
  if (due === 0n) return withEvent(invoiced, 'paid', at);
  return { ...invoiced, open: { key, due, issuedAt: at, attempts: 0, charge: 'none', failedAt: undefined } };
}

/** One attempt for the open invoice. */
interface Attempt {
  readonly key: string;
  /** From 1. */
  readonly attempt: number;
}

/** A charge begins. It is refused while another one's outcome is open, or for another invoice. */
export function beginCharge(subscription: Subscription, { key, attempt }: Attempt): SubscriptionChange {
  const { open, state } = subscription;
  if (state === 'cancelled' || open === undefined || !follows(open, { key, attempt })) return { kind: 'refused' };
  return changed({ ...subscription, open: { ...open, attempts: attempt, charge: 'unsettled' } });
}

/** A reminder of an invoice that is overdue was sent. */
export function withReminder(subscription: Subscription, { key, attempt }: Attempt): SubscriptionChange {
  const { open } = subscription;
  if (open === undefined || !follows(open, { key, attempt })) return { kind: 'refused' };
  return changed({ ...subscription, open: { ...open, attempts: attempt } });
}

interface AttemptEnd extends Attempt {
  /** Of its payment: in `needs_review` it has none yet. */
  readonly outcome: 'succeeded' | 'failed';
  readonly at: Temporal.Instant;
}

/** A charge has ended. What is reported twice, or of an attempt before, stays without effect. */
export function endCharge(subscription: Subscription, { key, attempt, outcome, at }: AttemptEnd): SubscriptionChange {
  const { open } = subscription;
  if (open?.key !== key || open.attempts !== attempt || open.charge !== 'unsettled') return { kind: 'stays' };
  if (outcome === 'succeeded') return changed(withEvent({ ...subscription, open: undefined }, 'paid', at));
  return changed(withFailure(subscription, { ...open, charge: 'failed' }, at));
}

/** An invoice that was sent was not paid by its day. */
export function withOverdue(subscription: Subscription, key: string, at: Temporal.Instant): SubscriptionChange {
  const { open } = subscription;
  if (open?.key !== key || open.failedAt !== undefined) return { kind: 'stays' };
  return changed(withFailure(subscription, open, at));
}

/** The open invoice was paid in some way, or is not owed any more. */
export function closeInvoice(subscription: Subscription, key: string, at: Temporal.Instant): SubscriptionChange {
  if (subscription.open?.key !== key) return { kind: 'stays' };
  return changed(withEvent({ ...subscription, open: undefined }, 'paid', at));
}

/** A charge that was begun was surely not made: it is as before. */
export function withdrawCharge(subscription: Subscription, { key, attempt }: Attempt): SubscriptionChange {
  const { open } = subscription;
  if (open?.key !== key || open.attempts !== attempt || open.charge !== 'unsettled') return { kind: 'stays' };
  const charge = open.failedAt === undefined ? 'none' : 'failed';
  return changed({ ...subscription, open: { ...open, attempts: attempt - 1, charge } });
}

/** Pauses, resumes, cancels, or ends a trial or dunning. */
export function moveSubscription(
  subscription: Subscription,
  event: SubscriptionEvent,
  at: Temporal.Instant,
): SubscriptionChange {
  const transition = move(subscriptionTable, subscription.state, event);
  return transition.kind === 'moved' ? changed(withEvent(subscription, event, at)) : transition;
}

interface PlanChangeRequest {
  readonly plan: Plan;
  readonly at: Temporal.Instant;
  /** What credit notes may still take back of the current period's invoice, with tax. */
  readonly creditable: bigint;
  /** What is still to be paid of that invoice: a credit lowers it first. */
  readonly unpaid: bigint;
}

export type PlanChange =
  | {
      readonly kind: 'changed';
      readonly subscription: Subscription;
      /** With tax: of a credit note for the current period's invoice; 0 for none. */
      readonly credit: bigint;
    }
  /** `amount`: the next invoice would be beyond what may be charged. */
  | { readonly kind: 'refused'; readonly reason: 'state' | 'currency' | 'amount' };

/**
 * Another plan. With the same interval it holds from today on: what the rest of the period costs
 * more is on the next invoice. What it costs less is credited: first of what is not paid yet, the
 * rest for invoices to come. With another interval it holds from the end of what is billed, and the
 * plan that is paid stays until then. So whichever plans come between, the same days cost the same.
 */
export function changePlan(subscription: Subscription, request: PlanChangeRequest): PlanChange {
  const { state, schedule } = subscription;
  const { plan } = request;
  if (state !== 'active' && state !== 'trialing') return { kind: 'refused', reason: 'state' };
  if (plan.currency !== subscription.plan.currency) return { kind: 'refused', reason: 'currency' };
  const { unit, count } = schedule.interval;
  const isProrated = unit === plan.interval.unit && count === plan.interval.count;
  const changed = isProrated
    ? prorated({ ...subscription, pendingPlan: undefined }, request)
    : { subscription: withPlanToCome(subscription, plan), credit: 0n };
  const { lines } = nextInvoice(withPendingPlan(changed.subscription));
  if (!isInvoiceable(totalsOf(lines))) return { kind: 'refused', reason: 'amount' };
  return { kind: 'changed', ...changed };
}

/** At once where nothing of the plan before is billed. */
function withPlanToCome(subscription: Subscription, pendingPlan: Plan): Subscription {
  const waiting = { ...subscription, pendingPlan };
  return subscription.nextIndex === 0 ? withPendingPlan(waiting) : waiting;
}

/** The plan of another interval holds, from the end of what is billed. */
export function withPendingPlan(subscription: Subscription): Subscription {
  const { pendingPlan: plan, schedule, nextIndex } = subscription;
  if (plan === undefined) return subscription;
  const anchor = billingPeriod(schedule, nextIndex).start;
  const fresh = { ...schedule, anchor, interval: plan.interval };
  return { ...subscription, plan, pendingPlan: undefined, schedule: fresh, nextIndex: 0 };
}

type Prorated = Omit<Extract<PlanChange, { readonly kind: 'changed' }>, 'kind'>;

function prorated(subscription: Subscription, { plan, at, creditable, unpaid }: PlanChangeRequest): Prorated {
  const { schedule, nextIndex, plan: old } = subscription;
  // Nothing of the old plan is billed.
  if (nextIndex === 0) return { subscription: { ...subscription, plan }, credit: 0n };
  const period = billingPeriod(schedule, nextIndex - 1);
  const rest = (amount: bigint): bigint => amountForRest(amount, period, dateIn(schedule.timeZone, at));
  const pending = subscription.pendingAmount + rest(plan.amount) - rest(old.amount);
  if (pending >= 0n) return { subscription: { ...subscription, plan, pendingAmount: pending }, credit: 0n };
  const item = { description: '', unitAmount: -pending, quantity: 1n, taxRate: old.taxRate };
  const { gross } = priceItem(item, old.taxBehavior);
  // Tax of parts, each rounded, may exceed the tax of the whole.
  const credit = gross < creditable ? gross : creditable;
  const creditBalance = subscription.creditBalance + (credit > unpaid ? credit - unpaid : 0n);
  return { subscription: { ...subscription, plan, pendingAmount: 0n, creditBalance }, credit };
}

/** Whether an attempt is the next one for the open invoice. */
function follows(open: OpenInvoice, { key, attempt }: Attempt): boolean {
  return open.key === key && open.attempts + 1 === attempt && open.charge !== 'unsettled';
}

function withFailure(subscription: Subscription, open: OpenInvoice, at: Temporal.Instant): Subscription {
  return withEvent({ ...subscription, open: { ...open, failedAt: open.failedAt ?? at } }, 'payment_failed', at);
}

/** The state moves where the table says so. Time that was not served is not billed. */
function withEvent(subscription: Subscription, event: SubscriptionEvent, at: Temporal.Instant): Subscription {
  const transition = move(subscriptionTable, subscription.state, event);
  if (transition.kind !== 'moved') return subscription;
  const moved = { ...subscription, state: transition.to };
  const wasServed = subscription.state !== 'paused' && subscription.state !== 'unpaid';
  return wasServed || transition.to !== 'active' ? moved : resumed(moved, at);
}

/** Begins anew today, unless today is billed. So no period begins on a day that another had. */
function resumed(subscription: Subscription, at: Temporal.Instant): Subscription {
  const { schedule, nextIndex } = subscription;
  const today = dateIn(schedule.timeZone, at);
  if (Temporal.PlainDate.compare(today, billingPeriod(schedule, nextIndex).start) <= 0) return subscription;
  return { ...subscription, schedule: { ...schedule, anchor: today }, nextIndex: 0 };
}

function changed(subscription: Subscription): SubscriptionChange {
  return { kind: 'changed', subscription };
}
