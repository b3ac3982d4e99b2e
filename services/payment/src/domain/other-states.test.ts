import { expect, test } from 'vitest';
import { type InvoiceEvent, type InvoiceState, invoiceTable } from './invoice-states.ts';
import { type SubscriptionEvent, type SubscriptionState, subscriptionTable } from './subscription-states.ts';
import { move } from './transitions.ts';

test.each<[SubscriptionState, SubscriptionEvent, string]>([
  ['incomplete', 'trial_started', 'trialing'],
  ['incomplete', 'paid', 'active'],
  ['incomplete', 'payment_failed', 'stays'],
  ['incomplete', 'first_payment_expired', 'cancelled'],
  ['trialing', 'trial_ended', 'active'],
  ['active', 'payment_failed', 'past_due'],
  ['past_due', 'paid', 'active'],
  ['past_due', 'dunning_ended', 'unpaid'],
  ['past_due', 'pause', 'refused'],
  ['unpaid', 'paid', 'active'],
  ['active', 'pause', 'paused'],
  ['paused', 'resume', 'active'],
  ['active', 'cancel', 'cancelled'],
  ['cancelled', 'cancel', 'stays'],
  ['cancelled', 'paid', 'stays'],
  ['cancelled', 'resume', 'refused'],
])('a subscription that is %s becomes by %s: %s', (state, event, expected) => {
  const transition = move(subscriptionTable, state, event);
  expect(transition.kind === 'moved' ? transition.to : transition.kind).toBe(expected);
});

test('every subscription that is not over can be cancelled, and nothing follows', () => {
  for (const [state, row] of Object.entries(subscriptionTable)) {
    expect(row.cancel).toBe(state === 'cancelled' ? 'stays' : 'cancelled');
  }
  for (const target of Object.values(subscriptionTable.cancelled)) expect(['stays', 'refused']).toContain(target);
});

test.each<[InvoiceState, InvoiceEvent, string]>([
  ['draft', 'finalize', 'open'],
  ['draft', 'paid', 'refused'],
  ['open', 'finalize', 'stays'],
  ['open', 'paid', 'paid'],
  ['open', 'void', 'void'],
  ['paid', 'void', 'refused'],
  ['void', 'finalize', 'refused'],
])('an invoice that is %s becomes by %s: %s', (state, event, expected) => {
  const transition = move(invoiceTable, state, event);
  expect(transition.kind === 'moved' ? transition.to : transition.kind).toBe(expected);
});

test('no invoice goes back to draft', () => {
  for (const row of Object.values(invoiceTable)) expect(Object.values(row)).not.toContain('draft');
});
