import type { Money, ProviderFact } from '../../domain/ports.ts';
import type { ChangeSource, PaymentChange } from './changes.ts';
import type { Snapshot } from './payments.ts';

/** A fact about a payment, as opposed to one about a refund or a method. */
export type PaymentFact = Extract<ProviderFact, { readonly payment: unknown }>;

/**
 * Pure. What a fact changes. Money has to be what was asked for to the minor unit; a second charge of
 * one payment is another one where its reference is.
 */
export function changeOfFact(snapshot: Snapshot, fact: PaymentFact, source: ChangeSource): PaymentChange | undefined {
  if (fact.kind === 'payment.succeeded') return captureChange(snapshot, fact, source);
  if (fact.kind === 'method.stored') {
    // Keeping the method was all that was to be paid for.
    return snapshot.payment.purpose === 'keep' ? { event: 'captured', source, method: fact.method } : undefined;
  }
  return {
    event: events[fact.kind],
    source,
    reason: 'reason' in fact ? fact.reason : reasons[fact.kind],
    disputed: 'money' in fact ? fact.money : undefined,
  };
}

const events = {
  'payment.processing': 'submitted',
  'payment.failed': 'declined',
  'payment.attempt_failed': 'attempt_failed',
  'payment.expired': 'expired',
  'payment.cancelled': 'abandoned',
  'dispute.opened': 'dispute_opened',
  'dispute.won': 'dispute_won',
  'dispute.lost': 'dispute_lost',
  unclear: 'unclear',
} as const;

const reasons: Readonly<Partial<Record<PaymentFact['kind'], string>>> = {
  'dispute.lost': 'dispute_lost',
  unclear: 'not_understood',
};

function captureChange(
  { payment, charges }: Snapshot,
  { payment: reference, money, fee, method }: Extract<PaymentFact, { readonly kind: 'payment.succeeded' }>,
  source: ChangeSource,
): PaymentChange {
  const chargeRef = reference.chargeRef ?? reference.checkoutRef ?? payment.id;
  const told = { source, charge: { chargeRef, money, fee }, method };
  const reason = moneyFault(payment.money, money);
  if (reason !== undefined) return { ...told, event: 'unclear', reason };
  const isKnown = charges.some((charge) => charge.chargeRef === chargeRef);
  if (charges.length > 0 && !isKnown) return { ...told, event: 'captured_again', reason: 'paid_twice' };
  return { ...told, event: 'captured' };
}

/** Pure. Why the money is not what was asked for. */
function moneyFault(expected: Money, { amount, currency }: Money): string | undefined {
  if (currency !== expected.currency) return 'wrong_currency';
  return amount === expected.amount ? undefined : 'wrong_amount';
}
