import { StripeError } from './errors.ts';
import { getMethod } from './methods.ts';
import type { CheckoutSession, Customer, Invoice, LineItem, Metadata, Subscription } from './objects.ts';
import { metadataOf } from './parameters.ts';
import { confirm, createIntent, type Work } from './payments.ts';
import { createId } from './store.ts';

/** What a subscription begins with. */
export interface SubscriptionOrder {
  readonly session: CheckoutSession;
  readonly customer: Customer;
  readonly payment_method: string;
  readonly metadata: Metadata | undefined;
}

/**
 * Begins the subscription of a checkout session, and charges its first period. Later periods do not
 * come by themselves.
 *
 * @throws StripeError 402 where the card is declined.
 */
export function subscribe(
  work: Work,
  { session, customer, payment_method, metadata }: SubscriptionOrder,
): Subscription {
  const { store, emit } = work;
  const { amount_total: amount, currency } = session;
  if (amount === null || currency === null) throw new Error('a session of this mode has an amount');
  const order = { amount, currency, customer: customer.id, setup_future_usage: 'off_session' as const };
  const intent = createIntent(work, { ...order, description: 'Subscription creation', metadata: {} });
  confirm(work, intent, { method: getMethod(work, payment_method, 'payment_method'), isOffSession: false });
  const base = store.base('subscription', 'sub');
  const invoice = store.put<Invoice>({
    ...store.base('invoice', 'in'),
    status: 'paid',
    customer: customer.id,
    currency,
    amount_due: amount,
    amount_paid: amount,
    billing_reason: 'subscription_create',
    parent: {
      type: 'subscription_details',
      subscription_details: { subscription: base.id, metadata: metadataOf(metadata) },
    },
  });
  const subscription = store.put<Subscription>({
    ...base,
    status: 'active',
    customer: customer.id,
    currency,
    default_payment_method: payment_method,
    cancel_at_period_end: false,
    canceled_at: null,
    latest_invoice: invoice.id,
    metadata: metadataOf(metadata),
    items: itemsOf(base.id, store.lineItems.get(session.id) ?? [], base.created),
  });
  emit('customer.subscription.created', subscription);
  emit('invoice.paid', invoice);
  return subscription;
}

/** @throws StripeError 404 where it is canceled already. */
export function cancelSubscription({ store, emit }: Work, subscription: Subscription): Subscription {
  if (subscription.status === 'canceled')
    throw new StripeError(404, {
      type: 'invalid_request_error',
      code: 'resource_missing',
      message: `No such subscription: '${subscription.id}'`,
      param: 'id',
    });
  const canceled = store.put<Subscription>({ ...subscription, status: 'canceled', canceled_at: store.now });
  emit('customer.subscription.deleted', canceled);
  return canceled;
}

function itemsOf(subscription: string, items: readonly LineItem[], start: number): Subscription['items'] {
  const data = items.map(({ price, quantity }) => ({
    id: createId('si'),
    object: 'subscription_item' as const,
    quantity,
    current_period_start: start,
    current_period_end: endOf(start, price.recurring),
    price: {
      object: 'price' as const,
      currency: price.currency,
      unit_amount: price.unit_amount,
      recurring: price.recurring,
    },
  }));
  return { object: 'list', url: `/v1/subscription_items?subscription=${subscription}`, has_more: false, data };
}

function endOf(start: number, recurring: LineItem['price']['recurring']): number {
  const { interval, interval_count } = recurring ?? { interval: 'month', interval_count: 1 };
  const from = Temporal.Instant.fromEpochMilliseconds(start * 1000).toZonedDateTimeISO('UTC');
  return from.add({ [`${interval}s`]: interval_count }).epochMilliseconds / 1000;
}
