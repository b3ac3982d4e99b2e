import type { Clock } from '@rollcall/platform/clock.ts';
import { type Static, Type } from 'typebox';
import type { Lookup, Outcome, Refund, RefundRequest } from '../../domain/ports.ts';
import { type NoResult, readJson, UNREADABLE, unknownLookup } from '../call.ts';
import { Envelope, isDone, type PayFastApi } from './api.ts';
import type { Field } from './signature.ts';

const SURELY_SHOWN_MS = 24 * 3_600_000;

const Method = Type.Object({ method: Type.String() });

/** `GET /refunds/query/{id}`: amounts in cents. */
const RefundState = Type.Object({
  amount_original: Type.Integer(),
  amount_available_for_refund: Type.Integer(),
  status: Type.String(),
  refund_full: Type.Optional(Method),
  refund_partial: Type.Optional(Method),
});

type State = Static<typeof RefundState>;

/** The API wraps its answers in an envelope; the documentation shows this one without. */
const RefundQuery = Type.Union([RefundState, Type.Object({ data: Type.Object({ response: RefundState }) })]);

type Asked = { readonly state: State } | { readonly result: NoResult } | { readonly isRefused: true };

/**
 * Gives back by `POST /refunds/{id}`. PayFast knows no key and no id of a refund: what is left to be
 * refunded, before and after, says whether one was made. Callers make one at a time for a payment.
 */
export async function refundPayment(api: PayFastApi, request: RefundRequest): Promise<Outcome<Refund>> {
  const { money, chargeRef, reason } = request;
  const before = await askState(api, chargeRef);
  // Nothing has been asked for yet.
  if ('result' in before) return asFailed(before.result);
  if ('isRefused' in before) return { outcome: 'refused', reason: 'not_refundable' };
  const refusal = refusalOf(before.state, money.amount);
  if (refusal !== undefined) return refusal;

  const body: Field[] = [
    ['amount', money.amount.toString()],
    ['reason', reason],
    ['notify_buyer', '1'],
  ];
  const asked = await api({ method: 'POST', path: `/refunds/${encodeURIComponent(chargeRef)}`, body });
  if (!asked.isAnswered && asked.result.outcome === 'failed') return asked.result;
  const answer = asked.isAnswered ? readJson(Envelope, asked.answer.body) : undefined;
  if (answer?.status === 'failed') return { outcome: 'refused', reason: 'not_refundable' };

  const after = await askState(api, chargeRef);
  const left = BigInt(before.state.amount_available_for_refund) - money.amount;
  const isTaken = 'state' in after && BigInt(after.state.amount_available_for_refund) === left;
  if (isTaken) return { outcome: 'accepted', value: { isSettled: true } };
  if (answer !== undefined && isDone(answer)) return { outcome: 'accepted', value: { isSettled: false } };
  return asked.isAnswered ? UNREADABLE : asked.result;
}

/**
 * Whether a refund was made, by what is left of the payment that could be refunded. That shows late,
 * so a refund is believed to be absent a day after the call.
 */
export async function lookUpRefund(api: PayFastApi, clock: Clock, request: RefundRequest): Promise<Lookup> {
  const { refundId, money, paid, refundedBefore, chargeRef, calledAt } = request;
  const asked = await askState(api, chargeRef);
  if ('result' in asked) return unknownLookup(asked.result);
  if ('isRefused' in asked) return { found: 'unknown' };
  const available = BigInt(asked.state.amount_available_for_refund);
  const before = paid - refundedBefore;
  if (available === before - money.amount) {
    return { found: 'facts', facts: [{ kind: 'refund.succeeded', refund: { refundId, chargeRef }, money }] };
  }
  const isShown = clock.now().getTime() - calledAt.getTime() > SURELY_SHOWN_MS;
  return available === before && isShown ? { found: 'absent' } : { found: 'unknown' };
}

async function askState(api: PayFastApi, chargeRef: string): Promise<Asked> {
  const asked = await api({ method: 'GET', path: `/refunds/query/${encodeURIComponent(chargeRef)}` });
  if (!asked.isAnswered) return { result: asked.result };
  if (asked.answer.status >= 400) return { isRefused: true };
  const query = readJson(RefundQuery, asked.answer.body);
  if (query === undefined) return { result: UNREADABLE };
  return { state: 'data' in query ? query.data.response : query };
}

/** Pure. Why this much cannot be refunded to where it came from; undefined: it can. */
function refusalOf(state: State, amount: bigint): Outcome<Refund> | undefined {
  const available = BigInt(state.amount_available_for_refund);
  if (state.status !== 'REFUNDABLE' || amount > available) return { outcome: 'refused', reason: 'not_refundable' };
  const isWhole = amount === available && state.amount_original === state.amount_available_for_refund;
  const method = (isWhole ? state.refund_full : state.refund_partial)?.method;
  if (method === 'PAYMENT_SOURCE') return undefined;
  // A payout needs the payer's bank account, which we do not ask for.
  return { outcome: 'refused', reason: method === 'BANK_PAYOUT' ? 'not_supported' : 'not_refundable' };
}

function asFailed(result: NoResult): NoResult {
  return result.outcome === 'failed' ? result : { ...result, outcome: 'failed', reason: 'unreachable' };
}
