import { describe, expect, test } from 'vitest';
import type { PaymentState } from '../../domain/payment-states.ts';
import { leavesCheckoutOpen, type PaymentChange, planChange } from './changes.ts';
import { changeOfFact, changeOfReturn } from './facts.ts';
import type { Decision, KnownCharge, Payment, Snapshot } from './payments.ts';

const money = { amount: 14_950n, currency: 'ZAR' };
const charge: KnownCharge = { chargeRef: 'ch_1', money, fee: 350n, isBooked: true, isDismissed: false };

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
    processingAt: undefined,
    decision: undefined,
    lookUps: 0,
    lastLookUpAt: undefined,
    expiresAt: new Date(0),
    createdAt: new Date(0),
    updatedAt: new Date(0),
    ...changes,
  };
  return { payment, charges, returns: [], disputes: [] };
}

const told = { source: 'lookup', at: new Date(0) } as const;
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

test('why a provider had made no checkout is over once it has, but not why a payment is over', () => {
  const made = { event: 'checkout_made', source: 'provider' } as const;
  const late = some('processing', { reason: 'no_answer' });
  expect(planChange(late, made, 'review')?.payment).toMatchObject({ state: 'processing', reason: undefined });
  const declined = some('failed', { reason: 'declined' });
  expect(planChange(declined, made, 'review')?.payment.reason).toBe('declined');
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
    {
      what: 'the same charge, of which another amount was told before',
      snapshot: some('needs_review', {}, [{ ...charge, isBooked: false, money: { ...money, amount: 15_050n } }]),
      changes: {},
      event: 'captured',
      reason: undefined,
    },
    {
      what: 'the same charge, which a person took for paid with another amount before',
      snapshot: some('succeeded', { balance: { captured: 15_050n, refunded: 0n, reserved: 0n } }, [
        { ...charge, isBooked: true, money: { ...money, amount: 15_050n } },
      ]),
      changes: {},
      event: 'unclear',
      reason: 'wrong_amount',
    },
  ])('$what', ({ snapshot, changes, event, reason }) => {
    const change = changeOfFact(snapshot, fact(changes), told);
    expect([change?.event, change?.reason]).toEqual([event, reason]);
  });

  test('a method that was to be kept is all that was to be paid for', () => {
    const stored = { kind: 'method.stored', payment: {}, method: { token: 'm' } } as const;
    expect(changeOfFact(some('pending'), stored, told)).toBeUndefined();
    const kept = changeOfFact(some('pending', { purpose: 'keep', money: { ...money, amount: 0n } }), stored, told);
    expect(kept).toMatchObject({ event: 'captured', method: { token: 'm' } });
  });
});

const decide = (outcome: Decision) => ({ event: `resolved_${outcome}`, source: 'caller' }) as const;

const plan = (snapshot: Snapshot, outcome: Decision) => planChange(snapshot, decide(outcome), 'review');
/** Of what a person says went back, of a payment that was changed last at the epoch. */
const REFUND = 'refund:p1:1970-01-01T00:00:00.000Z';

describe('a person decides', () => {
  const inDoubt = { ...charge, fee: undefined, isBooked: false };
  const second = { ...inDoubt, chargeRef: 'ch_2' };
  test('that money in doubt is there: it is booked', () => {
    const planned = plan(some('needs_review', {}, [inDoubt]), 'paid');
    expect(planned).toMatchObject({
      payment: { state: 'succeeded', balance: { captured: 14_950n }, decision: 'paid' },
      charges: [{ ...inDoubt, isBooked: true }],
    });
  });

  test('that it went back: it came and went', () => {
    const snapshot = some('needs_review', {}, [inDoubt]);
    expect(plan(snapshot, 'refunded')).toMatchObject({
      payment: { state: 'refunded', balance: { captured: 14_950n, refunded: 14_950n } },
    });
    expect(postings(snapshot, decide('refunded'))?.map(([key]) => key)).toEqual(['capture:p1:ch_1', REFUND]);
  });

  test('that it is not: nothing is booked', () => {
    expect(plan(some('needs_review', {}, [inDoubt]), 'unpaid')).toMatchObject({
      payment: { state: 'failed', balance: { captured: 0n } },
      entries: [],
    });
  });

  test('that the second of two charges went back: the first one stays', () => {
    const snapshot = some('needs_review', {}, [charge, second]);
    expect(plan(snapshot, 'refunded')).toMatchObject({
      payment: { state: 'partially_refunded', balance: { captured: 29_900n, refunded: 14_950n } },
    });
    expect(postings(snapshot, decide('refunded'))).toEqual([
      ['capture:p1:ch_2', 'provider:yoco 14950', 'sales -14950'],
      [REFUND, 'sales 14950', 'provider:yoco -14950'],
    ]);
  });

  test('that so much went back elsewhere as the provider said', () => {
    const returned = { refundRef: 're_1', money: { ...money, amount: 950n }, isBooked: false, isDismissed: false };
    const snapshot = { ...some('needs_review', {}, [charge]), returns: [returned] };
    expect(plan(snapshot, 'refunded')).toMatchObject({
      payment: { state: 'partially_refunded', balance: { captured: 14_950n, refunded: 950n } },
      returns: [{ ...returned, isBooked: true }],
    });
    expect(postings(snapshot, decide('refunded'))).toEqual([[REFUND, 'sales 950', 'provider:yoco -950']]);
  });

  test('that as much went back again, since a refund had been returned: it is entered again', () => {
    const returned = { refundRef: 're_2', money, isBooked: false, isDismissed: false };
    const keys = [0, 1].map((at) => {
      const snapshot = { ...some('needs_review', { updatedAt: new Date(at) }, [charge]), returns: [returned] };
      return postings(snapshot, decide('refunded'))?.[0]?.[0];
    });
    expect(keys).toEqual([REFUND, 'refund:p1:1970-01-01T00:00:00.001Z']);
  });

  test('that the second of two charges never was: no later decision books it', () => {
    const planned = plan(some('needs_review', {}, [charge, second]), 'dismissed');
    const dismissed = { ...second, isDismissed: true };
    expect(planned).toMatchObject({
      payment: { state: 'succeeded', balance: { captured: 14_950n, refunded: 0n } },
      charges: [dismissed],
      entries: [],
    });
    const later = some('needs_review', {}, [charge, dismissed]);
    expect(plan(later, 'paid')).toMatchObject({ payment: { balance: { captured: 14_950n } }, charges: [] });
  });

  test('that nothing went back elsewhere', () => {
    const returned = { refundRef: 're_1', money, isBooked: false, isDismissed: false };
    const snapshot = { ...some('needs_review', {}, [charge]), returns: [returned] };
    expect(plan(snapshot, 'dismissed')).toMatchObject({
      payment: { state: 'succeeded', balance: { refunded: 0n } },
      returns: [{ ...returned, isDismissed: true }],
    });
  });

  test.each([
    ['what is in no review', some('succeeded'), 'paid'],
    ['what is not booked, that nothing else was', some('needs_review', {}, [inDoubt]), 'dismissed'],
    ['what is captured, that it is not', some('needs_review', {}, [charge, second]), 'unpaid'],
    [
      'money of another currency, that it is there',
      some('needs_review', {}, [{ ...inDoubt, money: { ...money, currency: 'USD' } }]),
      'paid',
    ],
  ] as const)('of %s: it is refused', (_what, snapshot, outcome) => {
    expect(plan(snapshot, outcome)).toBeUndefined();
  });

  const said = (chargeRef: string, source: 'notification' | 'lookup' = 'notification') =>
    ({ fact: { kind: 'payment.succeeded', payment: { chargeRef }, money }, source }) as const;

  test.each(['failed', 'succeeded', 'refunded'] as const)('and the same report then changes nothing: %s', (state) => {
    const { fact } = said('ch_1');
    expect(changeOfFact(some(state, {}, [inDoubt]), fact, told)).toBeUndefined();
    const wrong = { ...charge, money: { ...money, amount: 1n } };
    const again = changeOfFact(some(state, {}, [wrong]), { ...fact, money: wrong.money }, told);
    expect(again?.event).toBe('captured');
  });

  test('and the provider tells of it later: it is the same money', () => {
    const paid = plan(some('needs_review', { chargeRef: undefined }), 'paid');
    const [known] = paid?.charges ?? [];
    if (paid === undefined || known === undefined) throw new Error('it was not decided');
    const snapshot = { ...some('succeeded', {}, [known]), payment: paid.payment };
    const change = changeOfFact(snapshot, { ...said('ch_9').fact, fee: 350n }, told);
    if (change === undefined) throw new Error('nothing changes');
    expect(planChange(snapshot, change, 'review')).toMatchObject({
      payment: { state: 'succeeded', balance: { captured: 14_950n } },
      replaced: known.chargeRef,
      charges: [{ chargeRef: 'ch_9', isBooked: true }],
    });
    expect(postings(snapshot, change)?.map(([key]) => key)).toEqual(['fee:p1:ch_9']);
  });
});

describe('a refund that was made elsewhere', () => {
  const fact = { kind: 'refund.succeeded', refund: { refundRef: 're_1' }, money } as const;

  test('goes to review once', () => {
    const snapshot = some('succeeded', {}, [charge]);
    expect(changeOfReturn(snapshot, fact, 'notification')).toMatchObject({ reason: 'refunded_elsewhere' });
    const known = { ...snapshot, returns: [{ refundRef: 're_1', money, isBooked: false, isDismissed: false }] };
    expect(changeOfReturn(known, fact, 'notification')).toBeUndefined();
  });
});

const say = (kind: 'opened' | 'won' | 'lost', disputeRef = 'dp_1', amount = money.amount) =>
  ({ kind: `dispute.${kind}`, payment: {}, disputeRef, money: { ...money, amount } }) as const;
const knownDispute = (state: 'open' | 'won' | 'lost', disputeRef = 'dp_1') => ({
  disputeRef,
  money,
  state,
  counted: state === 'lost' ? money.amount : 0n,
});

describe('a dispute', () => {
  /** What becomes of it, and which entries are made. */
  function after(snapshot: Snapshot, fact: ReturnType<typeof say>) {
    const change = changeOfFact(snapshot, fact, told);
    const planned = change && planChange(snapshot, change, 'review');
    return planned && [planned.payment.state, planned.payment.balance.refunded, planned.entries.map(({ key }) => key)];
  }

  test.each([
    { state: 'succeeded', disputes: [], fact: say('opened'), to: 'disputed', keys: ['opened:p1:dp_1'] },
    { state: 'disputed', disputes: [knownDispute('open')], fact: say('won'), to: 'succeeded', keys: ['won:p1:dp_1'] },
    { state: 'succeeded', disputes: [], fact: say('won'), to: 'succeeded', keys: ['opened:p1:dp_1', 'won:p1:dp_1'] },
    {
      state: 'disputed',
      disputes: [knownDispute('won'), knownDispute('open', 'dp_2')],
      fact: say('opened', 'dp_3'),
      to: 'disputed',
      keys: ['opened:p1:dp_3'],
    },
    {
      state: 'disputed',
      disputes: [knownDispute('open'), knownDispute('open', 'dp_2')],
      fact: say('won', 'dp_2'),
      to: 'disputed',
      keys: ['won:p1:dp_2'],
    },
    { state: 'needs_review', disputes: [], fact: say('opened'), to: 'needs_review', keys: ['opened:p1:dp_1'] },
  ] as const)('$fact.kind of $fact.disputeRef where it is $state: $to', ({ state, disputes, fact, to, keys }) => {
    const snapshot = { ...some(state, {}, [charge]), disputes };
    expect(after(snapshot, fact)).toEqual([to, 0n, keys.map((key) => `dispute_${key}`)]);
  });

  test('that is lost before the money is known takes it when it is', () => {
    const change = changeOfFact(some('pending'), say('lost'), told);
    if (change === undefined) throw new Error('nothing changes');
    const early = planChange(some('pending'), change, 'review');
    expect(early).toMatchObject({ payment: { state: 'needs_review', balance: { refunded: 0n } } });
    expect(early?.disputes).toMatchObject([{ state: 'lost', counted: 0n }]);
    const inDoubt = { ...charge, isBooked: false };
    const snapshot = { ...some('needs_review', {}, [inDoubt]), disputes: early?.disputes ?? [] };
    for (const outcome of ['paid', 'refunded'] as const) {
      const decided = plan(snapshot, outcome);
      expect(decided).toMatchObject({
        payment: { state: 'refunded', balance: { captured: 14_950n, refunded: 14_950n } },
        disputes: [{ counted: 14_950n }],
        back: 0n,
      });
    }
    const again = { ...some('refunded', {}, [charge]), disputes: [knownDispute('lost')] };
    expect(planChange(again, { event: 'captured', source: 'lookup' }, 'review')?.disputes).toEqual([]);
  });

  test('that was lost keeps money that comes too late from being given back by itself', () => {
    const before = { ...some('failed'), disputes: [{ ...knownDispute('lost'), counted: 0n }] };
    const late = planChange(before, captured, 'refund');
    expect(late).toMatchObject({ payment: { state: 'needs_review' }, refund: 0n, charges: [{ isBooked: false }] });
    const snapshot = { ...before, payment: late?.payment ?? before.payment, charges: late?.charges ?? [] };
    expect(plan(snapshot, 'paid')).toMatchObject({
      payment: { state: 'refunded', balance: { captured: 14_950n, refunded: 14_950n } },
    });
  });

  test('that is lost takes its money, and what was in no dispute stays', () => {
    const snapshot = { ...some('disputed', {}, [charge]), disputes: [knownDispute('open')] };
    expect(after(snapshot, say('lost'))).toEqual(['refunded', 14_950n, ['dispute_lost:p1:dp_1']]);
    const partly = after(some('succeeded', {}, [charge]), say('lost', 'dp_1', 950n));
    expect(partly).toEqual(['partially_refunded', 950n, ['dispute_opened:p1:dp_1', 'dispute_lost:p1:dp_1']]);
  });

  test.each(['open', 'won', 'lost'] as const)('that is known, %s, is told again: nothing changes', (state) => {
    const snapshot = { ...some('disputed', {}, [charge]), disputes: [knownDispute(state)] };
    expect(after(snapshot, say('opened'))).toBeUndefined();
    expect(after(snapshot, say(state === 'open' ? 'opened' : state))).toBeUndefined();
  });

  test('that ends otherwise than it had ended is for a person', () => {
    const snapshot = { ...some('succeeded', {}, [charge]), disputes: [knownDispute('won')] };
    expect(after(snapshot, say('lost'))).toEqual(['needs_review', 0n, []]);
  });
});

describe('a checkout is left open', () => {
  const url = { kind: 'url', url: 'https://example.com/pay' } as const;
  const cancelled = { ...some('cancelled', { redirect: url }), movedFrom: 'pending' } as const;
  const paid = { ...some('succeeded', { redirect: url }), movedFrom: 'pending' } as const;
  const stays = { ...cancelled, movedFrom: undefined };

  test.each([
    ['by a payment that was cancelled', { event: 'cancel', source: 'caller' }, cancelled],
    ['where it was made meanwhile', { event: 'checkout_made', source: 'provider' }, stays],
  ] as const)('%s', (_what, told, planned) => {
    expect(leavesCheckoutOpen(told, planned)).toBe(true);
  });

  test.each([
    ['where the provider told so', { event: 'abandoned', source: 'notification' }, cancelled],
    ['where nothing has changed', { event: 'cancel', source: 'caller' }, stays],
    ['by one that is paid', { event: 'captured', source: 'lookup' }, paid],
  ] as const)('not %s', (_what, told, planned) => {
    expect(leavesCheckoutOpen(told, planned)).toBe(false);
  });

  test('not where the page is ours', () => {
    const planned = { ...some('cancelled'), movedFrom: 'pending' } as const;
    expect(leavesCheckoutOpen({ event: 'cancel', source: 'caller' }, planned)).toBe(false);
  });
});
