import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  balanceAfter,
  type PaymentBalance,
  type RefundEvent,
  type RefundState,
  refundable,
  refundTable,
  reserveRefund,
} from './refunds.ts';
import { move } from './transitions.ts';

const paid: PaymentBalance = { captured: 100n, refunded: 0n, reserved: 0n };

// Two refunds of 60 on a payment of 100 both passed the check (juspay/hyperswitch#13182).
describe('a reservation', () => {
  test('leaves nothing for a second refund of 60 on a payment of 100', () => {
    const first = reserveRefund(paid, 60n);
    if (first.kind !== 'reserved') throw new Error('refused');
    expect(reserveRefund(first.balance, 60n)).toEqual({ kind: 'exceeds', left: 40n });
    expect(reserveRefund(first.balance, 40n)).toMatchObject({ kind: 'reserved', balance: { reserved: 100n } });
  });

  test('is of all that is left where no amount is said, and fails where nothing is', () => {
    expect(reserveRefund({ ...paid, refunded: 30n })).toMatchObject({ kind: 'reserved', amount: 70n });
    expect(reserveRefund({ ...paid, refunded: 100n })).toEqual({ kind: 'exceeds', left: 0n });
  });

  test.each([0n, -1n])('of %i is no refund', (amount) => {
    expect(() => reserveRefund(paid, amount)).toThrow(RangeError);
  });

  test('is released where the refund fails, and kept where it is not known', () => {
    const reserved = { ...paid, reserved: 60n };
    const moved = (to: RefundState) => balanceAfter(reserved, { amount: 60n, from: 'processing', to });
    expect(moved('failed')).toEqual(paid);
    expect(moved('needs_review')).toEqual(reserved);
    expect(moved('succeeded')).toEqual({ captured: 100n, refunded: 60n, reserved: 0n });
  });
});

test('a refund that a bank gives back goes to review and is counted as reserved again', () => {
  expect(move(refundTable, 'succeeded', 'failed')).toEqual({ kind: 'moved', to: 'needs_review' });
  const back = balanceAfter({ ...paid, refunded: 60n }, { amount: 60n, from: 'succeeded', to: 'needs_review' });
  expect(back).toEqual({ captured: 100n, refunded: 0n, reserved: 60n });
});

test('one that succeeds after it was given up goes to review, and takes nothing below zero', () => {
  expect(move(refundTable, 'failed', 'succeeded')).toEqual({ kind: 'moved', to: 'needs_review' });
  const both = balanceAfter({ ...paid, refunded: 100n }, { amount: 60n, from: 'failed', to: 'needs_review' });
  expect(refundable(both)).toBe(0n);
});

test('many refunds at once, in any order of outcomes, never exceed the payment', () => {
  interface Refund {
    readonly amount: bigint;
    state: RefundState;
  }
  const begin = fc.record({ amount: fc.bigInt({ min: 1n, max: 120n }) });
  const report = fc.record({
    refund: fc.nat(20),
    event: fc.constantFrom<RefundEvent>('submitted', 'succeeded', 'failed', 'unclear', 'resolved_failed'),
  });
  fc.assert(
    fc.property(fc.array(fc.oneof(begin, report), { maxLength: 40 }), (steps) => {
      let balance = paid;
      let lateSuccesses = 0;
      const refunds: Refund[] = [];
      for (const step of steps) {
        if ('amount' in step) {
          const reservation = reserveRefund(balance, step.amount);
          if (reservation.kind !== 'reserved') continue;
          balance = reservation.balance;
          refunds.push({ amount: step.amount, state: 'pending' });
          continue;
        }
        const refund = refunds[step.refund % Math.max(1, refunds.length)];
        if (refund === undefined) continue;
        const transition = move(refundTable, refund.state, step.event);
        if (transition.kind !== 'moved') continue;
        // Of the provider's making: it paid what it had refused.
        if (refund.state === 'failed') lateSuccesses += 1;
        balance = balanceAfter(balance, { amount: refund.amount, from: refund.state, to: transition.to });
        refund.state = transition.to;
      }
      const sum = (held: readonly RefundState[]): bigint =>
        refunds.filter(({ state }) => held.includes(state)).reduce((total, { amount }) => total + amount, 0n);
      expect(balance.refunded).toBe(sum(['succeeded']));
      expect(balance.reserved).toBe(sum(['pending', 'processing', 'needs_review']));
      expect(lateSuccesses > 0 || balance.refunded + balance.reserved <= balance.captured).toBe(true);
    }),
  );
});
