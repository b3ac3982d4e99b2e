import type { Clock } from '@rollcall/platform/clock.ts';
import type { Stripe } from 'stripe';
import {
  type Charge,
  idempotencyKeyOf,
  type Outcome,
  type StoredCharge,
  type StoredMethod,
  type StoredMethods,
} from '../../domain/ports.ts';
import { UNREADABLE } from '../call.ts';
import { rejectionsOf, toStripeAmount } from './amounts.ts';
import { partsOf, readIntent, reasonOf } from './objects.ts';
import { attempt, outcomeOf } from './outcomes.ts';

/** Charges of stored methods, by PaymentIntents that are confirmed while they are made. */
export function createStripeCharges(stripe: Stripe, clock: Clock): StoredMethods {
  return {
    charge: (charge) => chargeMethod(stripe, charge, clock.now()),
    forget: (method) => deleteCustomer(stripe, method, clock.now()),
  };
}

/**
 * A checkout has Stripe make a customer for its card alone, with the payer's name and address. All of it
 * goes with the customer, which is charged no more (docs.stripe.com/api/customers/delete).
 */
async function deleteCustomer(stripe: Stripe, method: StoredMethod, now: Date): Promise<Outcome<unknown>> {
  const { customer } = partsOf(method);
  const tried = await attempt(() => stripe.customers.del(customer), 'not_accepted', now);
  return tried.kind === 'object' ? { outcome: 'accepted', value: tried.object } : outcomeOf(tried);
}

async function chargeMethod(stripe: Stripe, charge: StoredCharge, now: Date): Promise<Outcome<Charge>> {
  const { paymentId, attempt: number, money, itemName, method } = charge;
  if (rejectionsOf(money).length > 0) return { outcome: 'refused', reason: 'amount_not_accepted' };
  const { customer, method: paymentMethod } = partsOf(method);
  const amount = toStripeAmount(money);
  const params = {
    amount,
    currency: money.currency.toLowerCase(),
    customer,
    payment_method: paymentMethod,
    off_session: true,
    confirm: true,
    description: itemName,
    metadata: { paymentId, origin: 'stored' },
  } as const;
  const options = { idempotencyKey: idempotencyKeyOf('pay', paymentId, number) };
  const tried = await attempt(() => stripe.paymentIntents.create(params, options), 'not_accepted', now);
  // Such as one that was detached, which Stripe never takes again; a decline names no parameter.
  if (tried.kind === 'refused' && (tried.isMissing || tried.param === 'payment_method')) {
    return { ...tried.refusal, reason: 'method_unusable' };
  }
  if (tried.kind !== 'object') return outcomeOf(tried);
  const intent = readIntent(tried.object);
  if (intent?.metadata?.paymentId !== paymentId) return UNREADABLE;
  const fault = intent.last_payment_error;
  switch (intent.status) {
    case 'succeeded':
      if (intent.amount_received !== amount) return UNREADABLE;
      return { outcome: 'accepted', value: { chargeRef: intent.id, isSettled: true } };
    case 'processing':
      return { outcome: 'accepted', value: { chargeRef: intent.id, isSettled: false } };
    case 'requires_action':
      return { outcome: 'refused', reason: 'authentication_required' };
    case 'requires_payment_method':
      return { outcome: 'refused', reason: reasonOf(fault?.code, fault?.decline_code) };
    default:
      return UNREADABLE;
  }
}
