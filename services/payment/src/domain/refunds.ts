import type { TransitionTable } from './transitions.ts';

export type RefundState = 'pending' | 'processing' | 'succeeded' | 'failed' | 'needs_review';

export type RefundEvent =
  /** The call to the provider is under way, or its outcome is not known. */
  | 'submitted'
  | 'succeeded'
  | 'failed'
  /** A verified fact that does not fit, such as another amount. */
  | 'unclear'
  /** A person decides. */
  | 'resolved_succeeded'
  | 'resolved_failed';

const open = {
  submitted: 'processing',
  succeeded: 'succeeded',
  failed: 'failed',
  unclear: 'needs_review',
  resolved_succeeded: 'refused',
  resolved_failed: 'refused',
} as const;

/** States of a refund. One that is in review keeps its reservation. */
export const refundTable: TransitionTable<RefundState, RefundEvent> = {
  pending: open,
  processing: { ...open, submitted: 'stays' },
  // A bank may give the money back days later (Stripe: refund.failed after succeeded).
  succeeded: { ...open, submitted: 'stays', succeeded: 'stays', failed: 'needs_review' },
  failed: { ...open, submitted: 'stays', succeeded: 'needs_review', failed: 'stays' },
  needs_review: {
    submitted: 'stays',
    succeeded: 'stays',
    failed: 'stays',
    unclear: 'stays',
    resolved_succeeded: 'succeeded',
    resolved_failed: 'failed',
  },
};

/** Whether the refund has not ended. */
export function isOpenRefund(state: RefundState): boolean {
  return state === 'pending' || state === 'processing';
}

/** Where the money of a payment is, in minor units. */
export interface PaymentBalance {
  readonly captured: bigint;
  /** Given back, by refunds that succeeded. */
  readonly refunded: bigint;
  /** Held by refunds that have not ended. */
  readonly reserved: bigint;
}

export type Reservation =
  | { readonly kind: 'reserved'; readonly amount: bigint; readonly balance: PaymentBalance }
  /** More than what is left, or nothing is: REFUND_EXCEEDS_PAYMENT. */
  | { readonly kind: 'exceeds'; readonly left: bigint };

/**
 * Takes a refund's amount out of what is left before a provider is called, so that refunds at the
 * same time never exceed the payment. The store does the same by one guarded update.
 *
 * @param amount all that is left where undefined.
 * @throws RangeError for an amount that is not positive.
 */
export function reserveRefund(balance: PaymentBalance, amount?: bigint): Reservation {
  const left = refundable(balance);
  const wanted = amount ?? left;
  if (amount !== undefined && amount <= 0n) throw new RangeError('a refund must be positive');
  if (wanted <= 0n || wanted > left) return { kind: 'exceeds', left };
  return { kind: 'reserved', amount: wanted, balance: { ...balance, reserved: balance.reserved + wanted } };
}

/** What may still be refunded, in minor units; never negative. */
export function refundable({ captured, refunded, reserved }: PaymentBalance): bigint {
  const left = captured - refunded - reserved;
  return left > 0n ? left : 0n;
}

interface RefundMove {
  readonly amount: bigint;
  readonly from: RefundState;
  readonly to: RefundState;
}

/**
 * The balance after a refund has moved. One that ends well turns its reservation into what was
 * refunded, one that fails releases it.
 */
export function balanceAfter(balance: PaymentBalance, { amount, from, to }: RefundMove): PaymentBalance {
  const before = holds(from);
  const after = holds(to);
  const change = (place: 'refunded' | 'reserved'): bigint =>
    (after === place ? amount : 0n) - (before === place ? amount : 0n);
  return {
    captured: balance.captured,
    refunded: balance.refunded + change('refunded'),
    reserved: balance.reserved + change('reserved'),
  };
}

/** Where the amount of a refund is counted. */
function holds(state: RefundState): 'refunded' | 'reserved' | 'nothing' {
  if (state === 'succeeded') return 'refunded';
  return state === 'failed' ? 'nothing' : 'reserved';
}
