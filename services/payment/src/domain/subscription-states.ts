import type { TransitionTable } from './transitions.ts';

export type SubscriptionState = 'incomplete' | 'trialing' | 'active' | 'past_due' | 'unpaid' | 'paused' | 'cancelled';

export type SubscriptionEvent =
  /** How to pay is known, and the trial begins. */
  | 'trial_started'
  | 'trial_ended'
  /** Nothing that was invoiced is unpaid. */
  | 'paid'
  | 'payment_failed'
  /** The last retry has failed. */
  | 'dunning_ended'
  /** The first payment was not made in time. */
  | 'first_payment_expired'
  | 'pause'
  | 'resume'
  | 'cancel';

const refused = {
  trial_started: 'refused',
  trial_ended: 'refused',
  paid: 'refused',
  payment_failed: 'refused',
  dunning_ended: 'refused',
  first_payment_expired: 'refused',
  pause: 'refused',
  resume: 'refused',
  cancel: 'cancelled',
} as const;

/** States of a subscription (SERVICES, section 4). `cancelled` is the end. */
export const subscriptionTable: TransitionTable<SubscriptionState, SubscriptionEvent> = {
  incomplete: {
    ...refused,
    trial_started: 'trialing',
    paid: 'active',
    // The payer may try again until the first payment expires.
    payment_failed: 'stays',
    first_payment_expired: 'cancelled',
  },
  trialing: { ...refused, trial_started: 'stays', trial_ended: 'active', paid: 'stays' },
  active: {
    ...refused,
    trial_ended: 'stays',
    paid: 'stays',
    payment_failed: 'past_due',
    pause: 'paused',
    resume: 'stays',
  },
  past_due: { ...refused, paid: 'active', payment_failed: 'stays', dunning_ended: 'unpaid' },
  unpaid: { ...refused, paid: 'active', payment_failed: 'stays', dunning_ended: 'stays' },
  paused: {
    ...refused,
    paid: 'stays',
    payment_failed: 'stays',
    dunning_ended: 'unpaid',
    pause: 'stays',
    resume: 'active',
  },
  cancelled: {
    ...refused,
    paid: 'stays',
    payment_failed: 'stays',
    dunning_ended: 'stays',
    first_payment_expired: 'stays',
    cancel: 'stays',
  },
};
