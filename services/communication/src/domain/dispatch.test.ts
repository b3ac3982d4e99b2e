import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { chooseProvider, defaultRetryPolicy, type RouteEntry, repeatDelay, routeFor, stepAfter } from './dispatch.ts';
import type { SendOutcome } from './ports.ts';

const entry = (provider: string, priority = 1, weight = 1): RouteEntry => ({ provider, priority, weight });
const now = new Date('2026-11-27T10:00:00Z');
const later = (ms: number) => new Date(now.getTime() + ms);
const nobody: ReadonlySet<string> = new Set();
const atOnce = () => 0;

test('a country with providers of its own has those alone', () => {
  const table = { entries: [entry('twilio')], byCountry: { ZA: [entry('bulksms')] } };
  expect(routeFor(table, 'ZA')).toEqual([entry('bulksms')]);
  expect(routeFor(table, 'GB')).toEqual([entry('twilio')]);
  expect(routeFor(table, 'constructor')).toEqual([entry('twilio')]);
  expect(routeFor(table, undefined)).toEqual([entry('twilio')]);
});

const route = [entry('c', 3), entry('a', 1), entry('b', 2)];

test.each([
  { tried: [], unavailable: {}, choice: { provider: 'a' } },
  { tried: ['a'], unavailable: {}, choice: { provider: 'b' } },
  { tried: [], unavailable: { a: 500 }, choice: { provider: 'b' } },
  { tried: ['b'], unavailable: { a: 500 }, choice: { provider: 'c' } },
  { tried: ['b'], unavailable: { a: 500, c: 200 }, choice: { provider: 'c' } },
  { tried: ['c'], unavailable: { a: 500, b: 300, c: 1 }, choice: { provider: 'b' } },
  { tried: ['a', 'b', 'c'], unavailable: {}, choice: 'none-left' },
])('where $tried were tried and $unavailable are away, the choice is $choice', ({ tried, unavailable, choice }) => {
  const away = new Map(Object.entries(unavailable));
  const availableInMs = (provider: string) => away.get(provider) ?? 0;
  expect(chooseProvider(route, { availableInMs, tried: new Set(tried), random: Math.random })).toEqual(choice);
});

test('where time goes on between two questions, the first that will be available is chosen', () => {
  let passed = 0;
  const availableInMs = (provider: string) => {
    passed += 1;
    return (provider === 'a' ? 500 : 800) - passed;
  };
  expect(chooseProvider(route, { availableInMs, tried: nobody, random: Math.random })).toEqual({ provider: 'a' });
});

test('a channel without providers has none', () => {
  expect(chooseProvider([], { availableInMs: atOnce, tried: nobody, random: Math.random })).toBe('none');
});

test.each([
  { at: 0, provider: 'a' },
  { at: 0.249, provider: 'a' },
  { at: 0.25, provider: 'b' },
  { at: 0.999_999, provider: 'b' },
])('of weights 1 and 3, $at of the way is $provider', ({ at, provider }) => {
  const weighted = [entry('a', 1, 1), entry('b', 1, 3), entry('c', 2, 100)];
  expect(chooseProvider(weighted, { availableInMs: atOnce, tried: nobody, random: () => at })).toEqual({ provider });
});

const end = {
  hasOther: false,
  pauses: 0,
  now,
  expiresAt: later(86_400_000),
  policy: { baseMs: 1000, maxMs: 60_000 },
  random: () => 0.5,
};
const gone = { kind: 'address-unknown' } as const;

test.each<{ outcome: SendOutcome; hasOther?: boolean; step: object }>([
  { outcome: { outcome: 'accepted', providerId: 'x' }, hasOther: true, step: { event: 'accepted' } },
  { outcome: { outcome: 'unknown', reason: 'timeout' }, hasOther: true, step: { event: 'lost', reason: 'timeout' } },
  {
    outcome: { outcome: 'failed', reason: '503' },
    step: { event: 'postponed', delayMs: 750, reason: '503' },
  },
  {
    outcome: { outcome: 'failed', reason: '429', retryAfterMs: 120_000 },
    step: { event: 'postponed', delayMs: 120_000, reason: '429' },
  },
  {
    outcome: { outcome: 'failed', reason: '429', retryAfterMs: 120_000 },
    hasOther: true,
    step: { event: 'postponed', delayMs: 0, reason: '429' },
  },
  {
    outcome: { outcome: 'refused', cause: 'recipient', reason: '550 5.1.1', suppress: gone },
    hasOther: true,
    step: { event: 'refused', reason: '550 5.1.1', suppress: gone },
  },
  {
    outcome: { outcome: 'refused', cause: 'content', reason: '554' },
    hasOther: true,
    step: { event: 'refused', reason: '554' },
  },
  {
    outcome: { outcome: 'refused', cause: 'size', reason: '413' },
    hasOther: true,
    step: { event: 'postponed', delayMs: 0, reason: '413' },
  },
  { outcome: { outcome: 'refused', cause: 'size', reason: '413' }, step: { event: 'refused', reason: '413' } },
  {
    outcome: { outcome: 'refused', cause: 'credentials', reason: '401' },
    hasOther: true,
    step: { event: 'postponed', delayMs: 0, reason: '401' },
  },
  {
    outcome: { outcome: 'refused', cause: 'credit', reason: '402' },
    step: { event: 'postponed', delayMs: 750, reason: '402' },
  },
])('after $outcome, other providers: $hasOther, comes $step', ({ outcome, hasOther = false, step }) => {
  expect(stepAfter({ ...end, outcome, hasOther })).toEqual(step);
});

/** What comes of a message that meets these outcomes, one after another. */
function follow(outcomes: Iterable<SendOutcome>, policy = end.policy) {
  let at = now.getTime();
  let pauses = 0;
  for (const outcome of outcomes) {
    const step = stepAfter({ ...end, policy, outcome, pauses, now: new Date(at) });
    if (step.event !== 'postponed') return { step, outcome, pauses, at };
    at += step.delayMs ?? 0;
    pauses += 1;
  }
  throw new Error('it never ends');
}

test('a mail that a server defers until it expires fails, and suppresses nobody', () => {
  const outcome = { outcome: 'failed', reason: '421 4.7.0' } as const;
  const { step, pauses, at } = follow(
    Array.from({ length: 1000 }, () => outcome),
    defaultRetryPolicy,
  );
  expect(step).toEqual({ event: 'given-up', reason: 'expired: 421 4.7.0' });
  // Every hour at the longest, for nearly a day.
  expect(pauses).toBeGreaterThan(24);
  expect(pauses).toBeLessThan(60);
  expect(at).toBeLessThan(end.expiresAt.getTime());
});

test('every message ends, and none goes on after a provider may have taken it', () => {
  const outcomes = fc.constantFrom<SendOutcome>(
    { outcome: 'failed', reason: 'x' },
    { outcome: 'unknown', reason: 'x' },
    { outcome: 'accepted', providerId: 'x' },
    { outcome: 'refused', cause: 'credit', reason: 'x' },
    { outcome: 'refused', cause: 'recipient', reason: 'x' },
  );
  fc.assert(
    fc.property(fc.infiniteStream(outcomes), (stream) => {
      const { step, outcome } = follow(stream);
      const ends = { accepted: 'accepted', unknown: 'lost', failed: 'given-up', refused: /^(?:refused|given-up)$/ };
      expect(step.event).toMatch(ends[outcome.outcome]);
    }),
  );
  expect(follow([{ outcome: 'unknown', reason: 'x' }]).pauses).toBe(0);
});

const unknown = {
  idempotentForMs: undefined,
  ageMs: 0,
  pauses: 0,
  policy: end.policy,
  random: end.random,
};

test.each([
  { attempt: {}, delayMs: undefined },
  { attempt: { idempotentForMs: 10_000 }, delayMs: 750 },
  { attempt: { idempotentForMs: 10_000, pauses: 2 }, delayMs: 3000 },
  { attempt: { idempotentForMs: 10_000, ageMs: 9250 }, delayMs: undefined },
])('an unknown attempt with $attempt is made again after $delayMs ms', ({ attempt, delayMs }) => {
  expect(repeatDelay({ ...unknown, ...attempt })).toBe(delayMs);
});
