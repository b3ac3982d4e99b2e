import type { LateCapture } from '@rollcall/payment/domain/payment-states.ts';
import { isRefundable, isSettled } from '@rollcall/payment/domain/payment-states.ts';
import {
  balanceAfter,
  type RefundEvent,
  type RefundState,
  refundTable,
  reserveRefund,
} from '@rollcall/payment/domain/refunds.ts';
import { move } from '@rollcall/payment/domain/transitions.ts';
import { type PaymentChange, planChange } from '@rollcall/payment/payments/domain/changes.ts';
import { planWork } from '@rollcall/payment/payments/domain/due.ts';
import { changeOfFact, type PaymentFact } from '@rollcall/payment/payments/domain/facts.ts';
import type { Snapshot } from '@rollcall/payment/payments/domain/payments.ts';
import * as fc from 'fast-check';

/*
 * One checkout: a payer who may pay in two windows, a caller who cancels and refunds, a provider
 * whose answers and notifications come late, twice, in any order or never, and a person who decides
 * what is in doubt by what the provider lists.
 */

type Step =
  | { readonly type: 'pay' | 'decline' | 'cancel' | 'work' | 'decide' }
  | { readonly type: 'pass time'; readonly hours: number }
  | { readonly type: 'notify' | 'settle refund'; readonly which: number }
  | { readonly type: 'refund'; readonly amount: bigint; readonly isMade: boolean };

export const anyCheckoutSteps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('pay', 'decline', 'cancel', 'work', 'decide') }) },
    {
      weight: 1,
      arbitrary: fc.record({ type: fc.constant('pass time' as const), hours: fc.integer({ min: 1, max: 30 }) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({ type: fc.constantFrom('notify' as const, 'settle refund' as const), which: fc.nat(5) }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        type: fc.constant('refund' as const),
        amount: fc.bigInt({ min: 1n, max: 12_000n }),
        isMade: fc.boolean(),
      }),
    },
  ),
  { minLength: 5, maxLength: 40 },
);

export const anyPolicy: fc.Arbitrary<LateCapture> = fc.constantFrom('refund', 'review');

interface RefundRow {
  readonly amount: bigint;
  /** Whether the provider has given it back. */
  readonly isMade: boolean;
  state: RefundState;
}

const AMOUNT = 10_000n;
/** A payer with two windows. */
const MOST_CHARGES = 2;
const START = Temporal.Instant.from('2026-01-31T10:00:00Z');
const dateOf = (instant: Temporal.Instant) => new Date(instant.epochMilliseconds);

function opened(): Snapshot {
  const created = dateOf(START);
  const payment = {
    id: 'p',
    subject: 'shop',
    provider: 'payfast',
    purpose: 'pay',
    money: { amount: AMOUNT, currency: 'ZAR' },
    customerEmail: 'ann@example.com',
    itemName: 'Tea',
    metadata: {},
    state: 'pending',
    reason: undefined,
    balance: { captured: 0n, refunded: 0n, reserved: 0n },
    pageToken: 'token',
    redirect: undefined,
    checkoutRef: 'checkout',
    chargeRef: undefined,
    calledAt: created,
    processingAt: undefined,
    decision: undefined,
    lookUps: 0,
    lastLookUpAt: undefined,
    expiresAt: dateOf(START.add({ hours: 24 })),
    createdAt: created,
    updatedAt: created,
  } as const;
  return { payment, charges: [], returns: [], disputes: [] };
}

/** Runs it, and lets all be told and decided at its end. Says what went wrong; undefined where nothing did. */
export function runCheckout(policy: LateCapture, steps: readonly Step[]): string | undefined {
  let snapshot = opened();
  let now = START;
  let isDecided = false;
  const taken: string[] = [];
  const refunds: RefundRow[] = [];
  const booked = new Set<string>();

  function change(asked: PaymentChange | undefined): void {
    const planned = asked === undefined ? undefined : planChange(snapshot, asked, policy);
    if (planned === undefined) return;
    const told = planned.charges.map(({ chargeRef }) => chargeRef);
    const others = snapshot.charges.filter(
      ({ chargeRef }) => !told.includes(chargeRef) && chargeRef !== planned.replaced,
    );
    snapshot = { ...snapshot, payment: planned.payment, charges: [...others, ...planned.charges] };
    for (const { key, kind } of planned.entries) if (kind === 'capture') booked.add(key);
    if (planned.refund > 0n) refund(planned.refund, true);
  }

  function tell(fact: PaymentFact, source: 'notification' | 'lookup'): void {
    change(changeOfFact(snapshot, fact, { source, at: dateOf(now) }));
  }

  function tellCharge(chargeRef: string, source: 'notification' | 'lookup'): void {
    const payment = { paymentId: 'p', checkoutRef: 'checkout', chargeRef };
    tell({ kind: 'payment.succeeded', payment, money: snapshot.payment.money }, source);
  }

  function refund(amount: bigint, isMade: boolean): void {
    if (!isRefundable(snapshot.payment.state)) return;
    const reservation = reserveRefund(snapshot.payment.balance, amount);
    if (reservation.kind !== 'reserved') return;
    snapshot = { ...snapshot, payment: { ...snapshot.payment, balance: reservation.balance } };
    const row: RefundRow = { amount, isMade, state: 'pending' };
    refunds.push(row);
    report(row, 'submitted');
  }

  function report(row: RefundRow, event: RefundEvent): void {
    const transition = move(refundTable, row.state, event);
    if (transition.kind !== 'moved') return;
    const { payment } = snapshot;
    const balance = balanceAfter(payment.balance, { amount: row.amount, from: row.state, to: transition.to });
    snapshot = { ...snapshot, payment: { ...payment, balance } };
    row.state = transition.to;
    if (transition.to === 'succeeded') change({ event: 'refunded', source: 'provider' });
  }

  function lookUp(): void {
    const { payment } = snapshot;
    snapshot = { ...snapshot, payment: { ...payment, lookUps: payment.lookUps + 1, lastLookUpAt: dateOf(now) } };
    for (const chargeRef of taken) tellCharge(chargeRef, 'lookup');
    if (taken.length === 0 && dateOf(now) >= payment.expiresAt && !isSettled(payment.state)) {
      change({ event: 'expired', source: 'lookup' });
    }
  }

  /** What the worker does. */
  function work(): void {
    const { kind } = planWork(snapshot.payment, dateOf(now));
    if (kind === 'look_up') lookUp();
    if (kind === 'expire') change({ event: 'expired', source: 'schedule' });
    if (kind === 'give_up') change({ event: 'unclear', source: 'schedule' });
  }

  /** A person, by what the provider lists. */
  function decide(): void {
    if (snapshot.payment.state !== 'needs_review') return;
    isDecided = true;
    change({ event: taken.length === 0 ? 'resolved_unpaid' : 'resolved_paid', source: 'caller' });
  }

  function take(step: Step): void {
    switch (step.type) {
      case 'pass time':
        now = now.add({ hours: step.hours });
        return;
      case 'pay':
        if (taken.length < MOST_CHARGES) taken.push(`charge-${taken.length}`);
        return;
      case 'decline':
        tell({ kind: 'payment.failed', payment: { paymentId: 'p' }, reason: 'declined' }, 'notification');
        return;
      case 'cancel':
        change({ event: 'cancel', source: 'caller' });
        return;
      case 'work':
        work();
        return;
      case 'decide':
        decide();
        return;
      case 'notify': {
        const chargeRef = taken[step.which % Math.max(1, taken.length)];
        if (chargeRef !== undefined) tellCharge(chargeRef, 'notification');
        return;
      }
      case 'refund':
        refund(step.amount, step.isMade);
        return;
      case 'settle refund': {
        const row = refunds[step.which % Math.max(1, refunds.length)];
        if (row !== undefined) report(row, row.isMade ? 'succeeded' : 'failed');
      }
    }
  }

  function fault(): string | undefined {
    const { captured, refunded, reserved } = snapshot.payment.balance;
    const bookedCharges = BigInt(booked.size) * AMOUNT;
    if (captured !== bookedCharges) return `${captured} is captured, and ${bookedCharges} booked`;
    if (captured > AMOUNT && !isDecided) return 'two captures';
    if (captured > BigInt(taken.length) * AMOUNT) return `${captured} is captured, of ${taken.length} charges`;
    if (refunded + reserved > captured) return `${refunded + reserved} of ${captured} goes back`;
    const back = refunds.reduce((sum, row) => (row.isMade ? sum + row.amount : sum), 0n);
    return back > BigInt(taken.length) * AMOUNT ? `${back} went back, of ${taken.length} charges` : undefined;
  }

  for (const step of steps) {
    take(step);
    const wrong = fault();
    if (wrong !== undefined) return `after ${step.type}: ${wrong}`;
  }
  // Time passes; all is told, and a person decides what is in doubt.
  for (let day = 0; day < 5; day += 1) {
    now = now.add({ hours: 24 });
    work();
    for (const chargeRef of taken) tellCharge(chargeRef, 'notification');
    for (const row of refunds) report(row, row.isMade ? 'succeeded' : 'failed');
    decide();
  }
  const { state } = snapshot.payment;
  const isPaid = !['pending', 'processing', 'failed', 'expired', 'cancelled', 'needs_review'].includes(state);
  if (taken.length > 1 && !isDecided) return 'it was paid twice, and nobody was told';
  if (isPaid !== taken.length > 0) return `it is ${state} after ${taken.length} charges`;
  return fault();
}
