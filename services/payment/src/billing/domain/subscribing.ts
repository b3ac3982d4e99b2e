import { randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { ServiceError } from '@rollcall/platform/errors.ts';
import { paymentError } from '../../domain/errors.ts';
import type { Owner } from '../../domain/owner.ts';
import type { ProviderName } from '../../domain/ports.ts';
import { type Refusal, refuseAll } from '../../domain/refusals.ts';
import { createSubscription, moveSubscription } from '../../domain/subscription-changes.ts';
import { pricePlan, type Subscription } from '../../domain/subscriptions.ts';
import type { TakingProvider } from '../../payments/domain/take.ts';
import { type Customer, customerRefusals } from './customers.ts';
import { type PayingDeps, payInvoice } from './invoice-payments.ts';
import { chargeable, methodNotFound, type PaymentMethod } from './methods.ts';
import { type PlanStore, planRefusals, type StoredPlan } from './plans.ts';
import { runSubscription } from './scheduler.ts';
import type { FindSeller } from './sellers.ts';
import type { SubscriptionRecord } from './subscriptions.ts';

export interface SubscribingDeps extends PayingDeps {
  readonly plans: PlanStore;
  readonly sellerOf: FindSeller;
  readonly clock: Clock;
}

interface SubscriptionRequest {
  readonly id: string;
  readonly owner: Owner;
  readonly customerId: string;
  readonly planId: string;
  readonly provider: ProviderName | undefined;
  readonly collection: Subscription['collection'] | undefined;
  /** That of the plan where undefined. */
  readonly trialDays: number | undefined;
  readonly methodId: string | undefined;
  readonly returnUrl: string | undefined;
  readonly metadata: SubscriptionRecord['metadata'];
}

export interface Subscribed {
  readonly record: SubscriptionRecord;
  /** Where the payer makes the first payment, or lets the provider keep a card. */
  readonly paymentUrl: string | undefined;
}

/**
 * Makes a subscription and what is due at once, or finds the one that has the id.
 *
 * @throws ServiceError CUSTOMER_NOT_FOUND, PLAN_NOT_FOUND, PLAN_INACTIVE, METHOD_NOT_FOUND,
 * COLLECTION_NOT_SUPPORTED, NO_SELLER, and those of payments.
 */
export async function subscribe(deps: SubscribingDeps, request: SubscriptionRequest): Promise<Subscribed> {
  const { subscriptions } = deps;
  const { id, returnUrl } = request;
  const known = await subscriptions.find(id, undefined);
  const record = known ?? (await subscriptions.create(await newRecord(deps, request)));
  await runSubscription(deps, id);
  const paymentUrl = await firstPayment(deps, record, returnUrl);
  return { record: (await subscriptions.find(id, undefined)) ?? record, paymentUrl };
}

/** Where the payer of an incomplete one goes; undefined where nothing is open. */
export async function paymentUrlOf(
  { payments }: Pick<SubscribingDeps, 'payments'>,
  { subscription, setupPaymentId, openPaymentId }: SubscriptionRecord,
): Promise<string | undefined> {
  const paymentId = setupPaymentId ?? openPaymentId;
  if (subscription.state !== 'incomplete' || paymentId === undefined) return undefined;
  return (await payments.find(paymentId))?.url;
}

async function newRecord(deps: SubscribingDeps, request: SubscriptionRequest): Promise<SubscriptionRecord> {
  const { id, owner, methodId, metadata } = request;
  const customer = await deps.customers.find(request.customerId, owner);
  const plan = await deps.plans.find(request.planId, customer?.subject ?? owner);
  const methods = customer === undefined ? [] : await deps.methods.listOf([customer.id]);
  const chosen = methods.find((each) => each.id === methodId && each.usable);
  const trialDays = request.trialDays ?? plan?.terms.trialDays ?? 0;
  const { collection, provider, refusals } = collectionOf(deps, { request, plan, chosen, trialDays });
  const isLost = customer !== undefined && methodId !== undefined && chosen === undefined;
  const lost = isLost ? [methodNotFound()] : [];
  refuseAll([...customerRefusals(customer), ...planRefusals(plan), ...lost, ...refusals], 'body');
  if (customer === undefined || plan === undefined) throw new Error('What is not there was not refused');
  if (deps.sellerOf(customer.subject) === undefined) throw paymentError('NO_SELLER');
  const method = collection === 'charge_automatically' ? chargeable(methods, { provider, methodId }) : undefined;
  return recordOf(deps.clock, { id, customer, plan, trialDays, collection, provider, method, metadata });
}

interface Collecting {
  readonly request: SubscriptionRequest;
  /** Undefined: there is none. */
  readonly plan: StoredPlan | undefined;
  readonly chosen: PaymentMethod | undefined;
  readonly trialDays: number;
}

interface Collected {
  readonly collection: Subscription['collection'];
  readonly provider: ProviderName | undefined;
  readonly refusals: readonly Refusal[];
}

/** How it is paid, by whom it is charged, and why that cannot be. */
function collectionOf({ payments }: SubscribingDeps, { request, plan, chosen, trialDays }: Collecting): Collected {
  const isSent = request.collection === 'send_invoice';
  if (isSent && request.provider === undefined)
    return { collection: 'send_invoice', provider: undefined, refusals: [] };
  const provider = payments.providerOf(chosen?.provider ?? request.provider);
  if ('error' in provider) return { collection: 'send_invoice', provider: undefined, refusals: [provider] };
  const collection = request.collection ?? (provider.keepsMethods ? 'charge_automatically' : 'send_invoice');
  const isKept = collection === 'charge_automatically';
  const cannotKeep = isKept && !provider.keepsMethods;
  const refusals = [
    ...(cannotKeep ? [{ field: 'collection', error: paymentError('COLLECTION_NOT_SUPPORTED') }] : []),
    ...(plan === undefined ? [] : priceRefusals(provider, { plan, isKept, isTrial: trialDays > 0 })),
  ];
  return { collection, provider: provider.name, refusals };
}

interface PricedPlan {
  readonly plan: StoredPlan;
  readonly isKept: boolean;
  readonly isTrial: boolean;
}

/** Why the provider cannot take what the plan costs. */
function priceRefusals(provider: TakingProvider, { plan: { terms }, isKept, isTrial }: PricedPlan): readonly Refusal[] {
  const { currency } = terms;
  const { gross: amount } = pricePlan(terms);
  const ofPrice = amount > 0n ? provider.refusalsOf({ amount, currency }, isKept ? 'pay-and-keep' : 'pay') : [];
  const ofTrial = isTrial && isKept ? provider.refusalsOf({ amount: 0n, currency }, 'keep') : [];
  const isSaid = ({ error }: Refusal) => ofPrice.some((each) => each.error.code === error.code);
  return [...ofPrice, ...ofTrial.filter((each) => !isSaid(each))].map(({ error }) => ({ field: 'planId', error }));
}

interface RecordParts {
  readonly id: string;
  readonly customer: Customer;
  readonly plan: StoredPlan;
  readonly trialDays: number;
  readonly collection: Subscription['collection'];
  readonly provider: ProviderName | undefined;
  readonly method: PaymentMethod | undefined;
  readonly metadata: SubscriptionRecord['metadata'];
}

function recordOf(clock: Clock, parts: RecordParts): SubscriptionRecord {
  const { id, customer, plan, trialDays, collection, provider, method, metadata } = parts;
  const { trialDays: _trial, ...terms } = plan.terms;
  const createdAt = Temporal.Instant.fromEpochMilliseconds(clock.now().getTime());
  const fresh = createSubscription({ id, plan: terms, trialDays, collection, timeZone: customer.timeZone, createdAt });
  const isAutomatic = collection === 'charge_automatically' && trialDays > 0;
  const started = isAutomatic && method !== undefined && moveSubscription(fresh, 'trial_started', createdAt);
  return {
    subject: customer.subject,
    customerId: customer.id,
    planId: plan.id,
    planVersion: plan.version,
    pending: undefined,
    provider,
    methodId: method?.id,
    setupPaymentId: isAutomatic && method === undefined ? randomUUID() : undefined,
    trialEnd: trialDays > 0 ? fresh.schedule.anchor : undefined,
    openInvoiceId: undefined,
    openPaymentId: undefined,
    isByCheckout: false,
    metadata,
    cancelledAt: undefined,
    subscription: started !== false && started.kind === 'changed' ? started.subscription : fresh,
  };
}

/** The payment by which an incomplete one begins. A method that is declined leaves it incomplete. */
async function firstPayment(
  deps: SubscribingDeps,
  { subject, subscription: { id } }: SubscriptionRecord,
  returnUrl: string | undefined,
): Promise<string | undefined> {
  const record = await deps.subscriptions.find(id, undefined);
  if (record?.subscription.state !== 'incomplete') return undefined;
  const { openInvoiceId: invoiceId, setupPaymentId, methodId, provider } = record;
  if (setupPaymentId !== undefined) return setUp(deps, { record, setupPaymentId, returnUrl });
  if (invoiceId === undefined) return undefined;
  try {
    const request = { id: randomUUID(), owner: subject, invoiceId, methodId, provider, returnUrl };
    return (await payInvoice(deps, request)).paymentUrl;
  } catch (error) {
    if (methodId !== undefined && error instanceof ServiceError && error.code === 'PAYMENT_FAILED') return undefined;
    throw error;
  }
}

interface SetUp {
  readonly record: SubscriptionRecord;
  readonly setupPaymentId: string;
  readonly returnUrl: string | undefined;
}

/** Nothing is to be paid yet: the provider learns how to charge. */
async function setUp(deps: SubscribingDeps, { record, setupPaymentId: id, returnUrl }: SetUp) {
  const { subject, customerId, provider, subscription } = record;
  const customer = await deps.customers.find(customerId, undefined);
  if (customer === undefined) throw new Error('The customer of a subscription is gone');
  const payment = await deps.payments.open({
    id,
    subject,
    provider,
    purpose: 'keep',
    money: { amount: 0n, currency: subscription.plan.currency },
    customerId,
    customerEmail: customer.email,
    itemName: subscription.plan.name,
    invoiceId: undefined,
    returnUrl,
  });
  return payment.url;
}
