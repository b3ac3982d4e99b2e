import { expect, test } from 'vitest';
import { type OpenOutcome, planAfterNothing, planLookUp } from './lookups.ts';

const since = Temporal.Instant.from('2026-11-27T10:00:00Z');
const open: OpenOutcome = { since, lookUps: 0, lastLookUpAt: undefined, isAccepted: false };
const after = (minutes: number): Temporal.Instant => since.add({ minutes });

test('an open outcome is looked up after a minute, and then after twice as long each time', () => {
  expect(planLookUp(open, since)).toEqual({ kind: 'wait', until: after(1) });
  expect(planLookUp(open, after(1))).toEqual({ kind: 'look_up' });
  expect(planLookUp({ ...open, lookUps: 1, lastLookUpAt: after(1) }, after(2))).toEqual({
    kind: 'wait',
    until: after(3),
  });
  expect(planLookUp({ ...open, lookUps: 30, lastLookUpAt: after(1) }, after(2))).toEqual({
    kind: 'wait',
    until: after(361),
  });
});

test('after three days a person decides, but not without one lookup', () => {
  const late = after(72 * 60);
  expect(planLookUp({ ...open, lookUps: 9, lastLookUpAt: after(60) }, late)).toEqual({ kind: 'give_up' });
  expect(planLookUp(open, late)).toEqual({ kind: 'look_up' });
});

test('what the provider works on is left to it for a month', () => {
  const accepted = { ...open, lookUps: 9, lastLookUpAt: after(60), isAccepted: true };
  expect(planLookUp(accepted, after(29 * 24 * 60))).toEqual({ kind: 'look_up' });
  expect(planLookUp(accepted, after(30 * 24 * 60))).toEqual({ kind: 'give_up' });
});

test.each([
  { found: 'absent', isKeyed: true, calls: 1, hours: 1, next: 'call' },
  { found: 'absent', isKeyed: true, calls: 1, hours: 30, next: 'call' },
  { found: 'absent', isKeyed: true, calls: 10, hours: 1, next: 'fail' },
  { found: 'absent', isKeyed: false, calls: 2, hours: 25, next: 'call' },
  { found: 'absent', isKeyed: false, calls: 3, hours: 25, next: 'fail' },
  { found: 'unknown', isKeyed: true, calls: 9, hours: 22, next: 'call' },
  { found: 'unknown', isKeyed: true, calls: 10, hours: 22, next: 'wait' },
  { found: 'unknown', isKeyed: true, calls: 1, hours: 23, next: 'wait' },
  { found: 'unknown', isKeyed: false, calls: 1, hours: 1, next: 'wait' },
] as const)(
  'after $calls calls, $hours hours, $found and with a key ($isKeyed): $next',
  ({ hours, next, ...nothing }) => {
    expect(planAfterNothing({ ...nothing, since }, after(hours * 60))).toBe(next);
  },
);
