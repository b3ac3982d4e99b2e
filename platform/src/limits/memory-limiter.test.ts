import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { MemoryLimiter } from './memory-limiter.ts';

const WINDOW_MS = 60_000;
const BUCKET_MS = 1000;

/** A clock that a test moves. */
function testClock() {
  const clock = { ms: 0, monotonicMs: () => clock.ms, now: () => new Date(1_700_000_000_000 + clock.ms) };
  return clock;
}

test('Forgetting keys and sharing counts never let a caller have more than its limit', () => {
  const step = fc.record({
    afterMs: fc.oneof(
      { weight: 4, arbitrary: fc.nat(2000) },
      { weight: 4, arbitrary: fc.nat(30_000) },
      fc.nat(2 * WINDOW_MS),
    ),
    key: fc.nat(5),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 300 }), fc.integer({ min: 1, max: 4 }), (steps, requests) => {
      const clock = testClock();
      const limiter = new MemoryLimiter({ clock, maxKeys: 2 });
      const allowedAt = new Map<number, number[]>();
      for (const { afterMs, key } of steps) {
        clock.ms += afterMs;
        const earlier = (allowedAt.get(key) ?? []).filter((at) => at > clock.ms - WINDOW_MS);
        const { allowed } = limiter.take(`key ${key}`, { requests, windowMs: WINDOW_MS });
        if (!allowed) continue;
        expect(earlier.length).toBeLessThan(requests);
        allowedAt.set(key, [...earlier, clock.ms]);
      }
    }),
    { numRuns: 500 },
  );
});

test('A key that has room of its own is not refused early, however many others come', () => {
  const clock = testClock();
  const limiter = new MemoryLimiter({ clock, maxKeys: 2 });
  const limit = { requests: 2, windowMs: WINDOW_MS };
  expect(limiter.take('first', limit).allowed).toBe(true);
  for (let index = 0; index < 5000; index += 1) limiter.take(`other ${index}`, limit);
  expect(limiter.take('first', limit).allowed).toBe(true);
  expect(limiter.take('first', limit).allowed).toBe(false);
});

test('What is beyond the bound shares counts, until the others have fallen silent', () => {
  const clock = testClock();
  const limiter = new MemoryLimiter({ clock, maxKeys: 1 });
  const limit = { requests: 1, windowMs: WINDOW_MS };
  const allowed = (prefix: string) =>
    Array.from({ length: 3000 }, (_, index) => limiter.take(`${prefix} ${index}`, limit)).filter((d) => d.allowed)
      .length;
  expect(allowed('one')).toBeLessThanOrEqual(1025);
  clock.ms += WINDOW_MS + BUCKET_MS;
  expect(limiter.take('late', limit).allowed).toBe(true);
});

test('Thousands of keys come and go without any being refused', () => {
  const clock = testClock();
  const limiter = new MemoryLimiter({ clock, maxKeys: 1000 });
  const limit = { requests: 1, windowMs: WINDOW_MS };
  for (let round = 0; round < 10; round += 1) {
    for (let index = 0; index < 1000; index += 1) expect(limiter.take(`${round} ${index}`, limit).allowed).toBe(true);
    clock.ms += WINDOW_MS + BUCKET_MS;
  }
});
