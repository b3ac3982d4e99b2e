import { randomUUID } from 'node:crypto';
import { waitUntil } from '@rollcall/local/wait.ts';
import { MemoryLimiter } from '@rollcall/platform/limits/memory-limiter.ts';
import type { Limit, RateLimiter } from '@rollcall/platform/limits/rate-limiter.ts';
import { RedisLimiter } from '@rollcall/platform/limits/redis-limiter.ts';
import { bucketMsOf } from '@rollcall/platform/limits/sliding-window.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import * as fc from 'fast-check';
import { afterAll, beforeEach, describe, expect, test } from 'vitest';
import { createRedis as createDatabase } from '../support/redis.ts';

/**
 * What every limiter must do, whatever keeps its counts. Time is the test's; it does not begin on
 * the edge of a bucket.
 */
const START_MS = 1_700_000_000_123;
const clock = {
  ms: START_MS,
  monotonicMs: () => clock.ms,
  now: () => new Date(clock.ms),
};

const database = await createDatabase();
const redis = createRedis({ url: database.url, name: 'test', log: createLogger('test', 'silent') });
await waitUntil('Redis is connected', async () => redis.status === 'ready', { timeoutMs: 10_000 });
afterAll(async () => {
  redis.disconnect();
  await database[Symbol.asyncDispose]();
});

const LIMITERS: readonly [name: string, limiter: RateLimiter][] = [
  ['in memory', new MemoryLimiter({ clock })],
  ['in Redis', new RedisLimiter({ redis, prefix: 'rollcall', clock, serverTimeMs: () => clock.ms })],
];

beforeEach(() => {
  clock.ms += 1_000_000;
});

describe.each(LIMITERS)('A limiter %s', (_name, limiter) => {
  const minutely: Limit = { requests: 3, windowMs: 60_000 };

  test('allows as many requests as the limit says, and reports what remains', async () => {
    const key = randomUUID();
    for (const remaining of [2, 1, 0]) {
      expect(await limiter.take(key, minutely)).toMatchObject({ allowed: true, remaining, limit: minutely });
    }
    expect(await limiter.take(key, minutely)).toMatchObject({ allowed: false, remaining: 0, limit: minutely });
  });

  test('counts keys apart, and windows of different lengths', async () => {
    const key = randomUUID();
    const limit = { requests: 1, windowMs: 60_000 };
    expect((await limiter.take(key, limit)).allowed).toBe(true);
    expect((await limiter.take(`${key}0`, limit)).allowed).toBe(true);
    expect((await limiter.take(key, { ...limit, windowMs: 60_060 })).allowed).toBe(true);
    expect((await limiter.take(key, limit)).allowed).toBe(false);
  });

  test('frees what was counted when it leaves the window, not sooner and at most a bucket later', async () => {
    const key = randomUUID();
    const firstMs = clock.ms;
    for (let index = 0; index < 3; index += 1) await limiter.take(key, minutely);
    clock.ms = firstMs + 60_000;
    expect((await limiter.take(key, minutely)).allowed).toBe(false);
    clock.ms = firstMs + 61_000;
    expect(await limiter.take(key, minutely)).toMatchObject({ allowed: true, remaining: 2 });
  });

  test('does not count what it refuses', async () => {
    const key = randomUUID();
    for (let index = 0; index < 3; index += 1) await limiter.take(key, minutely);
    for (let second = 0; second < 60; second += 1) {
      clock.ms += 1000;
      expect((await limiter.take(key, minutely)).allowed).toBe(false);
    }
    clock.ms += 1000;
    expect((await limiter.take(key, minutely)).allowed).toBe(true);
  });

  test('has no burst at the edge of a minute', async () => {
    const key = randomUUID();
    clock.ms = Math.ceil(clock.ms / 60_000) * 60_000 + 59_900;
    for (let index = 0; index < 3; index += 1) await limiter.take(key, minutely);
    clock.ms += 200;
    expect((await limiter.take(key, minutely)).allowed).toBe(false);
  });

  test('says when more becomes free: then it is, and a second before it was not', async () => {
    const key = randomUUID();
    await limiter.take(key, minutely);
    clock.ms += 20_000;
    await limiter.take(key, minutely);
    await limiter.take(key, minutely);
    const { resetAtSeconds, retryAfterSeconds } = await limiter.take(key, minutely);
    expect(retryAfterSeconds).toBeGreaterThanOrEqual(40);
    expect(retryAfterSeconds).toBeLessThanOrEqual(41);
    const nowMs = clock.ms;
    clock.ms = (resetAtSeconds - 1) * 1000;
    expect(await limiter.take(key, minutely)).toMatchObject({ allowed: false, retryAfterSeconds: 1 });
    clock.ms = resetAtSeconds * 1000;
    const free = await limiter.take(key, minutely);
    expect(free).toMatchObject({ allowed: true, remaining: 0 });
    expect(Math.ceil((resetAtSeconds * 1000 - nowMs) / 1000)).toBe(retryAfterSeconds);
    // The next ones leave 20 s later.
    expect(free.resetAtSeconds - resetAtSeconds).toBeGreaterThanOrEqual(19);
    expect(free.resetAtSeconds - resetAtSeconds).toBeLessThanOrEqual(21);
  });

  test('reports a second as the shortest time to wait', async () => {
    expect((await limiter.take(randomUUID(), { requests: 1, windowMs: 60 })).retryAfterSeconds).toBe(1);
  });

  test('applies another limit to the same count, as when the tier of a caller changes', async () => {
    const key = randomUUID();
    for (let index = 0; index < 3; index += 1) await limiter.take(key, minutely);
    expect(await limiter.take(key, { ...minutely, requests: 2 })).toMatchObject({ allowed: false, remaining: 0 });
    expect(await limiter.take(key, { ...minutely, requests: 10 })).toMatchObject({ allowed: true, remaining: 6 });
  });

  test('never allows more than the limit in any window, and refuses nothing that is a bucket beyond it', async () => {
    // Long ones, as Redis ends a hash by its own clock; two are no multiple of 60.
    const windows = fc.constantFrom(50_000, 60_000, 123_457);
    const step = fc.record({
      // In 60ths of a window: often several in one bucket, often as the window ends, at times so
      // long that all has left.
      after: fc.oneof(
        { weight: 6, arbitrary: fc.double({ min: 0, max: 3, noNaN: true }) },
        { weight: 3, arbitrary: fc.nat(40) },
        { weight: 3, arbitrary: fc.double({ min: 58, max: 62, noNaN: true }) },
        fc.nat(200),
      ),
      key: fc.nat(1),
      requests: fc.integer({ min: 1, max: 5 }),
    });
    await fc.assert(
      fc.asyncProperty(windows, fc.array(step, { maxLength: 80 }), async (windowMs, steps) => {
        const run = randomUUID();
        const allowedAt: number[][] = [[], []];
        const bucketMs = bucketMsOf(windowMs);
        for (const { after, key, requests } of steps) {
          clock.ms += Math.floor((after * windowMs) / 60);
          const { allowed, remaining } = await limiter.take(`${run}:${key}`, { requests, windowMs });
          const log = allowedAt[key] ?? [];
          const counted = log.filter((at) => at > clock.ms - windowMs).length;
          const countedAtMost = log.filter((at) => at > clock.ms - 61 * bucketMs).length;
          expect(allowed ? counted : 0).toBeLessThan(requests);
          expect(allowed ? requests : countedAtMost).toBeGreaterThanOrEqual(requests);
          const own = allowed ? 1 : 0;
          expect(remaining).toBeLessThanOrEqual(Math.max(0, requests - counted - own));
          expect(remaining).toBeGreaterThanOrEqual(Math.max(0, requests - countedAtMost - own));
          if (allowed) log.push(clock.ms);
        }
      }),
      { numRuns: 150 },
    );
  });
});
