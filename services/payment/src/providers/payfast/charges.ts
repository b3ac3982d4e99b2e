import type { Static } from 'typebox';
import type { Charge, Outcome, RefusalReason, StoredMethods } from '../../domain/ports.ts';
import { readJson, UNREADABLE } from '../call.ts';
import { Envelope, isDone, type PayFastApi } from './api.ts';
import { itemNameOf } from './form.ts';
import type { Field } from './signature.ts';

/** Of a method that was cancelled, or never was whole. What the number in `response` says is not documented. */
const NOT_USABLE = /not in a valid state/i;

/** Codes of ISO 8583 that messages end in: `Transaction was successful(00)`. */
const REASONS: Readonly<Record<string, RefusalReason>> = { '51': 'insufficient_funds', '54': 'card_expired' };

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
      const asked = await api({ method: 'PUT', path: `/subscriptions/${encodeURIComponent(token)}/cancel` });
      if (!asked.isAnswered) return asked.result;
      const { status, body } = asked.answer;
      // There is none, or it is not in a state to be cancelled.
      if (status === 400 || status === 404) return { outcome: 'refused', reason: 'method_unusable' };
      const envelope = readJson(Envelope, body);
      return envelope !== undefined && isDone(envelope) ? { outcome: 'accepted', value: envelope } : UNREADABLE;
    },
  };
}

/**
 * Pure. What an answer to a charge says. One that is readable and says no is a refusal; whatever
 * cannot be read may have been charged (case A17).
 */
export function outcomeOfCharge(status: number, envelope: Static<typeof Envelope> | undefined): Outcome<Charge> {
  if (status === 404) return { outcome: 'refused', reason: 'method_unusable' };
  if (envelope === undefined) return UNREADABLE;
  const { pf_payment_id: chargeRef } = envelope.data;
  if (status < 300 && isDone(envelope)) {
    if (chargeRef === undefined) return UNREADABLE;
    return { outcome: 'accepted', value: { chargeRef: `${chargeRef}`, isSettled: true } };
  }
  if (envelope.status !== 'failed') return UNREADABLE;
  const message = messageOf(envelope);
  if (NOT_USABLE.test(message)) return { outcome: 'refused', reason: 'method_unusable' };
  const code = /\((\w{2})\)\s*$/.exec(message)?.[1];
  if (code === undefined) return { outcome: 'refused', reason: 'declined' };
  return { outcome: 'refused', reason: REASONS[code] ?? 'declined' };
}

function messageOf({ data }: Static<typeof Envelope>): string {
  return typeof data.message === 'string' ? data.message : '';
}
