import type { Static } from 'typebox';
import type { Charge, Outcome, RefusalReason, StoredMethods } from '../../domain/ports.ts';
import { type CallResult, readJson, UNREADABLE } from '../call.ts';
import { Envelope, isDone, type PayFastApi, Token } from './api.ts';
import { itemNameOf } from './form.ts';
import type { Field } from './signature.ts';

/** Of a method that was cancelled, or never was whole. What the number in `response` says is not documented. */
const NOT_USABLE = /not in a valid state/i;

/** Codes of ISO 8583 that messages end in: `Transaction was successful(00)`. */
const REASONS: Readonly<Record<string, RefusalReason>> = { '51': 'insufficient_funds', '54': 'card_expired' };

/** PayFast charges it no more. */
const GONE = { outcome: 'refused', reason: 'method_unusable' } as const;

/** Charges by token ("Recurring billing", `adhoc`). PayFast knows no key: none is made twice. */
export function createPayFastCharges(api: PayFastApi): StoredMethods {
  return {
    async charge(charge) {
      const body: Field[] = [
        ['amount', charge.money.amount.toString()],
        ['item_name', itemNameOf(charge.itemName)],
        ['m_payment_id', charge.paymentId],
      ];
      const path = `/subscriptions/${encodeURIComponent(charge.method.token)}/adhoc`;
      const asked = await api({ method: 'POST', path, body });
      if (!asked.isAnswered) return asked.result;
      const { answer } = asked;
      return outcomeOfCharge(answer.status, readJson(Envelope, answer.body));
    },
    async forget({ token }) {
      const path = `/subscriptions/${encodeURIComponent(token)}`;
      const asked = await api({ method: 'PUT', path: `${path}/cancel` });
      if (!asked.isAnswered) return asked.result;
      const { status, body } = asked.answer;
      if (status === 404) return GONE;
      const envelope = readJson(Envelope, body);
      if (envelope !== undefined && isDone(envelope)) return { outcome: 'accepted', value: envelope };
      // It may be over already, or PayFast finds fault with the call. The token says which.
      return status === 400 ? goneOrNot(await api({ method: 'GET', path: `${path}/fetch` })) : UNREADABLE;
    },
  };
}

/** Pure. What became of a token that PayFast did not cancel. */
function goneOrNot(asked: CallResult): Outcome<never> {
  if (!asked.isAnswered) return asked.result;
  const { status, body } = asked.answer;
  if (status === 404) return GONE;
  const token = readJson(Token, body)?.data.response;
  return token !== undefined && /^(?:cancelled|complete)/i.test(token.status_text) ? GONE : UNREADABLE;
}

/**
 * Pure. What an answer to a charge says. One that is readable and says no is a refusal; whatever
 * cannot be read may have been charged (case A17).
 */
export function outcomeOfCharge(status: number, envelope: Static<typeof Envelope> | undefined): Outcome<Charge> {
  if (status === 404) return GONE;
  if (envelope === undefined) return UNREADABLE;
  const { pf_payment_id: chargeRef } = envelope.data;
  if (status < 300 && isDone(envelope)) {
    if (chargeRef === undefined) return UNREADABLE;
    return { outcome: 'accepted', value: { chargeRef: `${chargeRef}`, isSettled: true } };
  }
  if (envelope.status !== 'failed') return UNREADABLE;
  const message = messageOf(envelope);
  if (NOT_USABLE.test(message)) return GONE;
  const code = /\((\w{2})\)\s*$/.exec(message)?.[1];
  if (code === undefined) return { outcome: 'refused', reason: 'declined' };
  return { outcome: 'refused', reason: REASONS[code] ?? 'declined' };
}

function messageOf({ data }: Static<typeof Envelope>): string {
  return typeof data.message === 'string' ? data.message : '';
}
