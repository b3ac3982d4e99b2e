import type { SubscriptionOrder } from './order.ts';

export type SubscriptionStatus = 'ACTIVE' | 'PAUSED' | 'CANCELLED' | 'COMPLETED' | 'LOCKED';

/** What a token stands for at PayFast. */
export interface Subscription {
  readonly token: string;
  readonly kind: SubscriptionOrder['kind'];
  readonly status: SubscriptionStatus;
  /** In cents, for each renewal. */
  readonly amount: bigint;
  readonly frequency: number;
  /** 0: until it is cancelled. */
  readonly cycles: number;
  readonly cyclesComplete: number;
  /** YYYY-MM-DD of the next renewal. */
  readonly runDate: string;
  /** Renewals that failed since the last that did not. */
  readonly failures: number;
}

/** Numbers of `status` in answers of `fetch`. */
export const STATUS_NUMBERS: Readonly<Record<SubscriptionStatus, number>> = {
  ACTIVE: 1,
  PAUSED: 2,
  CANCELLED: 3,
  COMPLETED: 4,
  LOCKED: 5,
};

/** What a call or a renewal does. Fields of `update` that are absent stay. */
export type SubscriptionChange =
  | { readonly type: 'pause'; readonly cycles: number }
  | { readonly type: 'unpause' | 'cancel' | 'paid' | 'failed' }
  | {
      readonly type: 'update';
      readonly amount?: bigint | undefined;
      readonly frequency?: number | undefined;
      readonly cycles?: number | undefined;
      readonly runDate?: string | undefined;
    };

const PERIODS: Readonly<Record<number, Temporal.DurationLike>> = {
  1: { days: 1 },
  2: { weeks: 1 },
  3: { months: 1 },
  4: { months: 3 },
  5: { months: 6 },
  6: { years: 1 },
};
/** So many renewals fail one after another until PayFast locks a subscription. */
const FAILURES_UNTIL_LOCKED = 3;

/** What is said of a call that the subscription's status does not allow. */
export const INVALID_STATE = 'The subscription is not in a valid state.';

/** @param today YYYY-MM-DD in South Africa. */
export function createSubscription(token: string, order: SubscriptionOrder, today: string): Subscription {
  const { kind, amount, frequency, cycles, billingDate = today } = order;
  const subscription = { token, kind, amount, frequency, cycles, failures: 0, status: 'ACTIVE' } as const;
  return { ...subscription, cyclesComplete: 0, runDate: billingDate };
}

/** @returns the changed subscription, or undefined where its status does not allow the change. */
export function changeSubscription(subscription: Subscription, change: SubscriptionChange): Subscription | undefined {
  const { status } = subscription;
  const isLive = status === 'ACTIVE' || status === 'PAUSED';
  switch (change.type) {
    case 'pause':
      return status === 'ACTIVE' ? later({ ...subscription, status: 'PAUSED' }, change.cycles) : undefined;
    case 'unpause':
      return status === 'PAUSED' ? { ...subscription, status: 'ACTIVE' } : undefined;
    case 'cancel':
      return isLive || status === 'LOCKED' ? { ...subscription, status: 'CANCELLED' } : undefined;
    case 'update':
      return isLive ? updated(subscription, change) : undefined;
    case 'paid':
      return status === 'ACTIVE' ? renewed(subscription) : undefined;
    case 'failed':
      return status === 'ACTIVE' ? failed(subscription) : undefined;
    default:
      return change satisfies never;
  }
}

function updated(
  subscription: Subscription,
  { amount, frequency, cycles, runDate }: Extract<SubscriptionChange, { type: 'update' }>,
): Subscription {
  return {
    ...subscription,
    amount: amount ?? subscription.amount,
    frequency: frequency ?? subscription.frequency,
    cycles: cycles ?? subscription.cycles,
    runDate: runDate ?? subscription.runDate,
  };
}

function renewed(subscription: Subscription): Subscription {
  if (subscription.kind === 'tokenization') return subscription;
  const cyclesComplete = subscription.cyclesComplete + 1;
  const status = cyclesComplete === subscription.cycles ? 'COMPLETED' : 'ACTIVE';
  return later({ ...subscription, cyclesComplete, status, failures: 0 }, 1);
}

function failed(subscription: Subscription): Subscription {
  const failures = subscription.failures + 1;
  return { ...subscription, failures, status: failures < FAILURES_UNTIL_LOCKED ? 'ACTIVE' : 'LOCKED' };
}

/** Its next renewal is so many periods later. */
function later(subscription: Subscription, cycles: number): Subscription {
  if (subscription.kind === 'tokenization') return subscription;
  let date = Temporal.PlainDate.from(subscription.runDate);
  for (let cycle = 0; cycle < cycles; cycle += 1) date = date.add(PERIODS[subscription.frequency] ?? { months: 1 });
  return { ...subscription, runDate: date.toString() };
}
