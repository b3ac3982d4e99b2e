import type { Stripe } from 'stripe';
import { idempotencyKeyOf, type Lookup, type Outcome, type Refund, type RefundRequest } from '../../domain/ports.ts';
import { UNREADABLE, unknownLookup } from '../call.ts';
import { rejectionsOf, toStripeAmount } from './amounts.ts';
import { readList, readRefund, refundFacts } from './objects.ts';
import { attempt, outcomeOf } from './outcomes.ts';

/** More refunds of one payment are not looked through. */
const PAGE = 100;

/** Gives back a part of a PaymentIntent. */
export async function refundPayment(stripe: Stripe, request: RefundRequest, now: Date): Promise<Outcome<Refund>> {
  const { refundId, paymentId, attempt: number, money, chargeRef } = request;
  if (rejectionsOf(money).length > 0) return { outcome: 'refused', reason: 'amount_not_accepted' };
  const amount = toStripeAmount(money);
  const params = { payment_intent: chargeRef, amount, metadata: { refundId, paymentId } };
  const options = { idempotencyKey: idempotencyKeyOf('refund', refundId, number) };
  const tried = await attempt(() => stripe.refunds.create(params, options), 'not_refundable', now);
  if (tried.kind !== 'object') return outcomeOf(tried);
  const refund = readRefund(tried.object);
  if (refund?.metadata?.refundId !== refundId || refund.amount !== amount) return UNREADABLE;
  if (refund.status === 'failed' || refund.status === 'canceled')
    return { outcome: 'refused', reason: 'not_refundable' };
  return { outcome: 'accepted', value: { refundRef: refund.id, isSettled: refund.status === 'succeeded' } };
}

/** What became of a refund: by its id, or by ours among the refunds of the payment. */
export async function lookUpRefund(stripe: Stripe, request: RefundRequest, now: Date): Promise<Lookup> {
  const { refundId, refundRef, chargeRef } = request;
  const tried = await attempt(
    () =>
      refundRef === undefined
        ? stripe.refunds.list({ payment_intent: chargeRef, limit: PAGE })
        : stripe.refunds.retrieve(refundRef),
    'not_accepted',
    now,
  );
  if (tried.kind === 'none') return unknownLookup(tried.result);
  if (tried.kind === 'refused') return { found: 'unknown' };
  const list = refundRef === undefined ? readList(tried.object) : [tried.object];
  if (list === undefined) return { found: 'unknown' };
  const refund = list.find((entry) => readRefund(entry)?.metadata?.refundId === refundId);
  if (refund === undefined)
    return list.length < PAGE && refundRef === undefined ? { found: 'absent' } : { found: 'unknown' };
  const facts = refundFacts(refund) ?? [];
  return facts.length === 0 ? { found: 'open' } : { found: 'facts', facts };
}
