import type { DeliveryPhase } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { blockedForMs, jobConditions, missedForMs, type Standing, unclaimedForMs, unreadyForMs } from './conditions.ts';

const at = '2026-11-21T12:00:00.000Z';
const standing = (phase: DeliveryPhase, pods?: Standing['pods'], time = at): Standing => ({
  phase,
  reason: 'Why',
  message: 'why',
  observedGeneration: 2,
  at: time,
  pods,
  isUnclaimed: false,
  isBlocked: false,
  departure: undefined,
});
const statusesOf = (conditions: ReturnType<typeof jobConditions>) =>
  Object.fromEntries(conditions.map(({ type, status }) => [type, status]));

test.for<[DeliveryPhase, string, string]>([
  ['Pending', 'False', 'Unknown'],
  ['Progressing', 'True', 'Unknown'],
  ['Paused', 'False', 'Unknown'],
  ['RollingBack', 'True', 'Unknown'],
  ['Succeeded', 'False', 'True'],
  ['RolledBack', 'False', 'False'],
  ['Failed', 'False', 'False'],
])('%s: Progressing is %s, Succeeded is %s', ([phase, progressing, succeeded]) => {
  expect(statusesOf(jobConditions(undefined, standing(phase)))).toEqual({
    Progressing: progressing,
    Succeeded: succeeded,
  });
});

test('pods that were never ready are coming up, those that were are missed', () => {
  const later = '2026-11-21T12:00:10.000Z';
  const coming = jobConditions([], standing('Progressing', 'short'));
  expect(statusesOf(coming)['PodsReady']).toBe('Unknown');
  const ready = jobConditions(coming, standing('Progressing', 'ready'));
  const missed = jobConditions(ready, standing('Progressing', 'short', later));
  expect(statusesOf(missed)['PodsReady']).toBe('False');
  const nowMs = Date.parse(later) + 5000;
  expect(missedForMs({ phase: 'Progressing', conditions: missed }, nowMs)).toBe(5000);
  expect(missedForMs({ phase: 'Progressing', conditions: coming }, nowMs)).toBe(0);
  expect(unreadyForMs({ phase: 'Progressing', conditions: coming }, nowMs)).toBe(15_000);
  expect(statusesOf(jobConditions(ready, standing('Progressing', 'growing')))['PodsReady']).toBe('Unknown');
});

test('a stage is blocked from when that was first seen, until all is where it wants it, or it waits for something else', () => {
  const first = jobConditions([], { ...standing('Paused'), isBlocked: true });
  const later = jobConditions(first, {
    ...standing('Verifying', 'ready', '2026-11-21T12:00:10.000Z'),
    isBlocked: true,
  });
  expect(statusesOf(later)).toMatchObject({ InPlace: 'False' });
  expect(blockedForMs({ phase: 'Verifying', conditions: later }, Date.parse(at) + 15_000)).toBe(15_000);
  const again = jobConditions(later, standing('Verifying'));
  expect(statusesOf(again)).not.toHaveProperty('InPlace');
  expect(blockedForMs({ phase: 'Verifying', conditions: again }, Date.parse(at) + 15_000)).toBe(0);
});

test('a claim is missed from when it was first not there, until it is there again', () => {
  const missed = jobConditions([], { ...standing('Progressing'), isUnclaimed: true });
  const later = jobConditions(missed, {
    ...standing('Paused', undefined, '2026-11-21T12:00:10.000Z'),
    isUnclaimed: true,
  });
  expect(statusesOf(later)).toEqual({ Progressing: 'False', Succeeded: 'Unknown', ClaimHeld: 'False' });
  expect(unclaimedForMs({ phase: 'Paused', conditions: later }, Date.parse(at) + 15_000)).toBe(15_000);
  const again = jobConditions(later, standing('Progressing'));
  expect(statusesOf(again)).not.toHaveProperty('ClaimHeld');
  expect(unclaimedForMs({ phase: 'Progressing', conditions: again }, Date.parse(at) + 15_000)).toBe(0);
});
