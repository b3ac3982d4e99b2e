import type { Stripe } from 'stripe';
import { type Checkout, type CheckoutRequest, idempotencyKeyOf, type Outcome } from '../../domain/ports.ts';
import { isWebUrl, UNREADABLE } from '../call.ts';
import { rejectionsOf, toStripeAmount } from './amounts.ts';
import { readSession } from './objects.ts';
import { attempt, outcomeOf } from './outcomes.ts';

/** Of a product's name. */
const MOST_CHARACTERS = 250;

type Params = Stripe.Checkout.SessionCreateParams;

/** Makes a Checkout Session, whose page is Stripe's (docs.stripe.com/api/checkout/sessions). */
export async function createCheckout(stripe: Stripe, request: CheckoutRequest, now: Date): Promise<Outcome<Checkout>> {
  const { paymentId, attempt: number, money, purpose } = request;
  if (rejectionsOf(money).length > 0) return { outcome: 'refused', reason: 'amount_not_accepted' };
  const params = purpose === 'keep' ? setupParams(request) : paymentParams(request);
  const options = { idempotencyKey: idempotencyKeyOf('pay', paymentId, number) };
  const tried = await attempt(() => stripe.checkout.sessions.create(params, options), 'not_accepted', now);
  if (tried.kind !== 'object') return outcomeOf(tried);
  const session = readSession(tried.object);
  const amount = purpose === 'keep' ? null : toStripeAmount(money);
  const isOurs = session?.metadata?.paymentId === paymentId && (amount === null || session.amount_total === amount);
  if (!isOurs || typeof session.url !== 'string' || !isWebUrl(session.url)) return UNREADABLE;
  return { outcome: 'accepted', value: { checkoutRef: session.id, redirect: { kind: 'url', url: session.url } } };
}

/** Expires a session that is open (docs.stripe.com/api/checkout/sessions/expire). */
export async function closeCheckout(stripe: Stripe, checkoutRef: string, now: Date): Promise<Outcome<unknown>> {
  const tried = await attempt(() => stripe.checkout.sessions.expire(checkoutRef), 'not_accepted', now);
  return tried.kind === 'object' ? { outcome: 'accepted', value: tried.object } : outcomeOf(tried);
}

function commonParams({ paymentId, customerEmail, returnUrl, cancelUrl }: CheckoutRequest): Params {
  return {
    success_url: returnUrl,
    cancel_url: cancelUrl,
    client_reference_id: paymentId,
    customer_email: customerEmail,
    metadata: { paymentId },
  };
}

function paymentParams(request: CheckoutRequest): Params {
  const { paymentId, purpose, money, itemName } = request;
  const name = Array.from(itemName).slice(0, MOST_CHARACTERS).join('');
  const keeps = purpose === 'pay-and-keep';
  return {
    ...commonParams(request),
    mode: 'payment',
    line_items: [
      {
        quantity: 1,
        price_data: {
          currency: money.currency.toLowerCase(),
          unit_amount: toStripeAmount(money),
          product_data: { name },
        },
      },
    ],
    payment_intent_data: {
      metadata: { paymentId, origin: 'checkout' },
      ...(keeps ? { setup_future_usage: 'off_session' } : {}),
    },
    ...(keeps ? { customer_creation: 'always' } : {}),
  };
}

function setupParams(request: CheckoutRequest): Params {
  const { paymentId, money } = request;
  return {
    ...commonParams(request),
    mode: 'setup',
    currency: money.currency.toLowerCase(),
    customer_creation: 'always',
    setup_intent_data: { metadata: { paymentId } },
  };
}
