import { expect, test } from 'vitest';
import { planLookUp } from './lookups.ts';

const since = Temporal.Instant.from('2026-11-27T10:00:00Z');
const after = (minutes: number): Temporal.Instant => since.add({ minutes });

test('an open outcome is looked up after a minute, and then after twice as long each time', () => {
  expect(planLookUp({ since, lookUps: 0, lastLookUpAt: undefined }, since)).toEqual({ kind: 'wait', until: after(1) });
  expect(planLookUp({ since, lookUps: 0, lastLookUpAt: undefined }, after(1))).toEqual({ kind: 'look_up' });
  expect(planLookUp({ since, lookUps: 1, lastLookUpAt: after(1) }, after(2))).toEqual({
    kind: 'wait',
    until: after(3),
  });
  expect(planLookUp({ since, lookUps: 30, lastLookUpAt: after(1) }, after(2))).toEqual({
    kind: 'wait',
    until: after(361),
  });
});

test('after three days a person decides, but not without one lookup', () => {
  const late = after(72 * 60);
  expect(planLookUp({ since, lookUps: 9, lastLookUpAt: after(60) }, late)).toEqual({ kind: 'give_up' });
  expect(planLookUp({ since, lookUps: 0, lastLookUpAt: undefined }, late)).toEqual({ kind: 'look_up' });
});
