import { randomUUID } from 'node:crypto';
import { type CardDecline, cardOf, INSUFFICIENT_FUNDS } from './cards.ts';
import { StripeError, unexpectedState } from './errors.ts';
import type { Charge, PaymentIntent, PaymentMethod, Refund, StripeEvent } from './objects.ts';
import { metadataOf } from './parameters.ts';
import type { Store } from './store.ts';

/** What one request may do. */
export interface Work {
  readonly store: Store;
  /** Says that something happened, once the request is answered. */
  readonly emit: (type: string, object: StripeEvent['data']['object']) => void;
  /** What was said by the control API to become of the object with the id. */
  readonly outcomeOf: (id: string) => string | undefined;
}

/** What a payment intent is made of. */
export interface IntentOrder extends Pick<PaymentIntent, 'amount' | 'currency' | 'customer' | 'setup_future_usage'> {
  readonly description: string | undefined;
  readonly metadata: PaymentIntent['metadata'] | undefined;
}

export function createIntent({ store, emit }: Work, order: IntentOrder): PaymentIntent {
  const base = store.base('payment_intent', 'pi');
  const intent = store.put<PaymentIntent>({
    ...base,
    ...order,
    description: order.description ?? null,
    metadata: metadataOf(order.metadata),
    status: 'requires_payment_method',
    amount_received: 0,
    payment_method: null,
    latest_charge: null,
    last_payment_error: null,
    client_secret: `${base.id}_secret_${randomUUID()}`,
  });
  emit('payment_intent.created', intent);
  return intent;
}

export interface Confirmation {
  readonly method: PaymentMethod;
  /** Whether the owner of the card is away, so that nobody can authenticate. */
  readonly isOffSession: boolean;
}

/**
 * Charges a card for a payment intent.
 *
 * @returns the intent, `succeeded` or `requires_action`.
 * @throws StripeError 402 where the bank declines it; the intent keeps the reason.
 */
export function confirm(work: Work, intent: PaymentIntent, { method, isOffSession }: Confirmation): PaymentIntent {
  const { store, emit } = work;
  if (!isConfirmable(intent))
    throw unexpectedState(
      'payment_intent_unexpected_state',
      `You cannot confirm this PaymentIntent because it has a status of ${intent.status}.`,
    );
  const decline = declineOf(work, method);
  if (decline?.code === 'authentication_required' && !isOffSession) {
    const waiting = store.put({ ...intent, status: 'requires_action', payment_method: method.id } as const);
    emit('payment_intent.requires_action', waiting);
    return waiting;
  }
  const charge = store.put(chargeOf(store, { intent, method, decline }));
  if (decline !== undefined) throw declined(work, { intent, charge, decline });
  const paid = store.put({
    ...intent,
    status: 'succeeded',
    amount_received: intent.amount,
    payment_method: method.id,
    latest_charge: charge.id,
    last_payment_error: null,
  } as const);
  emit('charge.succeeded', charge);
  emit('payment_intent.succeeded', paid);
  return paid;
}

/** @throws StripeError where it is paid, or canceled already. */
export function cancel({ store, emit }: Work, intent: PaymentIntent): PaymentIntent {
  if (intent.status === 'succeeded' || intent.status === 'canceled')
    throw unexpectedState(
      'payment_intent_unexpected_state',
      `You cannot cancel this PaymentIntent because it has a status of ${intent.status}.`,
    );
  const canceled = store.put({ ...intent, status: 'canceled' } as const);
  emit('payment_intent.canceled', canceled);
  return canceled;
}

/** What a refund is made of. */
export interface RefundOrder {
  readonly charge: Charge;
  readonly amount: number;
  readonly reason: string | null;
  readonly metadata: Refund['metadata'];
}

/**
 * Takes money of a charge back. Where the control API says `refund-failed` of the payment intent, it
 * is pending first, and failed then.
 *
 * @throws StripeError where so much is not left.
 */
export function refund(work: Work, { charge, amount, reason, metadata }: RefundOrder): Refund {
  const { store, emit, outcomeOf } = work;
  const left = charge.amount - charge.amount_refunded;
  if (left === 0) throw unexpectedState('charge_already_refunded', `Charge ${charge.id} has already been refunded.`);
  if (amount > left || amount < 1)
    throw new StripeError(400, {
      type: 'invalid_request_error',
      message: `Refund amount (${amount}) must be positive, and at most the unrefunded amount on charge (${left})`,
      param: 'amount',
    });
  const { currency, id, payment_intent } = charge;
  const common = { ...store.base('refund', 're'), amount, currency, charge: id, payment_intent, reason, metadata };
  if (outcomeOf(payment_intent) === 'refund-failed') {
    const pending = { ...common, status: 'pending', balance_transaction: null } as const;
    emit('refund.created', pending);
    const failed = store.put({ ...pending, status: 'failed', failure_reason: 'lost_or_stolen_card' } as const);
    emit('refund.failed', failed);
    return pending;
  }
  const balance_transaction = book(store, { source: common.id, type: 'refund', amount: -amount, currency });
  const refunded = store.put({ ...common, status: 'succeeded', balance_transaction } as const);
  const amount_refunded = charge.amount_refunded + amount;
  emit('refund.created', refunded);
  emit('charge.refunded', store.put({ ...charge, amount_refunded, refunded: amount_refunded === charge.amount }));
  return refunded;
}

function isConfirmable({ status }: PaymentIntent): boolean {
  return status !== 'succeeded' && status !== 'canceled';
}

function declineOf({ outcomeOf }: Work, method: PaymentMethod): CardDecline | undefined {
  const outcome = outcomeOf(method.id) ?? outcomeOf(method.customer ?? '');
  if (outcome !== undefined) return outcome === 'declined' ? INSUFFICIENT_FUNDS : undefined;
  return cardOf(method)?.decline;
}

function declined(
  { store, emit }: Work,
  { intent, charge, decline }: { intent: PaymentIntent; charge: Charge; decline: CardDecline },
): StripeError {
  const { id: charge_id } = charge;
  const failed = store.put({
    ...intent,
    status: 'requires_payment_method',
    payment_method: null,
    latest_charge: charge_id,
    last_payment_error: decline,
  } as const);
  emit('charge.failed', charge);
  emit('payment_intent.payment_failed', failed);
  return new StripeError(402, { type: 'card_error', ...decline, charge: charge_id, payment_intent: failed });
}

function chargeOf(
  store: Store,
  { intent, method, decline }: { intent: PaymentIntent; method: PaymentMethod; decline: CardDecline | undefined },
): Charge {
  const { amount, currency, customer, id: payment_intent, metadata } = intent;
  const base = store.base('charge', 'ch');
  const isPaid = decline === undefined;
  return {
    ...base,
    amount,
    currency,
    customer,
    payment_intent,
    metadata,
    payment_method: method.id,
    amount_captured: isPaid ? amount : 0,
    amount_refunded: 0,
    refunded: false,
    status: isPaid ? 'succeeded' : 'failed',
    paid: isPaid,
    captured: isPaid,
    failure_code: decline?.code ?? null,
    failure_message: decline?.message ?? null,
    balance_transaction: isPaid ? book(store, { source: base.id, type: 'charge', amount, currency }) : null,
  };
}

/** Of a charge: 2.9 % and 30 minor units; Stripe keeps its fee when money goes back. */
function book(
  store: Store,
  { source, type, amount, currency }: { source: string; type: 'charge' | 'refund'; amount: number; currency: string },
): string {
  const fee = type === 'charge' ? Math.min(Math.round((amount * 29) / 1000) + 30, amount) : 0;
  const base = store.base('balance_transaction', 'txn');
  const money = { type, amount, fee, net: amount - fee, currency, source };
  return store.put({ ...base, ...money, status: 'available', available_on: base.created } as const).id;
}
