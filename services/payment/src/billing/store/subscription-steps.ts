import { randomUUID } from 'node:crypto';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { dateIn } from '../../domain/calendar.ts';
import { paymentError } from '../../domain/errors.ts';
import {
  beginCharge,
  endCharge,
  moveSubscription,
  type SubscriptionChange,
  withInvoice,
  withOverdue,
  withPendingPlan,
  withReminder,
} from '../../domain/subscription-changes.ts';
import {
  defaultDunning,
  type PeriodInvoice,
  planSubscription,
  type SubscriptionDecision,
} from '../../domain/subscriptions.ts';
import { issueOf, voidInvoice } from '../domain/invoices.ts';
import { chargeable } from '../domain/methods.ts';
import type { FindSeller } from '../domain/sellers.ts';
import type { NextStep, SubscriptionRecord } from '../domain/subscriptions.ts';
import { customerFor } from './customer-rows.ts';
import { type InvoiceChangeDeps, issueInvoice, writeVoid } from './invoice-changes.ts';
import { findInvoice, insertDraft, instantOf } from './invoice-rows.ts';
import type { MethodRows } from './methods.ts';
import { updateSubscription } from './subscription-rows.ts';

export interface StepDeps extends InvoiceChangeDeps {
  readonly sellerOf: FindSeller;
  readonly methods: MethodRows;
}

/** While the outcome of a charge is open, it is made sure of so often that it was begun. */
const UNSETTLED_MS = 60_000;
/** Who takes a step goes on with the next. */
const LEASE_SECONDS = 60;

/** Money for the invoice is in review: a person decides, and until then nothing is charged. */
const IN_DOUBT_MS = 3_600_000;

interface Step {
  readonly next: NextStep;
  /** Undefined: nothing has changed. */
  readonly after: SubscriptionRecord | undefined;
}

/** Does the next thing for a subscription whose row the transaction has (docs/decisions/0356). */
export async function takeStep(client: PoolClient, deps: StepDeps, record: SubscriptionRecord): Promise<Step> {
  const now = instantOf(deps.clock.now());
  const { openPaymentId: paymentId, openInvoiceId: invoiceId, subscription } = record;
  if (subscription.open?.charge === 'unsettled' && paymentId !== undefined && invoiceId !== undefined) {
    await setDue(client, record, now.add({ milliseconds: UNSETTLED_MS }));
    return { next: { kind: 'charge', paymentId, invoiceId, record }, after: undefined };
  }
  const decision = planSubscription(subscription, now, defaultDunning);
  if (decision.kind === 'wait') {
    await setDue(client, record, decision.until);
    return { next: { kind: 'wait' }, after: undefined };
  }
  if (decision.kind === 'charge' && (await isBeingPaid(client, deps, record))) {
    await setDue(client, record, now.add({ milliseconds: IN_DOUBT_MS }));
    return { next: { kind: 'wait' }, after: undefined };
  }
  const after = await carryOut(client, deps, { record, decision, now });
  await updateSubscription(client, after, LEASE_SECONDS);
  return { next: { kind: 'more' }, after };
}

interface Decided<Decision = Exclude<SubscriptionDecision, { readonly kind: 'wait' }>> {
  readonly record: SubscriptionRecord;
  readonly decision: Decision;
  readonly now: Temporal.Instant;
}

async function carryOut(client: PoolClient, deps: StepDeps, decided: Decided): Promise<SubscriptionRecord> {
  const { record, decision, now } = decided;
  const { subscription } = record;
  switch (decision.kind) {
    case 'invoice':
      return billPeriod(client, deps, { record, decision: decision.invoice, now });
    case 'charge':
      return chargeMethod(client, deps, { record, decision, now });
    case 'remind': {
      const { attempt: occasion } = decision;
      await deps.queueMail(client, { kind: 'invoice', invoiceId: openInvoiceOf(record), occasion });
      return changedBy(record, withReminder(subscription, decision));
    }
    case 'overdue':
      return changedBy(record, withOverdue(subscription, decision.key, decision.at));
    case 'change_plan':
      return { ...record, ...record.pending, pending: undefined, subscription: withPendingPlan(subscription) };
    case 'move':
      break;
  }
  if (decision.event === 'cancel' || decision.event === 'first_payment_expired') return cancelNow(client, deps, record);
  return changedBy(record, moveSubscription(subscription, decision.event, now));
}

/** Ends it, and takes back the first invoice of what never began. */
export async function cancelNow(
  client: PoolClient,
  deps: StepDeps,
  record: SubscriptionRecord,
): Promise<SubscriptionRecord> {
  const { subscription, openInvoiceId } = record;
  const now = instantOf(deps.clock.now());
  const { subscription: cancelled } = changedBy(record, moveSubscription(subscription, 'cancel', now));
  const ended = { ...record, subscription: cancelled, cancelledAt: deps.clock.now() };
  if (subscription.state !== 'incomplete' || openInvoiceId === undefined) return ended;
  const invoice = await findInvoice(client, deps.sealer, { id: openInvoiceId, owner: undefined, isLocked: true });
  if (invoice === undefined || voidInvoice(invoice).kind !== 'void') return ended;
  // Written before: an invoice that is closed would have it begin.
  await updateSubscription(client, ended);
  await writeVoid(client, deps, invoice);
  return { ...ended, subscription: { ...cancelled, open: undefined } };
}

async function billPeriod(
  client: PoolClient,
  deps: StepDeps,
  { record, decision: due, now }: Decided<PeriodInvoice>,
): Promise<SubscriptionRecord> {
  const { subject, customerId, subscription } = record;
  const { id, plan, collection } = subscription;
  const seller = deps.sellerOf(subject);
  if (seller === undefined) throw paymentError('NO_SELLER');
  const customer = await customerFor(client, deps.vault, customerId);
  const invoiceId = randomUUID();
  await insertDraft(client, deps.sealer, {
    id: invoiceId,
    subject,
    customerId,
    subscription: { id, start: due.period.start, end: due.period.end },
    currency: plan.currency,
    taxBehavior: plan.taxBehavior,
    daysUntilDue: collection === 'send_invoice' ? defaultDunning.daysUntilDue : 0,
    lines: due.lines,
    metadata: {},
    fromCredit: due.fromCredit,
    createdAt: deps.clock.now(),
  });
  const invoice = await findInvoice(client, deps.sealer, { id: invoiceId, owner: undefined });
  if (invoice === undefined) throw new Error('The invoice that was made is gone');
  await issueInvoice(client, deps, { invoice, issue: issueOf(invoice, { customer, seller, now }) });
  if (collection === 'send_invoice' && due.due > 0n)
    await deps.queueMail(client, { kind: 'invoice', invoiceId, occasion: 0 });
  return { ...record, openInvoiceId: invoiceId, subscription: withInvoice(subscription, due, now) };
}

type ChargeDecision = Extract<SubscriptionDecision, { readonly kind: 'charge' | 'remind' }>;

/** Begins the charge; it is made when all of this is stored. Without a method it has failed. */
async function chargeMethod(
  client: PoolClient,
  deps: StepDeps,
  { record, decision }: Decided<ChargeDecision>,
): Promise<SubscriptionRecord> {
  const { customerId, provider, methodId, subscription } = record;
  const paymentId = randomUUID();
  const begun = {
    ...changedBy(record, beginCharge(subscription, decision)),
    openPaymentId: paymentId,
    isByCheckout: false,
  };
  const method = chargeable(await deps.methods.listOf(client, [customerId]), { provider, methodId });
  if (method === undefined) return failedCharge(client, deps, { record: begun, reason: 'method_unusable' });
  await client.query('UPDATE invoices SET payment_id = $2, updated_at = now() WHERE id = $1', [
    openInvoiceOf(record),
    paymentId,
  ]);
  return begun;
}

/** A charge has failed: it is tried again as dunning has it, and the customer is told when. */
export async function failedCharge(
  client: PoolClient,
  deps: StepDeps,
  { record, reason }: { readonly record: SubscriptionRecord; readonly reason: string },
): Promise<SubscriptionRecord> {
  const { subscription, isByCheckout } = record;
  const { open, schedule } = subscription;
  if (open === undefined) return record;
  const { key, attempts: attempt } = open;
  const now = instantOf(deps.clock.now());
  const failed = changedBy(record, endCharge(subscription, { key, attempt, outcome: 'failed', at: now }));
  const next = planSubscription(failed.subscription, now, defaultDunning);
  const retryOn = next.kind === 'wait' && next.until !== undefined ? dateIn(schedule.timeZone, next.until) : undefined;
  // Who was at the checkout knows.
  if (!isByCheckout) {
    const invoiceId = openInvoiceOf(record);
    await deps.queueMail(client, { kind: 'payment-failed', invoiceId, occasion: attempt, reason, retryOn });
  }
  return failed;
}

async function isBeingPaid(client: PoolClient, deps: StepDeps, record: SubscriptionRecord): Promise<boolean> {
  const invoice = await findInvoice(client, deps.sealer, {
    id: openInvoiceOf(record),
    owner: undefined,
    isLocked: true,
  });
  return invoice?.paymentId !== undefined;
}

async function setDue(client: PoolClient, { subscription }: SubscriptionRecord, at: Temporal.Instant | undefined) {
  await client.query('UPDATE subscriptions SET due_at = $2 WHERE id = $1', [subscription.id, at?.toString()]);
}

function changedBy(record: SubscriptionRecord, change: SubscriptionChange): SubscriptionRecord {
  return change.kind === 'changed' ? { ...record, subscription: change.subscription } : record;
}

function openInvoiceOf({ openInvoiceId }: SubscriptionRecord): string {
  if (openInvoiceId === undefined) throw new Error('The subscription has no open invoice');
  return openInvoiceId;
}
