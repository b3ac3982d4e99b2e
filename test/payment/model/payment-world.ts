import type { BillingPeriod } from '@rollcall/payment/domain/calendar.ts';
import { planLookUp } from '@rollcall/payment/domain/lookups.ts';
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

/** What becomes of a call to the provider. It may take the money, and its answer may get lost. */
export type Fate = 'taken' | 'refused' | 'taken, answer lost' | 'refused, answer lost' | 'not reached';

export const fates: readonly Fate[] = ['taken', 'refused', 'taken, answer lost', 'refused, answer lost', 'not reached'];

interface Outcome {
  since: Temporal.Instant | undefined;
  lookUps: number;
  lastLookUpAt: Temporal.Instant | undefined;
  /** What the provider knows; undefined where no call reached it. */
  truth: 'taken' | 'refused' | undefined;
}

interface RefundRow extends Outcome {
  readonly amount: bigint;
  state: RefundState;
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
 * the way. Like the service it calls once, then looks up.
 */
export function createPaymentWorld(charged: (payment: PaymentRow, outcome: 'succeeded' | 'failed') => void) {
  const payments: PaymentRow[] = [];

  function report(payment: PaymentRow, event: PaymentEvent): void {
    const captured = { ...payment.balance, captured: event === 'captured' ? payment.amount : payment.balance.captured };
    const { transition } = movePayment({ state: payment.state, balance: captured }, event, 'review');
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
      const refund: RefundRow = { amount, state: 'pending', ...untold };
      payment.refunds.push(refund);
      reportRefund(payment, refund, 'submitted');
      const answer = call(refund, fate, now);
      if (answer !== 'unknown') reportRefund(payment, refund, answer === 'taken' ? 'succeeded' : 'failed');
    },

    lookUp(works: boolean, now: Temporal.Instant): void {
      for (const payment of payments) {
        const found = isSettled(payment.state) ? undefined : lookUp(payment, now, works);
        if (found !== undefined)
          report(payment, found === 'taken' ? 'captured' : found === 'refused' ? 'declined' : found);
        for (const refund of payment.refunds.filter(({ state }) => state === 'processing')) {
          const end = lookUp(refund, now, works);
          if (end !== undefined) {
            reportRefund(payment, refund, end === 'taken' ? 'succeeded' : end === 'refused' ? 'failed' : end);
          }
        }
      }
    },

    /** What is wrong with the money, by what the provider has; undefined where nothing is. */
    fault(): string | undefined {
      const taken = payments.filter(({ truth }) => truth === 'taken');
      if (new Set(taken.map(({ key }) => key)).size < taken.length) return 'two captures for a period';
      for (const { key, amount, refunds } of payments) {
        const back = refunds.filter(({ truth }) => truth === 'taken').reduce((sum, refund) => sum + refund.amount, 0n);
        if (back > amount) return `${key} was refunded with ${back} of ${amount}`;
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

const untold = { since: undefined, lookUps: 0, lastLookUpAt: undefined, truth: undefined } as const;

/** One call. It was written down before, so that it is never made again. */
function call(outcome: Outcome, fate: Fate, now: Temporal.Instant): 'taken' | 'refused' | 'unknown' {
  outcome.since = now;
  if (fate === 'not reached') return 'refused';
  outcome.truth = fate.startsWith('taken') ? 'taken' : 'refused';
  return fate.endsWith('lost') ? 'unknown' : outcome.truth;
}

/** What a lookup, or giving up, says of an open outcome at this time. */
function lookUp(outcome: Outcome, now: Temporal.Instant, works: boolean): 'taken' | 'refused' | 'unclear' | undefined {
  const { since, lookUps, lastLookUpAt } = outcome;
  if (since === undefined) return undefined;
  const decision = planLookUp({ since, lookUps, lastLookUpAt }, now);
  if (decision.kind === 'give_up') return 'unclear';
  if (decision.kind === 'wait') return undefined;
  outcome.lookUps += 1;
  outcome.lastLookUpAt = now;
  return works ? (outcome.truth ?? 'refused') : undefined;
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
