import { describe, expect, test } from 'vitest';
import {
  beginCharge,
  changePlan,
  closeInvoice,
  createSubscription,
  endCharge,
  moveSubscription,
  type SubscriptionChange,
  withdrawCharge,
  withInvoice,
  withOverdue,
  withPendingPlan,
  withReminder,
} from './subscription-changes.ts';
import {
  defaultDunning,
  type Plan,
  planSubscription,
  type Subscription,
  type SubscriptionDecision,
} from './subscriptions.ts';

const plan: Plan = {
  name: 'Tea of the month',
  amount: 11_500n,
  currency: 'ZAR',
  interval: { unit: 'month', count: 1 },
  taxRate: 150_000n,
  taxBehavior: 'inclusive',
};
const begun = Temporal.Instant.from('2026-01-31T10:00:00Z');
const key = 's1:2026-01-31';

type Beginning = Partial<Parameters<typeof createSubscription>[0]>;

function create(beginning: Beginning = {}): Subscription {
  return createSubscription({
    id: 's1',
    plan,
    trialDays: 0,
    collection: 'charge_automatically',
    timeZone: 'Africa/Johannesburg',
    createdAt: begun,
    ...beginning,
  });
}

function decide(subscription: Subscription, at: Temporal.Instant): SubscriptionDecision {
  return planSubscription(subscription, at, defaultDunning);
}

function changedBy(change: SubscriptionChange): Subscription {
  if (change.kind !== 'changed') throw new Error(change.kind);
  return change.subscription;
}

/** Issues the invoice that is due then. */
function invoice(subscription: Subscription, at: Temporal.Instant): Subscription {
  const decision = decide(subscription, at);
  if (decision.kind !== 'invoice') throw new Error(decision.kind);
  return withInvoice(subscription, decision.invoice, at);
}

/** Begins the charge that comes next, and ends it. */
function charge(subscription: Subscription, outcome: 'succeeded' | 'failed', at: Temporal.Instant): Subscription {
  const { open } = subscription;
  if (open === undefined) throw new Error('nothing is due');
  const attempt = open.attempts + 1;
  const charging = changedBy(beginCharge(subscription, { key: open.key, attempt }));
  return changedBy(endCharge(charging, { key: open.key, attempt, outcome, at }));
}

const days = (count: number): Temporal.Instant => begun.add({ hours: 24 * count });
const active = charge(invoice(create(), begun), 'succeeded', begun);

test('a subscription is incomplete until its first payment, and then active', () => {
  const invoiced = invoice(create(), begun);
  expect(invoiced).toMatchObject({ state: 'incomplete', open: { key, due: 11_500n, attempts: 0 }, nextIndex: 1 });
  expect(active).toMatchObject({ state: 'active', open: undefined });
});

test('one that is not paid within a day is cancelled, unless an outcome is open', () => {
  const invoiced = invoice(create(), begun);
  expect(decide(invoiced, begun)).toEqual({ kind: 'wait', until: days(1) });
  expect(decide(invoiced, days(1))).toEqual({ kind: 'move', event: 'first_payment_expired' });
  const charging = changedBy(beginCharge(invoiced, { key, attempt: 1 }));
  expect(decide(charging, days(1))).toEqual({ kind: 'wait', until: undefined });
});

test('the next invoice comes when the next period begins at the customer', () => {
  const midnight = Temporal.Instant.from('2026-02-27T22:00:00Z');
  expect(decide(active, begun)).toEqual({ kind: 'wait', until: midnight });
  expect(decide(active, midnight)).toMatchObject({
    kind: 'invoice',
    invoice: {
      key: 's1:2026-02-28',
      due: 11_500n,
      lines: [{ description: 'Tea of the month, 2026-02-28 to 2026-03-30', tax: 1500n }],
    },
  });
});

test('periods that a stopped scheduler missed are billed one after the other', () => {
  const late = Temporal.Instant.from('2026-04-15T00:00:00Z');
  const first = charge(invoice(active, late), 'succeeded', late);
  expect(decide(first, late)).toMatchObject({ kind: 'invoice', invoice: { key: 's1:2026-03-31' } });
});

test('a trial is followed by the first invoice', () => {
  const trialing = changedBy(moveSubscription(create({ trialDays: 14 }), 'trial_started', begun));
  const end = Temporal.Instant.from('2026-02-13T22:00:00Z');
  expect(decide(trialing, begun)).toEqual({ kind: 'wait', until: end });
  expect(decide(trialing, end)).toEqual({ kind: 'move', event: 'trial_ended' });
  const ended = changedBy(moveSubscription(trialing, 'trial_ended', end));
  expect(decide(ended, end)).toMatchObject({ kind: 'invoice', invoice: { key: 's1:2026-02-14' } });
});

test('a plan that costs nothing is active at once', () => {
  expect(invoice(create({ plan: { ...plan, amount: 0n } }), begun)).toMatchObject({ state: 'active', open: undefined });
});

describe('charges', () => {
  const due = Temporal.Instant.from('2026-02-28T10:00:00Z');
  const later = (count: number): Temporal.Instant => due.add({ hours: 24 * count });
  const invoiced = invoice(active, due);
  const next = { key: 's1:2026-02-28', attempt: 1 };

  // A charge that ended in an error was made again and again (woocommerce-gateway-payfast#94).
  test('whose outcome is open are not repeated, however often it is planned', () => {
    const charging = changedBy(beginCharge(invoiced, next));
    for (let day = 0; day < 10; day += 1)
      expect(decide(charging, later(day))).toEqual({ kind: 'wait', until: undefined });
    expect(beginCharge(charging, { ...next, attempt: 2 })).toEqual({ kind: 'refused' });
  });

  test('begin once: a second replica with the same decision is refused', () => {
    expect(beginCharge(changedBy(beginCharge(invoiced, next)), next)).toEqual({ kind: 'refused' });
  });

  test('that are reported twice, or after another began, count once', () => {
    const failed = charge(invoiced, 'failed', due);
    const end = { ...next, outcome: 'succeeded', at: due } as const;
    expect(endCharge(failed, end)).toEqual({ kind: 'stays' });
    const again = changedBy(beginCharge(failed, { ...next, attempt: 2 }));
    expect(endCharge(again, end)).toEqual({ kind: 'stays' });
    const paid = changedBy(endCharge(again, { ...end, attempt: 2 }));
    expect(endCharge(paid, end)).toEqual({ kind: 'stays' });
  });

  test('that fail are repeated 1, 3, 5 and 7 days after the first, and then it is unpaid', () => {
    let subscription = charge(invoiced, 'failed', due);
    expect(subscription.state).toBe('past_due');
    for (const [index, day] of [1, 3, 5, 7].entries()) {
      expect(decide(subscription, later(day).subtract({ seconds: 1 }))).toEqual({ kind: 'wait', until: later(day) });
      expect(decide(subscription, later(day))).toMatchObject({ kind: 'charge', attempt: index + 2, due: 11_500n });
      subscription = charge(subscription, 'failed', later(day));
    }
    expect(decide(subscription, later(7))).toEqual({ kind: 'move', event: 'dunning_ended' });
    expect(planSubscription(subscription, later(7), { ...defaultDunning, whenExhausted: 'cancel' })).toMatchObject({
      event: 'cancel',
    });
  });

  test('that succeed in dunning make it active again, and what was served is billed', () => {
    const failed = charge(invoiced, 'failed', due);
    const paid = charge(failed, 'succeeded', later(40));
    expect(paid.state).toBe('active');
    expect(decide(paid, later(40))).toMatchObject({ kind: 'invoice', invoice: { key: 's1:2026-03-31' } });
  });

  test('of one that was unpaid make it active from that day on', () => {
    const unpaid = changedBy(moveSubscription(charge(invoiced, 'failed', due), 'dunning_ended', later(7)));
    const paid = charge(unpaid, 'succeeded', later(40));
    expect(decide(paid, later(40))).toMatchObject({ kind: 'invoice', invoice: { key: 's1:2026-04-09' } });
  });

  test('are not made for what is cancelled', () => {
    const cancelled = changedBy(moveSubscription(invoiced, 'cancel', due));
    expect(decide(cancelled, due)).toEqual({ kind: 'wait', until: undefined });
    expect(beginCharge(cancelled, next)).toEqual({ kind: 'refused' });
  });
});

test('who gets invoices is reminded of those that are overdue, and the last reminder is the end', () => {
  let subscription = invoice(create({ collection: 'send_invoice' }), begun);
  expect(subscription.state).toBe('active');
  expect(decide(subscription, begun)).toEqual({ kind: 'wait', until: days(7) });
  expect(decide(subscription, days(8))).toEqual({ kind: 'overdue', key, at: days(7) });
  subscription = changedBy(withOverdue(subscription, key, days(7)));
  expect(withOverdue(subscription, key, days(8))).toEqual({ kind: 'stays' });
  for (const [index, day] of [8, 10, 12, 14].entries()) {
    expect(decide(subscription, days(day))).toMatchObject({ kind: 'remind', attempt: index + 1 });
    subscription = changedBy(withReminder(subscription, { key, attempt: index + 1 }));
  }
  expect(subscription.state).toBe('past_due');
  expect(decide(subscription, days(14))).toEqual({ kind: 'move', event: 'dunning_ended' });
});

test('one that is to end with its period ends there, although an invoice is open', () => {
  const end = Temporal.Instant.from('2026-02-27T22:00:00Z');
  expect(decide({ ...active, cancelAtPeriodEnd: true }, begun)).toEqual({ kind: 'wait', until: end });
  expect(decide({ ...active, cancelAtPeriodEnd: true }, end)).toEqual({ kind: 'move', event: 'cancel' });
  const sent = { ...invoice(create({ collection: 'send_invoice' }), begun), cancelAtPeriodEnd: true };
  expect(decide(sent, end)).toEqual({ kind: 'move', event: 'cancel' });
  const unpaid = { ...sent, state: 'unpaid' } as const;
  expect(decide(unpaid, begun)).toEqual({ kind: 'wait', until: end });
  expect(decide(unpaid, end)).toEqual({ kind: 'move', event: 'cancel' });
  expect(decide({ ...unpaid, cancelAtPeriodEnd: false }, end)).toEqual({ kind: 'wait', until: undefined });
});

describe('a pause', () => {
  const paused = changedBy(moveSubscription(active, 'pause', days(1)));

  test('bills nothing', () => {
    expect(decide(paused, days(100))).toEqual({ kind: 'wait', until: undefined });
  });

  test('that ends in the paid period changes nothing', () => {
    expect(changedBy(moveSubscription(paused, 'resume', days(2)))).toEqual(active);
  });

  test('that ends later begins a period on that day', () => {
    const resumed = changedBy(moveSubscription(paused, 'resume', days(100)));
    expect(decide(resumed, days(100))).toMatchObject({ kind: 'invoice', invoice: { key: 's1:2026-05-11' } });
  });
});

describe('another plan', () => {
  // Half of a period of 28 days.
  const middle = Temporal.Instant.from('2026-02-14T10:00:00Z');
  const bigger = { ...plan, name: 'More tea', amount: 23_000n };

  test('that costs more adds the difference for the rest of the period to the next invoice', () => {
    const change = changePlan(active, { plan: bigger, at: middle, creditable: 11_500n, unpaid: 0n });
    expect(change).toMatchObject({ kind: 'changed', credit: 0n, subscription: { plan: bigger, pendingAmount: 5750n } });
    if (change.kind !== 'changed') throw new Error(change.kind);
    const next = decide(change.subscription, Temporal.Instant.from('2026-02-28T10:00:00Z'));
    expect(next).toMatchObject({
      kind: 'invoice',
      invoice: { due: 28_750n, lines: [{ gross: 23_000n }, { gross: 5750n }] },
    });
  });

  test('that costs less leaves credit, which the next invoices use up', () => {
    const change = changePlan(active, {
      plan: { ...plan, amount: 2300n },
      at: middle,
      creditable: 11_500n,
      unpaid: 0n,
    });
    if (change.kind !== 'changed') throw new Error(change.kind);
    expect(change).toMatchObject({ credit: 4600n, subscription: { creditBalance: 4600n, pendingAmount: 0n } });
    const due = Temporal.Instant.from('2026-06-01T10:00:00Z');
    const once = invoice(change.subscription, due);
    expect(once).toMatchObject({ state: 'active', open: undefined, creditBalance: 2300n });
    const thrice = invoice(invoice(once, due), due);
    expect(thrice).toMatchObject({ creditBalance: 0n, open: { due: 2300n } });
  });

  test('and back again on one day costs nothing', () => {
    const change = changePlan(active, { plan: bigger, at: middle, creditable: 11_500n, unpaid: 0n });
    if (change.kind !== 'changed') throw new Error(change.kind);
    const back = changePlan(change.subscription, { plan, at: middle, creditable: 11_500n, unpaid: 0n });
    expect(back).toEqual({ kind: 'changed', subscription: active, credit: 0n });
  });

  test('credits no more than what is left of the invoice', () => {
    const free = { ...plan, amount: 0n };
    expect(changePlan(active, { plan: free, at: begun, creditable: 100n, unpaid: 0n })).toMatchObject({ credit: 100n });
  });

  test('with another interval holds from the end of the period', () => {
    const yearly = { ...bigger, interval: { unit: 'year', count: 1 } } as const;
    const change = changePlan(active, { plan: yearly, at: middle, creditable: 11_500n, unpaid: 0n });
    if (change.kind !== 'changed') throw new Error(change.kind);
    const due = Temporal.Instant.from('2026-02-28T10:00:00Z');
    expect(change.subscription).toMatchObject({ plan, pendingPlan: yearly, nextIndex: 1 });
    expect(decide(change.subscription, middle)).toMatchObject({ kind: 'wait' });
    expect(decide(change.subscription, due)).toEqual({ kind: 'change_plan' });
    expect(decide(withPendingPlan(change.subscription), due)).toMatchObject({
      invoice: { due: 23_000n, period: { end: Temporal.PlainDate.from('2027-02-28') } },
    });
  });

  function through(plans: readonly Plan[]): Subscription {
    return plans.reduce((subscription, to) => {
      const change = changePlan(subscription, { plan: to, at: middle, creditable: 11_500n, unpaid: 0n });
      if (change.kind !== 'changed') throw new Error(change.kind);
      return change.subscription;
    }, active);
  }
  const yearly = { ...plan, name: 'Year', amount: 99n, interval: { unit: 'year', count: 1 } } as const;
  const cheap = { ...plan, amount: 2300n };
  test.each([
    ['a dearer one', [bigger], [yearly, bigger]],
    ['a cheaper one and back', [cheap, plan], [cheap, yearly, plan]],
    ['none', [plan], [yearly, plan]],
  ])('costs the same whatever interval comes between: %s', (_what, straight, around) => {
    expect(through(around)).toEqual(through(straight));
  });

  test('of another interval holds at once in a trial', () => {
    const trial = create({ trialDays: 14, collection: 'send_invoice' });
    const change = changePlan(trial, { plan: yearly, at: begun, creditable: 0n, unpaid: 0n });
    expect(change).toMatchObject({
      subscription: { plan: yearly, pendingPlan: undefined, schedule: { anchor: trial.schedule.anchor } },
    });
  });

  test('is refused in another currency, and while something is unpaid', () => {
    const request = { plan: { ...plan, currency: 'USD' }, at: begun, creditable: 0n, unpaid: 0n };
    expect(changePlan(active, request)).toEqual({ kind: 'refused', reason: 'currency' });
    expect(changePlan({ ...active, state: 'past_due' }, request)).toEqual({ kind: 'refused', reason: 'state' });
  });

  test('that costs less lowers what is not paid yet, and leaves the rest as credit', () => {
    const request = { plan: { ...plan, amount: 2300n }, at: middle, creditable: 11_500n };
    expect(changePlan(active, { ...request, unpaid: 11_500n })).toMatchObject({
      credit: 4600n,
      subscription: { creditBalance: 0n, pendingAmount: 0n },
    });
    expect(changePlan(active, { ...request, unpaid: 1000n })).toMatchObject({
      credit: 4600n,
      subscription: { creditBalance: 3600n },
    });
  });

  test.each([
    ['at once', { ...plan, amount: 10n ** 12n }],
    ['with the rest of the period', { ...plan, amount: 7n * 10n ** 11n, taxBehavior: 'exclusive' } as const],
    [
      'by the year',
      { ...plan, amount: 10n ** 12n, taxBehavior: 'exclusive', interval: { unit: 'year', count: 1 } } as const,
    ],
  ])('whose next invoice could not be charged is refused: %s', (_how, dear) => {
    const request = { plan: dear, at: middle, creditable: 11_500n, unpaid: 0n };
    expect(changePlan(active, request)).toEqual({ kind: 'refused', reason: 'amount' });
  });
});

test('a charge that was surely not made leaves no trace, and its number is used again', () => {
  const due = invoice(active, days(28));
  const { key: open = '' } = due.open ?? {};
  const charging = changedBy(beginCharge(due, { key: open, attempt: 1 }));
  expect(withdrawCharge(charging, { key: open, attempt: 2 })).toEqual({ kind: 'stays' });
  expect(withdrawCharge(due, { key: open, attempt: 0 })).toEqual({ kind: 'stays' });
  expect(changedBy(withdrawCharge(charging, { key: open, attempt: 1 }))).toEqual(due);
  const failed = charge(due, 'failed', days(28));
  const again = changedBy(beginCharge(failed, { key: open, attempt: 2 }));
  expect(changedBy(withdrawCharge(again, { key: open, attempt: 2 }))).toEqual(failed);
});

test('an invoice that is paid by hand, or taken back, ends dunning', () => {
  const overdue = charge(invoice(active, days(28)), 'failed', days(28));
  expect(overdue.state).toBe('past_due');
  expect(closeInvoice(overdue, key, days(29))).toEqual({ kind: 'stays' });
  const closed = changedBy(closeInvoice(overdue, overdue.open?.key ?? '', days(29)));
  expect(closed).toMatchObject({ state: 'active', open: undefined });
});
