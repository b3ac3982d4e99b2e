import { commonError } from '@rollcall/platform/common-errors.ts';
import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import { refuseAll } from '../../domain/refusals.ts';
import { moveSubscription } from '../../domain/subscription-changes.ts';
import { methodNotFound } from './methods.ts';
import { planRefusals, type StoredPlan } from './plans.ts';
import { runSubscription } from './scheduler.ts';
import type { SubscribingDeps } from './subscribing.ts';
import type { SubscriptionRecord } from './subscriptions.ts';

/** Which subscription, and who asks. */
interface Asked {
  readonly id: string;
  readonly owner: Owner;
}

interface SubscriptionChanges {
  readonly planId?: string;
  readonly methodId?: string;
  readonly cancelAtPeriodEnd?: boolean;
  readonly metadata?: SubscriptionRecord['metadata'];
}

/**
 * All of it, or nothing where a part is refused.
 *
 * @throws ServiceError NOT_FOUND, CONFLICT by its state, PLAN_NOT_FOUND, PLAN_INACTIVE, PLAN_CURRENCY_DIFFERS,
 * INVOICE_TOTAL_NOT_ALLOWED, METHOD_NOT_FOUND, CUSTOMER_ERASED.
 */
export async function changeSubscription(
  deps: SubscribingDeps,
  { id, owner }: Asked,
  { planId, methodId, cancelAtPeriodEnd, metadata }: SubscriptionChanges,
): Promise<SubscriptionRecord> {
  const { subscriptions } = deps;
  const record = known(await subscriptions.find(id, owner));
  const method = methodId === undefined ? undefined : await usableMethod(deps, record, methodId);
  const plan = planId === undefined ? undefined : await deps.plans.find(planId, record.subject);
  const isLost = methodId !== undefined && method === undefined;
  refuseAll([...(planId === undefined ? [] : planRefusals(plan)), ...(isLost ? [methodNotFound()] : [])], 'body');
  const choice = plan && choiceOf(plan);
  // Of what is left only the state can refuse, and that has been looked at by then.
  if (choice !== undefined) await subscriptions.changePlan(id, owner, choice);
  await subscriptions.change(id, owner, (before) => {
    const changed = metadata === undefined ? before : { ...before, metadata };
    const after = method === undefined ? changed : { ...changed, ...method };
    return cancelAtPeriodEnd === undefined ? after : withEnd(after, cancelAtPeriodEnd);
  });
  return known(await subscriptions.find(id, owner));
}

async function usableMethod({ methods }: SubscribingDeps, { customerId }: SubscriptionRecord, methodId: string) {
  const method = (await methods.listOf([customerId])).find((each) => each.id === methodId && each.usable);
  return method && { methodId, provider: method.provider };
}

function choiceOf({ id: planId, version: planVersion, terms }: StoredPlan) {
  const { trialDays: _trial, ...plan } = terms;
  return { planId, planVersion, plan };
}

/**
 * Ends it now. One that never began takes its checkout and its invoice with it.
 *
 * @throws ServiceError NOT_FOUND, CONFLICT while a method is charged for what never began.
 */
export async function cancelSubscription(deps: SubscribingDeps, { id, owner }: Asked): Promise<SubscriptionRecord> {
  const { subscriptions, payments } = deps;
  const { subscription, setupPaymentId, openPaymentId, isByCheckout } = known(await subscriptions.find(id, owner));
  const checkoutId = setupPaymentId ?? (isByCheckout ? openPaymentId : undefined);
  if (subscription.state === 'incomplete' && checkoutId !== undefined) await payments.cancel(checkoutId);
  return known(await subscriptions.cancel(id, owner));
}

/** @throws ServiceError NOT_FOUND, CONFLICT where it is not active. */
export async function pauseSubscription({ subscriptions, clock }: SubscribingDeps, { id, owner }: Asked) {
  return known(await subscriptions.change(id, owner, (record) => moved(record, 'pause', clock.now())));
}

/** @throws ServiceError NOT_FOUND, CONFLICT where it is not paused. */
export async function resumeSubscription(deps: SubscribingDeps, { id, owner }: Asked) {
  const { subscriptions, clock } = deps;
  known(await subscriptions.change(id, owner, (record) => moved(record, 'resume', clock.now())));
  await runSubscription(deps, id);
  return known(await subscriptions.find(id, owner));
}

function moved(record: SubscriptionRecord, event: 'pause' | 'resume', at: Date): SubscriptionRecord {
  const { subscription } = record;
  const change = moveSubscription(subscription, event, Temporal.Instant.fromEpochMilliseconds(at.getTime()));
  if (change.kind === 'refused') throw paymentError('CONFLICT', { details: { status: subscription.state } });
  return change.kind === 'stays' ? record : { ...record, subscription: change.subscription };
}

function withEnd(record: SubscriptionRecord, cancelAtPeriodEnd: boolean): SubscriptionRecord {
  const { subscription } = record;
  if (subscription.cancelAtPeriodEnd === cancelAtPeriodEnd) return record;
  if (subscription.state === 'cancelled') throw paymentError('CONFLICT', { details: { status: subscription.state } });
  return { ...record, subscription: { ...subscription, cancelAtPeriodEnd } };
}

function known(record: SubscriptionRecord | undefined): SubscriptionRecord {
  if (record === undefined) throw commonError('NOT_FOUND');
  return record;
}
