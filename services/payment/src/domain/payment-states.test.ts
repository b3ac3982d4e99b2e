import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  isRefundable,
  isSettled,
  type LateCapture,
  movePayment,
  type PaymentEvent,
  type PaymentState,
} from './payment-states.ts';
import type { PaymentBalance } from './refunds.ts';

const states: readonly PaymentState[] = [
  'pending',
  'processing',
  'succeeded',
  'failed',
  'expired',
  'cancelled',
  'partially_refunded',
  'refunded',
  'disputed',
  'needs_review',
];
const facts = [
  'submitted',
  'captured',
  'captured_again',
  'declined',
  'expired',
  'abandoned',
  'cancel',
  'refunded',
  'dispute_opened',
  'dispute_won',
  'dispute_lost',
  'unclear',
] as const;
const decisions = ['resolved_paid', 'resolved_unpaid', 'resolved_refunded'] as const;
const hasMoney: readonly PaymentState[] = ['succeeded', 'partially_refunded', 'refunded', 'disputed', 'needs_review'];

const paid: PaymentBalance = { captured: 100n, refunded: 0n, reserved: 0n };
const partly: PaymentBalance = { ...paid, refunded: 40n };
const wholly: PaymentBalance = { ...paid, refunded: 100n };

interface Step {
  readonly balance?: PaymentBalance;
  readonly isDisputed?: boolean;
  readonly lateCapture?: LateCapture;
}

/** The new state, or why there is none. */
function after(
  state: PaymentState,
  event: PaymentEvent,
  { balance = paid, isDisputed = false, lateCapture = 'review' }: Step = {},
): string {
  const { transition } = movePayment({ state, balance, isDisputed }, event, lateCapture);
  return transition.kind === 'moved' ? transition.to : transition.kind;
}

function run(events: readonly PaymentEvent[], from: PaymentState = 'pending'): readonly PaymentState[] {
  const passed: PaymentState[] = [from];
  let state = from;
  for (const event of events) {
    const { transition } = movePayment(
      { state, balance: paid, isDisputed: event === 'dispute_opened' },
      event,
      'review',
    );
    if (transition.kind !== 'moved') continue;
    state = transition.to;
    passed.push(state);
  }
  return passed;
}

test.each<[PaymentState, PaymentEvent, string]>([
  ['pending', 'submitted', 'processing'],
  ['pending', 'captured', 'succeeded'],
  ['processing', 'captured', 'succeeded'],
  ['processing', 'declined', 'failed'],
  ['processing', 'expired', 'expired'],
  ['processing', 'abandoned', 'cancelled'],
  ['processing', 'cancel', 'cancelled'],
  ['processing', 'refunded', 'needs_review'],
  ['succeeded', 'cancel', 'refused'],
  ['succeeded', 'declined', 'stays'],
  ['succeeded', 'captured', 'stays'],
  ['succeeded', 'captured_again', 'needs_review'],
  ['succeeded', 'dispute_opened', 'disputed'],
  ['succeeded', 'unclear', 'needs_review'],
  ['disputed', 'dispute_won', 'succeeded'],
  ['cancelled', 'cancel', 'stays'],
  ['failed', 'cancel', 'refused'],
  ['needs_review', 'captured', 'stays'],
  ['needs_review', 'resolved_paid', 'succeeded'],
  ['needs_review', 'resolved_unpaid', 'failed'],
])('%s becomes by %s: %s', (state, event, expected) => {
  expect(after(state, event)).toBe(expected);
});

test('a refund makes it partially refunded, then refunded, as the balance says', () => {
  expect(after('succeeded', 'refunded', { balance: partly })).toBe('partially_refunded');
  expect(after('partially_refunded', 'refunded', { balance: partly })).toBe('stays');
  expect(after('partially_refunded', 'refunded', { balance: wholly })).toBe('refunded');
});

test('a dispute that is lost takes what the balance says, and another one goes on', () => {
  expect(after('disputed', 'dispute_lost', { balance: wholly })).toBe('refunded');
  expect(after('disputed', 'dispute_lost', { balance: partly })).toBe('partially_refunded');
  expect(after('disputed', 'dispute_lost', { balance: partly, isDisputed: true })).toBe('stays');
  expect(after('needs_review', 'resolved_paid', { isDisputed: true })).toBe('disputed');
  expect(after('needs_review', 'resolved_refunded', { balance: wholly })).toBe('refunded');
  expect(after('needs_review', 'resolved_refunded', { balance: partly })).toBe('partially_refunded');
});

test('a dispute that is won after a partial refund leaves it partially refunded', () => {
  expect(after('disputed', 'dispute_won', { balance: partly })).toBe('partially_refunded');
});

describe('money that comes for a payment that was given up', () => {
  const givenUp: readonly PaymentState[] = ['failed', 'expired', 'cancelled'];

  test.each(givenUp)('is sent back, where it had %s and so it is configured', (state) => {
    expect(movePayment({ state, balance: paid, isDisputed: false }, 'captured', 'refund')).toEqual({
      transition: { kind: 'moved', to: 'succeeded' },
      refundAll: true,
    });
  });

  test.each(givenUp)('goes to review, where it had %s and so it is configured', (state) => {
    expect(movePayment({ state, balance: paid, isDisputed: false }, 'captured', 'review')).toEqual({
      transition: { kind: 'moved', to: 'needs_review' },
      refundAll: false,
    });
  });
});

test('only a person takes a payment out of review, and only of there', () => {
  for (const fact of facts) expect(['stays', 'refused']).toContain(after('needs_review', fact));
  for (const state of states.filter((each) => each !== 'needs_review')) {
    for (const decision of decisions) expect(after(state, decision)).toBe('refused');
  }
});

// Both the payer's return and the notification completed an order: double captures (medusajs/medusa#13301).
test('whichever door reports the capture first, it is captured once, in every order', () => {
  const reports = ['submitted', 'captured', 'captured', 'captured', 'declined', 'abandoned', 'expired'] as const;
  fc.assert(
    fc.property(fc.shuffledSubarray([...reports], { minLength: 3 }), (events) => {
      fc.pre(events.includes('captured'));
      const passed = run(events);
      expect(passed.filter((state) => state === 'succeeded' || state === 'needs_review')).toHaveLength(1);
    }),
  );
});

test('what is paid is never unpaid again, whatever comes late or twice', () => {
  const event = fc.constantFrom<PaymentEvent>(...facts);
  fc.assert(
    fc.property(fc.constantFrom(...hasMoney), fc.array(event, { maxLength: 12 }), (from, events) => {
      expect(run(events, from).filter((state) => !hasMoney.includes(state))).toEqual([]);
    }),
  );
});

test('the same fact twice changes nothing the second time', () => {
  const movedTwice = states.flatMap((state) =>
    facts.filter((fact) => {
      const next = states.find((each) => each === after(state, fact));
      return next !== undefined && states.some((each) => each === after(next, fact));
    }),
  );
  expect(movedTwice).toEqual([]);
});

test('refunds begin only where the money is and nobody disputes it', () => {
  expect(states.filter(isRefundable)).toEqual(['succeeded', 'partially_refunded']);
});

test('payments that are looked up are those whose outcome is open', () => {
  expect(states.filter((state) => !isSettled(state))).toEqual(['pending', 'processing']);
});
