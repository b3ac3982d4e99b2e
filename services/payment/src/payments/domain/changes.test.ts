import { describe, expect, test } from 'vitest';
import type { PaymentState } from '../../domain/payment-states.ts';
import { type PaymentChange, planChange } from './changes.ts';
import { changeOfFact } from './facts.ts';
import type { KnownCharge, Payment, Snapshot } from './payments.ts';

const money = { amount: 14_950n, currency: 'ZAR' };
const charge: KnownCharge = { chargeRef: 'ch_1', money, fee: 350n, isBooked: true };

function some(state: PaymentState, changes: Partial<Payment> = {}, charges: readonly KnownCharge[] = []): Snapshot {
  const captured = charges.filter(({ isBooked }) => isBooked).reduce((sum, each) => sum + each.money.amount, 0n);
  const payment: Payment = {
    id: 'p1',
    subject: 'shop',
    provider: 'yoco',
    purpose: 'pay',
    money,
    customerEmail: 'a@example.com',
    itemName: 'Tea',
    metadata: {},
    state,
    reason: undefined,
    balance: { captured, refunded: 0n, reserved: 0n },
    pageToken: 't',
    redirect: undefined,
    checkoutRef: 'co_1',
    chargeRef: undefined,
    calledAt: new Date(0),
    lookUps: 0,
    lastLookUpAt: undefined,
    expiresAt: new Date(0),
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...changes,
  };
  return { payment, charges };
}

const captured: PaymentChange = { event: 'captured', source: 'notification', charge };

function postings(snapshot: Snapshot, change: PaymentChange, late: 'refund' | 'review' = 'review') {
  const planned = planChange(snapshot, change, late);
  return planned?.entries.map(({ key, postings: all }) => [
    key,
    ...all.map(({ account, amount }) => `${account} ${amount}`),
  ]);
}

describe('money that is captured', () => {
  test('is booked with its fee, once', () => {
    expect(planChange(some('pending'), captured, 'review')).toMatchObject({
      payment: { state: 'succeeded', balance: { captured: 14_950n }, chargeRef: 'ch_1' },
      movedFrom: 'pending',
      refund: 0n,
    });
    expect(postings(some('pending'), captured)).toEqual([
      ['capture:p1:ch_1', 'provider:yoco 14950', 'sales -14950'],
      ['fee:p1:ch_1', 'fees 350', 'provider:yoco -350'],
    ]);
    expect(planChange(some('succeeded', {}, [charge]), captured, 'review')).toMatchObject({
      payment: { state: 'succeeded', balance: { captured: 14_950n } },
      movedFrom: undefined,
      charges: [],
      entries: [],
    });
  });

  test('gets the fee that is told later', () => {
    const before = some('succeeded', {}, [{ ...charge, fee: undefined }]);
    expect(planChange(before, captured, 'review')?.payment.balance.captured).toBe(14_950n);
    expect(postings(before, captured)?.map(([key]) => key)).toContain('fee:p1:ch_1');
  });

  test('of an invoice is no sale a second time', () => {
    const [first] = postings(some('pending', { invoiceId: 'i1' }), captured) ?? [];
    expect(first).toEqual(['capture:p1:ch_1', 'provider:yoco 14950', 'receivable -14950']);
  });

  test.each([
    { late: 'review', state: 'needs_review', refund: 0n, entries: 0 },
    { late: 'refund', state: 'succeeded', refund: 14_950n, entries: 2 },
  ] as const)('too late goes by the settings: $late', ({ late, state, refund, entries }) => {
    const planned = planChange(some('cancelled'), captured, late);
    expect(planned).toMatchObject({ payment: { state }, refund });
    expect(planned?.entries).toHaveLength(entries);
  });
});

describe('what a provider says', () => {
  const fact = (changes: object) =>
    ({ kind: 'payment.succeeded', payment: { paymentId: 'p1', chargeRef: 'ch_1' }, money, ...changes }) as const;

  test.each([
    {
      what: 'the money that was asked for',
      snapshot: some('pending'),
      changes: {},
      event: 'captured',
      reason: undefined,
    },
    {
      what: 'a cent less',
      snapshot: some('pending'),
      changes: { money: { ...money, amount: 14_949n } },
      event: 'unclear',
      reason: 'wrong_amount',
    },
    {
      what: 'another currency',
      snapshot: some('pending'),
      changes: { money: { ...money, currency: 'USD' } },
      event: 'unclear',
      reason: 'wrong_currency',
    },
    {
      what: 'the same charge',
      snapshot: some('succeeded', {}, [charge]),
      changes: {},
      event: 'captured',
      reason: undefined,
    },
    {
      what: 'a second charge',
      snapshot: some('succeeded', {}, [{ ...charge, chargeRef: 'ch_0' }]),
      changes: {},
      event: 'captured_again',
      reason: 'paid_twice',
    },
  ])('$what', ({ snapshot, changes, event, reason }) => {
    const change = changeOfFact(snapshot, fact(changes), 'lookup');
    expect([change?.event, change?.reason]).toEqual([event, reason]);
  });

  test('a method that was to be kept is all that was to be paid for', () => {
    const stored = { kind: 'method.stored', payment: {}, method: { token: 'm' } } as const;
    expect(changeOfFact(some('pending'), stored, 'lookup')).toBeUndefined();
    const kept = changeOfFact(some('pending', { purpose: 'keep', money: { ...money, amount: 0n } }), stored, 'lookup');
    expect(kept).toMatchObject({ event: 'captured', method: { token: 'm' } });
  });
});

describe('a person decides', () => {
  const inDoubt = { ...charge, fee: undefined, isBooked: false };

  test('that money in doubt is there: it is booked', () => {
    const planned = planChange(
      some('needs_review', {}, [inDoubt]),
      { event: 'resolved_paid', source: 'caller' },
      'review',
    );
    expect(planned).toMatchObject({ payment: { state: 'succeeded', balance: { captured: 14_950n } } });
    expect(planned?.charges).toEqual([{ ...inDoubt, isBooked: true }]);
  });

  test('that it went back: it came and went', () => {
    const change = { event: 'resolved_refunded', source: 'caller' } as const;
    expect(planChange(some('needs_review', {}, [inDoubt]), change, 'review')).toMatchObject({
      payment: { state: 'refunded', balance: { captured: 14_950n, refunded: 14_950n } },
    });
    expect(postings(some('needs_review', {}, [inDoubt]), change)?.map(([key]) => key)).toEqual([
      'capture:p1:ch_1',
      'refund:p1',
    ]);
  });

  test('that it is not: nothing is booked', () => {
    const planned = planChange(
      some('needs_review', {}, [inDoubt]),
      { event: 'resolved_unpaid', source: 'caller' },
      'review',
    );
    expect(planned).toMatchObject({ payment: { state: 'failed', balance: { captured: 0n } }, entries: [] });
  });

  test('of what is in no review: it is refused', () => {
    expect(planChange(some('succeeded'), { event: 'resolved_paid', source: 'caller' }, 'review')).toBeUndefined();
  });
});

test('a dispute that is lost without an opening is told whole', () => {
  const change = { event: 'dispute_lost', source: 'notification', disputed: money } as const;
  expect(postings(some('succeeded', {}, [charge]), change)?.map(([key]) => key)).toEqual([
    'dispute_opened:p1',
    'dispute_lost:p1',
  ]);
  expect(postings(some('disputed', {}, [charge]), change)?.map(([key]) => key)).toEqual(['dispute_lost:p1']);
});
