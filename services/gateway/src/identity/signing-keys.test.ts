import { array, assert, integer, property } from 'fast-check';
import { expect, test } from 'vitest';
import { planRotation, type RotationPolicy, type SigningKey } from './signing-keys.ts';

const policy: RotationPolicy = { rotateAfterMs: 1000, publishAheadMs: 100, verifyAfterMs: 300 };
const key = (createdAtMs: number): SigningKey => ({ kid: `k${createdAtMs}`, createdAtMs, privateJwk: { kty: 'EC' } });

test.each([
  { name: 'no keys: one is made', ages: [], nowMs: 0, signing: undefined, kept: [], needsNew: true },
  { name: 'the first key signs at once', ages: [0], nowMs: 0, signing: 'k0', kept: ['k0'], needsNew: false },
  {
    name: 'shortly before its time is up a successor is made',
    ages: [0],
    nowMs: 900,
    signing: 'k0',
    kept: ['k0'],
    needsNew: true,
  },
  {
    name: 'the successor is published first',
    ages: [0, 900],
    nowMs: 999,
    signing: 'k0',
    kept: ['k0', 'k900'],
    needsNew: false,
  },
  { name: 'then it signs', ages: [0, 900], nowMs: 1000, signing: 'k900', kept: ['k0', 'k900'], needsNew: false },
  {
    name: 'what the old one signed last still holds',
    ages: [0, 900],
    nowMs: 1299,
    signing: 'k900',
    kept: ['k0', 'k900'],
    needsNew: false,
  },
  { name: 'then the old one goes', ages: [0, 900], nowMs: 1300, signing: 'k900', kept: ['k900'], needsNew: false },
  {
    name: 'after a long sleep the last key signs on',
    ages: [0],
    nowMs: 90_000,
    signing: 'k0',
    kept: ['k0'],
    needsNew: true,
  },
  {
    name: 'a clock set back does not leave it without a key',
    ages: [500],
    nowMs: 0,
    signing: 'k500',
    kept: ['k500'],
    needsNew: false,
  },
  {
    name: 'two replicas made one each: the newer follows the older',
    ages: [0, 900, 901],
    nowMs: 1001,
    signing: 'k901',
    kept: ['k0', 'k900', 'k901'],
    needsNew: false,
  },
])('$name', ({ ages, nowMs, signing: expectedKid, kept: expectedKids, needsNew: isNewNeeded }) => {
  const { signing, kept, needsNew } = planRotation(ages.map(key), nowMs, policy);
  expect(signing?.kid).toBe(expectedKid);
  expect(kept.map(({ kid }) => kid)).toEqual(expectedKids);
  expect(needsNew).toBe(isNewNeeded);
});

test('whatever was signed can be verified for as long as it holds, whenever somebody looked', () => {
  assert(
    property(array(integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 60 }), (steps) => {
      let keys: readonly SigningKey[] = [];
      let nowMs = 0;
      const signed: { kid: string; untilMs: number }[] = [];
      for (const step of steps) {
        nowMs += step;
        const before = planRotation(keys, nowMs, policy);
        keys = before.needsNew ? [...before.kept, key(nowMs)] : before.kept;
        const { signing, kept } = planRotation(keys, nowMs, policy);
        expect(signing).toBeDefined();
        const known = new Set(kept.map(({ kid }) => kid));
        const stillValid = signed.filter(({ untilMs }) => nowMs < untilMs).map(({ kid }) => kid);
        expect([...known]).toEqual(expect.arrayContaining(stillValid));
        signed.push({ kid: signing?.kid ?? '', untilMs: nowMs + policy.verifyAfterMs });
      }
    }),
  );
});
