import fc from 'fast-check';
import { expect, test } from 'vitest';
import { planRotation, type RotationPolicy, type SigningKey } from './signing-keys.ts';

const policy: RotationPolicy = { rotateAfterMs: 1000, publishAheadMs: 100, verifyAfterMs: 300 };
const key = (createdAtMs: number): SigningKey => ({ kid: `k${createdAtMs}`, createdAtMs, privateJwk: { kty: 'EC' } });

test.each([
  ['no keys: one is made', [], 0, { signing: undefined, kept: [], needsNew: true }],
  ['the first key signs at once', [0], 0, { signing: 'k0', kept: ['k0'], needsNew: false }],
  ['shortly before its time is up a successor is made', [0], 900, { signing: 'k0', kept: ['k0'], needsNew: true }],
  ['the successor is published first', [0, 900], 999, { signing: 'k0', kept: ['k0', 'k900'], needsNew: false }],
  ['then it signs', [0, 900], 1000, { signing: 'k900', kept: ['k0', 'k900'], needsNew: false }],
  [
    'what the old one signed last still holds',
    [0, 900],
    1299,
    { signing: 'k900', kept: ['k0', 'k900'], needsNew: false },
  ],
  ['then the old one goes', [0, 900], 1300, { signing: 'k900', kept: ['k900'], needsNew: false }],
  ['after a long sleep the last key signs on', [0], 90_000, { signing: 'k0', kept: ['k0'], needsNew: true }],
  ['a clock set back does not leave it without a key', [500], 0, { signing: 'k500', kept: ['k500'], needsNew: false }],
  [
    'two replicas made one each: the newer follows the older',
    [0, 900, 901],
    1001,
    { signing: 'k901', kept: ['k0', 'k900', 'k901'], needsNew: false },
  ],
])('%s', (_, ages, nowMs, expected) => {
  const { signing, kept, needsNew } = planRotation(ages.map(key), nowMs, policy);
  expect({ signing: signing?.kid, kept: kept.map(({ kid }) => kid), needsNew }).toEqual(expected);
});

test('whatever was signed can be verified for as long as it holds, whenever somebody looked', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 60 }), (steps) => {
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
        for (const { kid, untilMs } of signed) if (nowMs < untilMs) expect(known).toContain(kid);
        signed.push({ kid: signing?.kid ?? '', untilMs: nowMs + policy.verifyAfterMs });
      }
    }),
  );
});
