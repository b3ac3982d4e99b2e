import type { PaymentBalance } from './refunds.ts';
import { type Transition, transitionTo } from './transitions.ts';

export type PaymentState =
  | 'pending'
  | 'processing'
  | 'succeeded'
  | 'failed'
  | 'expired'
  | 'cancelled'
  | 'partially_refunded'
  | 'refunded'
  | 'disputed'
  | 'needs_review';

/**
 * What happens to a payment. Facts come of a provider's answer, lookup or verified notification; the
 * page that a payer returns to is none (PROVIDERS, section 0).
 */
export type PaymentEvent =
  /** An attempt is under way, or its outcome is not known. */
  | 'submitted'
  /** The provider has the money: of this merchant, exactly the amount. */
  | 'captured'
  /** It has money for this payment a second time, under another reference of its own. */
  | 'captured_again'
  | 'declined'
  | 'expired'
  /** The payer, or the provider, gave it up. */
  | 'abandoned'
  /** Our caller asks for it. */
  | 'cancel'
  /** A refund has ended well, and is in the balance. */
  | 'refunded'
  | 'dispute_opened'
  | 'dispute_won'
  | 'dispute_lost'
  /** A verified fact that does not fit, such as another amount. */
  | 'unclear'
  /** A person decides. */
  | 'resolved_paid'
  | 'resolved_unpaid'
  | 'resolved_refunded'
  /** What was in doubt is not so; what is booked stays. */
  | 'resolved_dismissed';

/**
 * `by_balance` is succeeded, partially_refunded, refunded or disputed, as the payment's money says;
 * `given_back` is one of those without succeeded.
 */
type Target = PaymentState | 'by_balance' | 'given_back' | 'late_capture' | 'stays' | 'refused';
type Row = Readonly<Record<PaymentEvent, Target>>;

const noDecision = {
  resolved_paid: 'refused',
  resolved_unpaid: 'refused',
  resolved_refunded: 'refused',
  resolved_dismissed: 'refused',
} as const;

const open: Row = {
  ...noDecision,
  submitted: 'processing',
  captured: 'by_balance',
  captured_again: 'needs_review',
  declined: 'failed',
  expired: 'expired',
  abandoned: 'cancelled',
  cancel: 'cancelled',
  // Out of order: what is not paid, as far as we know, was refunded or disputed.
  refunded: 'needs_review',
  dispute_opened: 'needs_review',
  dispute_won: 'needs_review',
  dispute_lost: 'needs_review',
  unclear: 'needs_review',
};

const paid: Row = {
  ...noDecision,
  submitted: 'stays',
  captured: 'stays',
  captured_again: 'needs_review',
  declined: 'stays',
  expired: 'stays',
  abandoned: 'stays',
  cancel: 'refused',
  refunded: 'by_balance',
  dispute_opened: 'disputed',
  // Its opening comes later, or never did.
  dispute_won: 'by_balance',
  dispute_lost: 'by_balance',
  unclear: 'needs_review',
};

const unpaid: Row = {
  ...open,
  submitted: 'stays',
  captured: 'late_capture',
  declined: 'stays',
  expired: 'stays',
  abandoned: 'stays',
  cancel: 'refused',
};

const table: Readonly<Record<PaymentState, Row>> = {
  pending: open,
  processing: { ...open, submitted: 'stays' },
  succeeded: paid,
  partially_refunded: paid,
  refunded: paid,
  disputed: paid,
  failed: unpaid,
  expired: unpaid,
  cancelled: { ...unpaid, cancel: 'stays' },
  needs_review: {
    submitted: 'stays',
    captured: 'stays',
    captured_again: 'stays',
    declined: 'stays',
    expired: 'stays',
    abandoned: 'stays',
    cancel: 'refused',
    refunded: 'stays',
    dispute_opened: 'stays',
    dispute_won: 'stays',
    dispute_lost: 'stays',
    unclear: 'stays',
    resolved_paid: 'by_balance',
    resolved_unpaid: 'failed',
    resolved_refunded: 'given_back',
    resolved_dismissed: 'by_balance',
  },
};

/** What is done with money that arrives for a payment that had failed, expired or was cancelled. */
export type LateCapture = 'refund' | 'review';

export interface PaymentTransition {
  readonly transition: Transition<PaymentState>;
  /** The money came too late, and all of it is to be sent back. */
  readonly refundAll: boolean;
}

interface Payment {
  readonly state: PaymentState;
  /** After the event: with what it captured or refunded. */
  readonly balance: PaymentBalance;
  /** Whether a dispute of it is open after the event. */
  readonly isDisputed: boolean;
}

/** What an event makes of a payment (SERVICES, section 4, States). It is the only way to change one. */
export function movePayment(payment: Payment, event: PaymentEvent, lateCapture: LateCapture): PaymentTransition {
  const target = table[payment.state][event];
  if (target === 'late_capture') {
    const to = lateCapture === 'refund' ? 'succeeded' : 'needs_review';
    return { transition: { kind: 'moved', to }, refundAll: lateCapture === 'refund' };
  }
  const to = target === 'by_balance' || target === 'given_back' ? stateByMoney(payment, target) : target;
  return { transition: to === payment.state ? { kind: 'stays' } : transitionTo<PaymentState>(to), refundAll: false };
}

/** Whether a refund of the payment may begin. What is disputed or in review may not be paid back twice. */
export function isRefundable(state: PaymentState): boolean {
  return state === 'succeeded' || state === 'partially_refunded';
}

/** Whether nothing will happen to it by itself: its outcome need not be looked up. */
export function isSettled(state: PaymentState): boolean {
  return state !== 'pending' && state !== 'processing';
}

function stateByMoney({ balance, isDisputed }: Payment, target: 'by_balance' | 'given_back'): PaymentState {
  const { captured, refunded } = balance;
  if (isDisputed) return 'disputed';
  if (refunded === 0n && target === 'by_balance') return 'succeeded';
  return refunded < captured ? 'partially_refunded' : 'refunded';
}
