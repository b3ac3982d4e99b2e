import { expect, test } from 'vitest';
import { dueAt, planWork } from './due.ts';

const HOUR_MS = 3_600_000;
const at = (hours: number): Date => new Date(Date.UTC(2026, 10, 27) + hours * HOUR_MS);
const open = {
  state: 'pending',
  purpose: 'pay',
  createdAt: at(0),
  calledAt: at(0),
  checkoutRef: 'co_1',
  expiresAt: at(24),
  processingAt: undefined,
  lookUps: 0,
  lastLookUpAt: undefined,
} as const;
const away = { ...open, calledAt: undefined, checkoutRef: undefined } as const;
const unknown = { ...open, state: 'processing', checkoutRef: undefined } as const;
const charge = { ...unknown, purpose: 'charge' } as const;

test.each([
  { what: 'is over', payment: { ...open, state: 'succeeded' } as const, hours: 1, kind: 'nothing' },
  { what: 'can be paid', payment: open, hours: 1, kind: 'wait' },
  { what: 'was not paid in time', payment: open, hours: 24.1, kind: 'look_up' },
  {
    what: 'was not paid in time, and was looked up often before',
    payment: { ...open, lookUps: 20, lastLookUpAt: at(23) },
    hours: 24.1,
    kind: 'look_up',
  },
  {
    what: 'was not paid, and was not looked up for days',
    payment: { ...open, lookUps: 20, lastLookUpAt: at(23) },
    hours: 97,
    kind: 'look_up',
  },
  {
    what: 'was not paid, and nobody can say',
    payment: { ...open, lookUps: 20, lastLookUpAt: at(90) },
    hours: 97,
    kind: 'give_up',
  },
  {
    what: 'its provider works on, and nobody can say',
    payment: { ...open, state: 'processing', processingAt: at(2), lookUps: 20, lastLookUpAt: at(90) } as const,
    hours: 97,
    kind: 'look_up',
  },
  {
    what: 'its provider has worked on for a month',
    payment: { ...open, state: 'processing', processingAt: at(2), lookUps: 99, lastLookUpAt: at(740) } as const,
    hours: 745,
    kind: 'give_up',
  },
  { what: 'has no checkout, since its provider was not reached', payment: away, hours: 0.001, kind: 'call_again' },
  { what: 'has none, and was called for just now', payment: away, hours: 0.0005, kind: 'wait' },
  {
    what: 'has none, and was called for often',
    payment: { ...away, lookUps: 20, lastLookUpAt: at(1) },
    hours: 1.2,
    kind: 'wait',
  },
  { what: 'has none, and is too old', payment: away, hours: 24, kind: 'expire' },
  { what: 'is being called for', payment: { ...away, calledAt: at(0) }, hours: 0.01, kind: 'wait' },
  { what: 'was being called for', payment: { ...away, calledAt: at(0) }, hours: 0.02, kind: 'call_again' },
  {
    what: 'is a charge that was not made',
    payment: { ...away, purpose: 'charge' } as const,
    hours: 1,
    kind: 'wait',
  },
  { what: 'has a checkout that is not known', payment: unknown, hours: 0.1, kind: 'call_again' },
  { what: 'has one that is not known since a moment', payment: unknown, hours: 0.001, kind: 'call_again' },
  { what: 'has one that nobody ever saw', payment: unknown, hours: 24, kind: 'expire' },
  { what: 'is a charge that is not known', payment: charge, hours: 0.1, kind: 'look_up' },
  { what: 'is one just now', payment: charge, hours: 0.001, kind: 'wait' },
  {
    what: 'is one that was looked up a moment ago',
    payment: { ...charge, lookUps: 3, lastLookUpAt: at(1) },
    hours: 1.01,
    kind: 'wait',
  },
  {
    what: 'is one for three days',
    payment: { ...charge, lookUps: 20, lastLookUpAt: at(70) },
    hours: 72,
    kind: 'give_up',
  },
])('what is done for a payment that $what', ({ payment, hours, kind }) => {
  expect(planWork(payment, at(hours)).kind).toBe(kind);
});

test('it is due when it is to be looked at, and never when it is over', () => {
  expect(dueAt(open, at(1))).toEqual(at(24));
  expect(dueAt(charge, at(1))).toEqual(at(1));
  expect(dueAt({ ...open, state: 'failed' }, at(1))).toBeUndefined();
});
