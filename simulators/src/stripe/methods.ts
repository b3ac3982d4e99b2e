import { cardDetails, TEST_CARDS, type TestCard } from './cards.ts';
import { noSuch, StripeError, unexpectedState } from './errors.ts';
import type { Customer, PaymentMethod } from './objects.ts';
import type { Work } from './payments.ts';

/** A payment method of a card, which belongs to nobody yet. */
export function createMethod({ store }: Work, card: TestCard): PaymentMethod {
  const method = { ...store.base('payment_method', 'pm'), type: 'card', customer: null } as const;
  return store.put({ ...method, card: cardDetails(card) });
}

/**
 * The payment method with the id. That of a test card, such as `pm_card_visa`, is made anew.
 *
 * @throws StripeError 404 where there is none.
 */
export function getMethod(work: Work, id: string, param: string): PaymentMethod {
  const card = TEST_CARDS.find(({ methodId }) => methodId === id);
  const method = card === undefined ? work.store.find('payment_method', id) : createMethod(work, card);
  if (method === undefined) throw noSuch('PaymentMethod', id, param);
  return method;
}

/** @throws StripeError where the method belongs to somebody else, or was detached. */
export function assertUsable({ store }: Work, method: PaymentMethod, customer: string | null): void {
  if (store.detached.has(method.id)) throw notUsable('was detached from a customer, and may not be used again');
  if (method.customer === null || method.customer === customer) return;
  throw notUsable(`was attached to another customer than ${customer ?? 'none'}`);
}

function notUsable(why: string): StripeError {
  const message = `The provided PaymentMethod ${why}.`;
  return new StripeError(400, { type: 'invalid_request_error', message, param: 'payment_method' });
}

/** Keeps a card for later charges of the customer. @throws StripeError where its bank declines that. */
export function attach({ store, emit }: Work, method: PaymentMethod, customer: Customer): PaymentMethod {
  if (method.customer === customer.id) return method;
  if (store.detached.has(method.id)) throw notUsable('was detached from a customer, and may not be used again');
  if (method.customer !== null)
    throw unexpectedState('payment_method_unexpected_state', 'The payment method is attached to a customer already.');
  const card = TEST_CARDS.find(({ methodId }) => methodId === method.card.fingerprint);
  if (card?.isStorable === false && card.decline !== undefined)
    throw new StripeError(402, { type: 'card_error', ...card.decline });
  const attached = store.put({ ...method, customer: customer.id });
  emit('payment_method.attached', attached);
  return attached;
}

/** The customer cannot be charged by it any more. @throws StripeError where nobody can. */
export function detach({ store, emit }: Work, method: PaymentMethod): PaymentMethod {
  if (method.customer === null)
    throw unexpectedState('payment_method_unexpected_state', 'The payment method is attached to nobody.');
  store.detached.add(method.id);
  const detached = store.put({ ...method, customer: null });
  emit('payment_method.detached', detached);
  return detached;
}
