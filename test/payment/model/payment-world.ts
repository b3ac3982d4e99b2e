import type { BillingPeriod } from '@rollcall/payment/domain/calendar.ts';
import { planAfterNothing, planLookUp } from '@rollcall/payment/domain/lookups.ts';
import {
  isRefundable,
  isSettled,
  movePayment,
  type PaymentEvent,
  type PaymentState,
} from '@rollcall/payment/domain/payment-states.ts';
import {
  balanceAfter,
  type PaymentBalance,
  type RefundEvent,
  type RefundState,
  refundTable,
  reserveRefund,
} from '@rollcall/payment/domain/refunds.ts';
import { move } from '@rollcall/payment/domain/transitions.ts';

/** What becomes of a call to the provider. It may take the money, and its answer may get lost, or the call itself. */
export type Fate = 'taken' | 'refused' | 'taken, answer lost' | 'refused, answer lost' | 'lost' | 'not reached';

export const fates: readonly Fate[] = [
  'taken',
  'refused',
  'taken, answer lost',
  'refused, answer lost',
  'lost',
  'not reached',
];

interface Outcome {
  since: Temporal.Instant | undefined;
  lookUps: number;
  lastLookUpAt: Temporal.Instant | undefined;
  /** What the provider knows; undefined where no call reached it. */
  truth: 'taken' | 'refused' | undefined;
}

interface RefundRow extends Outcome {
  readonly amount: bigint;
  /** Whether the provider knows the key of the call. */
  readonly isKeyed: boolean;
  state: RefundState;
  calls: number;
  /** How often the provider gave the money back. */
  made: number;
}

interface PaymentRow extends Outcome {
  /** Of its period, and which charge for it this is. */
  readonly key: string;
  readonly attempt: number;
  readonly amount: bigint;
  state: PaymentState;
  balance: PaymentBalance;
  readonly refunds: RefundRow[];
}

/**
 * Charges and refunds of one subscription, the provider that has them, and all that goes wrong on
 * the way. Like the service it calls once, then looks up; a refund that was not made it calls for again.
 */
export function createPaymentWorld(charged: (payment: PaymentRow, outcome: 'succeeded' | 'failed') => void) {
  const payments: PaymentRow[] = [];

  function report(payment: PaymentRow, event: PaymentEvent): void {
    const captured = { ...payment.balance, captured: event === 'captured' ? payment.amount : payment.balance.captured };
    const { transition } = movePayment({ state: payment.state, balance: captured, isDisputed: false }, event, 'review');
    if (transition.kind !== 'moved') return;
    payment.state = transition.to;
    payment.balance = captured;
    if (transition.to === 'succeeded') charged(payment, 'succeeded');
    if (transition.to === 'failed') charged(payment, 'failed');
  }

  function reportRefund(payment: PaymentRow, refund: RefundRow, event: RefundEvent): void {
    const transition = move(refundTable, refund.state, event);
    if (transition.kind !== 'moved') return;
    const change = { amount: refund.amount, from: refund.state, to: transition.to };
    payment.balance = balanceAfter(payment.balance, change);
    refund.state = transition.to;
    if (transition.to === 'succeeded') report(payment, 'refunded');
  }

  /** Written down before, like every call. */
  function sendRefund(payment: PaymentRow, refund: RefundRow, { fate, now }: { fate: Fate; now: Temporal.Instant }) {
    const known = refund.isKeyed ? refund.truth : undefined;
    refund.calls += 1;
    reportRefund(payment, refund, 'submitted');
    const answer = call(refund, fate, now);
    if (refund.truth === 'taken' && known !== 'taken') refund.made += 1;
    if (answer !== 'unknown') reportRefund(payment, refund, answer === 'taken' ? 'succeeded' : 'failed');
  }

  /** With one that surely was not made. */
  function goOn(payment: PaymentRow, refund: RefundRow, now: Temporal.Instant): void {
    const { calls, isKeyed, since = now } = refund;
    const next = planAfterNothing({ found: 'absent', calls, isKeyed, since }, now);
    if (next === 'call') sendRefund(payment, refund, { fate: 'taken, answer lost', now });
    if (next === 'fail') reportRefund(payment, refund, 'failed');
  }

  return {
    payments,

    queue(charge: Pick<PaymentRow, 'key' | 'attempt' | 'amount'>): void {
      const balance = { captured: 0n, refunded: 0n, reserved: 0n };
      payments.push({ ...charge, state: 'pending', balance, refunds: [], ...untold });
    },

    /** A worker makes the next call that is due. */
    send(fate: Fate, now: Temporal.Instant): void {
      const payment = payments.find(({ state, since }) => state === 'pending' && since === undefined);
      if (payment === undefined) return;
      report(payment, 'submitted');
      const answer = call(payment, fate, now);
      if (answer !== 'unknown') report(payment, answer === 'taken' ? 'captured' : 'declined');
    },

    /** The provider tells, again or for the first time, what it knows of some payment. */
    notify(which: number): void {
      const payment = payments[which % Math.max(1, payments.length)];
      if (payment?.truth === undefined) return;
      report(payment, payment.truth === 'taken' ? 'captured' : 'declined');
    },

    refund(
      which: number,
      amount: bigint,
      { fate, now }: { readonly fate: Fate; readonly now: Temporal.Instant },
    ): void {
      const payment = payments[which % Math.max(1, payments.length)];
      if (payment === undefined || !isRefundable(payment.state)) return;
      const reservation = reserveRefund(payment.balance, amount);
      if (reservation.kind !== 'reserved') return;
      payment.balance = reservation.balance;
      const isKeyed = which % 2 === 0;
      const refund: RefundRow = { amount, isKeyed, state: 'pending', calls: 0, made: 0, ...untold };
      payment.refunds.push(refund);
      sendRefund(payment, refund, { fate, now });
    },

    lookUp(works: boolean, now: Temporal.Instant): void {
      for (const payment of payments) {
        const found = isSettled(payment.state) ? undefined : lookUp(payment, now, works);
        if (found !== undefined) report(payment, paymentEvents[found]);
        for (const refund of payment.refunds.filter(({ state }) => state === 'processing')) {
          const end = lookUp(refund, now, works);
          if (end === 'absent') goOn(payment, refund, now);
          else if (end !== undefined) reportRefund(payment, refund, refundEvents[end]);
        }
      }
    },

    /** What is wrong with the money, by what the provider has; undefined where nothing is. */
    fault(): string | undefined {
      const taken = payments.filter(({ truth }) => truth === 'taken');
      if (new Set(taken.map(({ key }) => key)).size < taken.length) return 'two captures for a period';
      for (const { key, amount, truth, refunds } of payments) {
        const back = refunds.reduce((sum, refund) => sum + refund.amount * BigInt(refund.made), 0n);
        if (back > (truth === 'taken' ? amount : 0n)) return `${key} was refunded with ${back} of ${amount}`;
        const wrong = refunds.find(({ state, made }) => made > 1 || (state in ended && ended[state] !== made));
        if (wrong !== undefined) return `a refund of ${key} was made ${wrong.made} times, and is ${wrong.state}`;
      }
      return undefined;
    },

    /** What has no outcome yet, although a provider was called. */
    open(): readonly string[] {
      return payments.flatMap(({ key, state, since, refunds }) => [
        ...(since !== undefined && !isSettled(state) ? [`${key} is ${state}`] : []),
        ...refunds.filter((refund) => refund.state === 'processing').map(() => `a refund of ${key} is processing`),
      ]);
    },
  };
}

/** How often a refund was made that has ended so. */
const ended: Readonly<Partial<Record<RefundState, number>>> = { succeeded: 1, failed: 0 };

const paymentEvents = { taken: 'captured', refused: 'declined', absent: 'declined', unclear: 'unclear' } as const;
const refundEvents = { taken: 'succeeded', refused: 'failed', unclear: 'unclear' } as const;

const untold = { since: undefined, lookUps: 0, lastLookUpAt: undefined, truth: undefined } as const;

/** One call. It was written down before, so that it is not made again as long as it is not known. */
function call(outcome: Outcome, fate: Fate, now: Temporal.Instant): 'taken' | 'refused' | 'unknown' {
  outcome.since = now;
  if (fate === 'not reached') return 'refused';
  if (fate === 'lost') return 'unknown';
  outcome.truth = fate.startsWith('taken') ? 'taken' : 'refused';
  return fate.endsWith('lost') ? 'unknown' : outcome.truth;
}

/** What a lookup, or giving up, says of an open outcome at this time. */
function lookUp(outcome: Outcome, now: Temporal.Instant, works: boolean): keyof typeof paymentEvents | undefined {
  const { since, lookUps, lastLookUpAt } = outcome;
  if (since === undefined) return undefined;
  const decision = planLookUp({ since, lookUps, lastLookUpAt, isAccepted: false }, now);
  if (decision.kind === 'give_up') return 'unclear';
  if (decision.kind === 'wait') return undefined;
  outcome.lookUps += 1;
  outcome.lastLookUpAt = now;
  return works ? (outcome.truth ?? 'absent') : undefined;
}

/** The first period that does not begin where the one before ended, or later; undefined where all do. */
export function overlap(periods: readonly BillingPeriod[]): string | undefined {
  let end: Temporal.PlainDate | undefined;
  for (const period of periods) {
    if (end !== undefined && Temporal.PlainDate.compare(period.start, end) < 0) return period.start.toString();
    end = period.end;
  }
  return undefined;
}
