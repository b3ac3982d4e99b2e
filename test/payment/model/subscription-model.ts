import type { BillingPeriod } from '@rollcall/payment/domain/calendar.ts';
import {
  beginCharge,
  changePlan,
  createSubscription,
  endCharge,
  moveSubscription,
  type SubscriptionChange,
  withInvoice,
  withOverdue,
  withPendingPlan,
  withReminder,
} from '@rollcall/payment/domain/subscription-changes.ts';
import type { SubscriptionEvent } from '@rollcall/payment/domain/subscription-states.ts';
import {
  defaultDunning,
  type Plan,
  planSubscription,
  type Subscription,
  type SubscriptionDecision,
} from '@rollcall/payment/domain/subscriptions.ts';
import * as fc from 'fast-check';
import { createPaymentWorld, type Fate, fates, overlap } from './payment-world.ts';

/*
 * One subscription, two replicas that plan for it, a worker that charges, a provider whose answers get lost, its
 * notifications at any time, and a customer who changes her mind. A replica decides by what it read, and commits only
 * where nobody changed the row since, as the store does.
 */

type Step =
  | { readonly type: 'pass time'; readonly hours: number }
  | { readonly type: 'until due' | 'run' | 'pay' }
  | { readonly type: 'plan' | 'commit'; readonly replica: number }
  | { readonly type: 'send'; readonly fate: Fate }
  | { readonly type: 'notify'; readonly which: number }
  | { readonly type: 'look up'; readonly works: boolean }
  | { readonly type: 'refund'; readonly which: number; readonly amount: bigint; readonly fate: Fate }
  | { readonly type: 'ask'; readonly event: SubscriptionEvent | 'cancel at period end' }
  | { readonly type: 'change plan'; readonly plan: Plan };

const plan: Plan = {
  name: 'Tea of the month',
  amount: 10_000n,
  currency: 'ZAR',
  interval: { unit: 'month', count: 1 },
  taxRate: 150_000n,
  taxBehavior: 'inclusive',
};

const replica = fc.nat(1);
const amount = fc.oneof(fc.constant(10_000n), fc.bigInt({ min: 1n, max: 12_000n }));
const fate = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Fate>('taken') },
  { weight: 4, arbitrary: fc.constantFrom(...fates) },
);
const wish = fc.oneof(
  { weight: 8, arbitrary: fc.constantFrom('pause' as const, 'resume' as const, 'trial_started' as const) },
  { weight: 1, arbitrary: fc.constantFrom('cancel' as const, 'cancel at period end' as const) },
);
const anyPlan = fc
  .record({ amount: fc.bigInt({ min: 0n, max: 30_000n }), unit: fc.constantFrom('month', 'week', 'year') })
  .map(({ amount, unit }) => ({
    type: 'change plan' as const,
    plan: { ...plan, amount, interval: { unit, count: 1 } },
  }));

/** Any order of what may happen. */
export const anySteps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.oneof(
    { weight: 8, arbitrary: fc.constant({ type: 'until due' as const }) },
    { weight: 16, arbitrary: fc.constant({ type: 'run' as const }) },
    {
      weight: 2,
      arbitrary: fc.record({ type: fc.constant('pass time' as const), hours: fc.integer({ min: 1, max: 400 }) }),
    },
    { weight: 2, arbitrary: fc.constant({ type: 'pay' as const }) },
    { weight: 4, arbitrary: fc.record({ type: fc.constantFrom('plan' as const, 'commit' as const), replica }) },
    { weight: 10, arbitrary: fc.record({ type: fc.constant('send' as const), fate }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('notify' as const), which: fc.nat(9) }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('look up' as const), works: fc.boolean() }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('refund' as const), which: fc.nat(9), amount, fate }) },
    { weight: 3, arbitrary: fc.record({ type: fc.constant('ask' as const), event: wish }) },
    { weight: 2, arbitrary: anyPlan },
  ),
  // Longer ones do not come by themselves.
  { minLength: 20, maxLength: 60 },
);

interface Beginning {
  readonly trialDays: number;
  readonly collection: Subscription['collection'];
  /** Whether lookups work when all is over. */
  readonly providerReturns: boolean;
}

export const anyBeginning: fc.Arbitrary<Beginning> = fc.record({
  trialDays: fc.constantFrom(0, 14),
  collection: fc.constantFrom('charge_automatically', 'send_invoice'),
  providerReturns: fc.boolean(),
});

interface Planned {
  readonly version: number;
  readonly decision: SubscriptionDecision;
}

/** Runs it, and lets all outcomes be known at its end. Says what went wrong; undefined where nothing did. */
export function runModel(beginning: Beginning, steps: readonly Step[]): string | undefined {
  const { trialDays, collection, providerReturns } = beginning;
  let now = Temporal.Instant.from('2026-01-31T10:00:00Z');
  let version = 0;
  let subscription = createSubscription({
    id: 's',
    plan,
    trialDays,
    collection,
    timeZone: 'Africa/Johannesburg',
    createdAt: now,
  });
  const periods: BillingPeriod[] = [];
  const keys = new Set<string>();
  const planned = new Map<number, Planned>();
  let fault: string | undefined;

  function save(change: SubscriptionChange): boolean {
    if (change.kind !== 'changed') return false;
    subscription = change.subscription;
    version += 1;
    return true;
  }

  const world = createPaymentWorld(({ key, attempt }, outcome) => {
    save(endCharge(subscription, { key, attempt, outcome, at: now }));
  });

  function charge(key: string, attempt: number, amount: bigint): void {
    if (save(beginCharge(subscription, { key, attempt }))) world.queue({ key, attempt, amount });
  }

  function apply(decision: SubscriptionDecision): void {
    switch (decision.kind) {
      case 'invoice': {
        const { key, period, due } = decision.invoice;
        if (keys.has(key)) fault ??= `two invoices for ${key}`;
        keys.add(key);
        periods.push(period);
        save({ kind: 'changed', subscription: withInvoice(subscription, decision.invoice, now) });
        // The customer, who is there, pays the first one; one that was sent is paid sooner or later.
        if (subscription.state === 'incomplete' || collection === 'send_invoice') charge(key, 1, due);
        return;
      }
      case 'charge':
        charge(decision.key, decision.attempt, decision.due);
        return;
      case 'remind':
        save(withReminder(subscription, decision));
        return;
      case 'overdue':
        save(withOverdue(subscription, decision.key, decision.at));
        return;
      case 'move':
        save(moveSubscription(subscription, decision.event, now));
        return;
      case 'change_plan':
        save({ kind: 'changed', subscription: withPendingPlan(subscription) });
        return;
      case 'wait':
    }
  }

  const decide = (): SubscriptionDecision => planSubscription(subscription, now, defaultDunning);

  function take(step: Step): void {
    switch (step.type) {
      case 'pass time':
        now = now.add({ hours: step.hours });
        return;
      case 'until due': {
        const decision = decide();
        if (decision.kind === 'wait' && decision.until !== undefined) now = decision.until;
        return;
      }
      case 'run':
        apply(decide());
        return;
      case 'pay': {
        // The customer, by hand.
        const { open } = subscription;
        if (open !== undefined) charge(open.key, open.attempts + 1, open.due);
        return;
      }
      case 'plan':
        planned.set(step.replica, { version, decision: decide() });
        return;
      case 'commit': {
        const decided = planned.get(step.replica);
        planned.delete(step.replica);
        if (decided?.version === version) apply(decided.decision);
        return;
      }
      case 'send':
        world.send(step.fate, now);
        return;
      case 'notify':
        world.notify(step.which);
        return;
      case 'look up':
        world.lookUp(step.works, now);
        return;
      case 'refund':
        world.refund(step.which, step.amount, { fate: step.fate, now });
        return;
      case 'ask':
        if (step.event === 'cancel at period end') {
          save({ kind: 'changed', subscription: { ...subscription, cancelAtPeriodEnd: true } });
        } else save(moveSubscription(subscription, step.event, now));
        return;
      case 'change plan': {
        const change = changePlan(subscription, { plan: step.plan, at: now, creditable: 10_000n, unpaid: 0n });
        if (change.kind === 'changed') save({ kind: 'changed', subscription: change.subscription });
      }
    }
  }

  for (const step of steps) take(step);
  // Calls that were begun are looked up, at first in vain.
  for (let round = 0; round < 16; round += 1) {
    now = now.add({ hours: 6 });
    world.lookUp(providerReturns && round > 8, now);
  }
  const [open] = world.open();
  return fault ?? world.fault() ?? (open === undefined ? overlap(periods) : open);
}
