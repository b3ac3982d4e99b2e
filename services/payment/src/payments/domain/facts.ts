import type { Money, ProviderFact } from '../../domain/ports.ts';
import type { ChangeSource, PaymentChange } from './changes.ts';
import { decidedOn } from './money-in-doubt.ts';
import type { KnownDispute, Snapshot } from './payments.ts';
import type { Refund, RefundChange, RefundFact } from './refunds.ts';

/** A fact about a payment, as opposed to one about a refund or a method. */
export type PaymentFact = Extract<ProviderFact, { readonly payment: unknown }>;

/**
 * Pure. What a fact changes. Money has to be what was asked for to the minor unit; a second charge of
 * one payment is another one where its reference is.
 */
export function changeOfFact(snapshot: Snapshot, fact: PaymentFact, told: Told): PaymentChange | undefined {
  const { source, at } = told;
  if (fact.kind === 'payment.succeeded') return captureChange(snapshot, fact, source);
  if ('disputeRef' in fact) return disputeChange(snapshot, fact, source);
  if (fact.kind === 'method.stored') {
    // Keeping the method was all that was to be paid for.
    return snapshot.payment.purpose === 'keep' ? { event: 'captured', source, method: fact.method } : undefined;
  }
  return {
    event: events[fact.kind],
    source,
    reason: 'reason' in fact ? fact.reason : reasons[fact.kind],
    ...(fact.kind === 'payment.processing' ? { processingAt: at } : {}),
  };
}

interface Told {
  readonly source: ChangeSource;
  readonly at: Date;
}

/**
 * Pure. What a refund changes that had failed, and was made after all, where so much is not left any
 * more: more went back than came. A person decides on it, once.
 */
export function changeOfExcess(snapshot: Snapshot, refund: Refund, { source, refundRef }: RefundChange) {
  const known = refundRef ?? refund.refundRef ?? refund.id;
  if (snapshot.returns.some((each) => each.refundRef === known)) return undefined;
  const returned = { refundRef: known, money: refund.money };
  return { event: 'unclear', source, reason: 'refunded_beyond', returned } as const;
}

/** Pure. What a refund changes that was not made here: a person decides on it, once. */
export function changeOfReturn(snapshot: Snapshot, fact: RefundFact, source: ChangeSource): PaymentChange | undefined {
  if (fact.kind !== 'refund.succeeded') return undefined;
  const { money, refund } = fact;
  const refundRef = refund.refundRef ?? `${refund.chargeRef}:${money.amount}`;
  if (snapshot.returns.some((known) => known.refundRef === refundRef)) return undefined;
  return { event: 'unclear', source, reason: 'refunded_elsewhere', returned: { refundRef, money } };
}

type DisputeFact = Extract<PaymentFact, { readonly disputeRef: string }>;

const disputeStates = { 'dispute.opened': 'open', 'dispute.won': 'won', 'dispute.lost': 'lost' } as const;

function disputeChange(
  { disputes }: Snapshot,
  { kind, disputeRef, money }: DisputeFact,
  source: ChangeSource,
): PaymentChange | undefined {
  const known = disputes.find((each) => each.disputeRef === disputeRef);
  const dispute: KnownDispute = { disputeRef, money, state: disputeStates[kind], counted: known?.counted ?? 0n };
  if (known !== undefined && (dispute.state === 'open' || known.state === dispute.state)) return undefined;
  // It had ended otherwise.
  if (known !== undefined && known.state !== 'open') return { event: 'unclear', source, reason: 'dispute_changed' };
  return { event: disputeEvents[kind], source, reason: kind === 'dispute.lost' ? 'dispute_lost' : undefined, dispute };
}

const disputeEvents = {
  'dispute.opened': 'dispute_opened',
  'dispute.won': 'dispute_won',
  'dispute.lost': 'dispute_lost',
} as const;

const events = {
  'payment.processing': 'submitted',
  'payment.failed': 'declined',
  'payment.attempt_failed': 'attempt_failed',
  'payment.expired': 'expired',
  'payment.cancelled': 'abandoned',
  unclear: 'unclear',
} as const;

const reasons: Readonly<Partial<Record<PaymentFact['kind'], string>>> = {
  unclear: 'not_understood',
};

function captureChange(
  snapshot: Snapshot,
  { payment: reference, money, fee, method }: Extract<PaymentFact, { readonly kind: 'payment.succeeded' }>,
  source: ChangeSource,
): PaymentChange | undefined {
  const { payment, charges } = snapshot;
  const chargeRef = reference.chargeRef ?? reference.checkoutRef ?? payment.id;
  const told = { source, charge: { chargeRef, money, fee }, method };
  const known = charges.find((charge) => charge.chargeRef === chargeRef);
  if (known !== undefined && moneyFault(known.money, money) === undefined) {
    // What is in no balance, and no longer in review, a person has decided on.
    return known.isBooked || payment.state === 'needs_review' ? { ...told, event: 'captured' } : undefined;
  }
  // What is booked already is corrected by a person alone.
  const corrected = known?.isBooked === true ? moneyFault(known.money, money) : undefined;
  const reason = moneyFault(payment.money, money) ?? corrected;
  if (reason !== undefined) return { ...told, event: 'unclear', reason };
  // The same charge, told of with another amount before, is no second one.
  const hasOther = charges.some((charge) => charge !== known);
  if (hasOther && decidedOn(snapshot, money) === undefined)
    return { ...told, event: 'captured_again', reason: 'paid_twice' };
  return { ...told, event: 'captured' };
}

/** Pure. Why the money is not what was asked for. */
function moneyFault(expected: Money, { amount, currency }: Money): string | undefined {
  if (currency !== expected.currency) return 'wrong_currency';
  return amount === expected.amount ? undefined : 'wrong_amount';
}
