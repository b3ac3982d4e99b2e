import { randomUUID } from 'node:crypto';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseTrustedProxies } from '@rollcall/gateway/admission/client-address.ts';
import { DEFAULT_LIMITS } from '@rollcall/gateway/admission/limit-for.ts';
import { createLimits, type Verdict } from '@rollcall/gateway/admission/limits.ts';
import { type Redis as RedisServer, startRedis } from '@rollcall/local/redis.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { FailoverLimiter } from '@rollcall/platform/limits/failover-limiter.ts';
import { MemoryLimiter } from '@rollcall/platform/limits/memory-limiter.ts';
import type { RateLimiter } from '@rollcall/platform/limits/rate-limiter.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';

/** Long enough for a Redis on a busy machine. */
const TIMEOUT_MS = 500;
/** What a request may take while Redis fails; the machine of a test may be busy. */
const LONGEST_MS = 15_000;
const WAIT = { timeoutMs: 30_000 };

async function startServer(): Promise<RedisServer> {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'limits-'));
  const server = await startRedis({ directory, binary: inject('redisBinary') });
  onTestFinished(() => server.stop());
  return server;
}

/** A gateway's limits. With `start`, as it begins with a Redis that works. */
async function startLimits(url: string, limits = DEFAULT_LIMITS) {
  const lines: { msg: string; reason?: string }[] = [];
  const log = createLogger('test', 'info', { write: (line) => void lines.push(JSON.parse(line)) });
  const redis = createRedis({ url, name: 'gateway', log });
  const metrics = createMetrics('gateway');
  const trustedProxies = parseTrustedProxies([]);
  const made = createLimits({
    limits,
    trustedProxies,
    redis,
    redisPrefix: 'rollcall',
    redisTimeoutMs: TIMEOUT_MS,
    metrics,
    log,
  });
  onTestFinished(async () => {
    await made.stop();
    redis.disconnect();
  });
  await made.start();

  const metric = async (name: string, labels: Record<string, string> = {}): Promise<number | undefined> => {
    const found = await metrics.getSingleMetric(name)?.get();
    return found?.values.find(({ labels: own }) => Object.entries(labels).every(([key, value]) => own[key] === value))
      ?.value;
  };
  return {
    limits: made,
    redis,
    lines,
    store: async () =>
      (await metric('rollcall_gateway_limiter_store', { store: 'redis' })) === 1 ? 'redis' : 'memory',
    fallbacks: () => metric('rollcall_gateway_limiter_fallbacks_total'),
    changes: () => lines.map(({ msg }) => msg).filter((msg) => msg.startsWith('rate limits')),
    check: async (subject: string): Promise<Verdict> => {
      const caller = { subject, tier: 'standard', scopes: new Set<string>(), expiresAtMs: 0 } as const;
      return made.check({ caller, remoteAddress: '127.0.0.1', forwardedFor: undefined, route: undefined });
    },
  };
}

type Gateway = Awaited<ReturnType<typeof startLimits>>;

/**
 * Calls without pause until it is stopped; reports the longest call and how many were allowed.
 */
function callOn(gateway: Gateway, subject: string) {
  const report = { calls: 0, allowed: 0, longestMs: 0 };
  const stopping = new AbortController();
  const lane = async (): Promise<void> => {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now();
      const { refusal } = await gateway.check(subject);
      report.longestMs = Math.max(report.longestMs, performance.now() - startedAt);
      report.calls += 1;
      if (refusal === undefined) report.allowed += 1;
      // Decisions in memory take no turn of the event loop: others must have theirs.
      await new Promise(setImmediate);
    }
  };
  const lanes = Array.from({ length: 20 }, lane);
  return {
    report,
    async stop() {
      stopping.abort();
      await Promise.all(lanes);
      return report;
    },
  };
}

const usesMemory = (gateway: Gateway) => async () => (await gateway.store()) === 'memory';
const usesRedis = (gateway: Gateway) => async () => (await gateway.store()) === 'redis';

const UNAVAILABLE = 'rate limits are counted by this replica alone for now';
const BACK = 'rate limits are counted for all replicas together';

describe('Limits with Redis', () => {
  test('use it from the first request on', async () => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    expect(await gateway.store()).toBe('redis');
    const { headers, refusal } = await gateway.check('shop');
    expect(refusal).toBeUndefined();
    expect(headers).toMatchObject({ 'x-ratelimit-limit': '100', 'x-ratelimit-remaining': '99' });
    expect(await gateway.redis.exists('rollcall:limit:60000:subject::shop')).toBe(1);
    expect(await gateway.fallbacks()).toBe(0);
    expect(gateway.changes()).toEqual([BACK]);
  });

  test('go on at once in memory when it is killed under load, and return to it when it is back, each reported once', async () => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    for (let round = 1; round <= 3; round += 1) {
      const calls = callOn(gateway, randomUUID());
      await waitUntil('calls are answered', async () => calls.report.calls > 200, WAIT);
      await server.kill();
      await waitUntil('memory is used', usesMemory(gateway), WAIT);
      const then = calls.report.calls;
      await waitUntil('calls go on', async () => calls.report.calls > then + 1000, WAIT);
      await server.start();
      await waitUntil('Redis is used', usesRedis(gateway), WAIT);
      const { allowed, longestMs } = await calls.stop();
      expect(longestMs).toBeLessThan(LONGEST_MS);
      // From the killed server, from this replica, and from the server that came back empty.
      expect(allowed).toBeGreaterThanOrEqual(200);
      expect(allowed).toBeLessThanOrEqual(300);
      expect(gateway.changes()).toEqual([BACK, ...Array.from({ length: round }, () => [UNAVAILABLE, BACK]).flat()]);
    }
    expect(await gateway.fallbacks()).toBeGreaterThan(3000);
  });

  test('go on in memory while it hangs, without piling up requests, and return to it with its counts', async () => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    const subject = randomUUID();
    for (let index = 0; index < 100; index += 1) expect((await gateway.check(subject)).refusal).toBeUndefined();
    expect((await gateway.check(subject)).refusal?.code).toBe('RATE_LIMITED');
    const pid = server.pid ?? 0;
    await freeze(pid);
    onTestFinished(() => thaw(pid));
    const calls = callOn(gateway, subject);
    await waitUntil('memory is used', usesMemory(gateway), WAIT);
    // Longer than the connection has for an answer: it is made anew, and hangs again.
    const startedAt = performance.now();
    await waitUntil('it has hung for long', async () => performance.now() - startedAt > 5000, WAIT);
    expect(gateway.redis.commandQueue.length).toBeLessThan(20);
    expect(calls.report.calls).toBeGreaterThan(500);
    thaw(pid);
    await waitUntil('Redis is used', usesRedis(gateway), WAIT);
    const { allowed, longestMs } = await calls.stop();
    expect(longestMs).toBeLessThan(LONGEST_MS);
    // It knows what it had counted: only this replica gave the limit a second time.
    expect(allowed).toBe(100);
    expect(gateway.changes()).toEqual([BACK, UNAVAILABLE, BACK]);
    expect(gateway.lines.find(({ msg }) => msg === UNAVAILABLE)?.reason).toBe(`no answer within ${TIMEOUT_MS} ms`);
    const given = gateway.lines.filter(({ msg }) => msg === 'Redis cannot be reached');
    expect(given).toMatchObject([{ reason: 'no answer within 2000 ms' }]);
  });

  test('wait for the timeout only once, however many requests there are', async () => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    const pid = server.pid ?? 0;
    await freeze(pid);
    onTestFinished(() => thaw(pid));
    const startedAt = performance.now();
    await Promise.all(Array.from({ length: 500 }, (_, index) => gateway.check(`client ${index}`)));
    const firstMs = performance.now() - startedAt;
    expect(firstMs).toBeGreaterThanOrEqual(TIMEOUT_MS - 1);
    expect(firstMs).toBeLessThan(LONGEST_MS);
    const then = performance.now();
    for (let index = 0; index < 500; index += 1) await gateway.check(`client ${index}`);
    // Each by itself would wait for it.
    expect(performance.now() - then).toBeLessThan(50 * TIMEOUT_MS);
    expect(await gateway.fallbacks()).toBe(1000);
  });

  test.each([
    { where: 'before it sent its requests', turn: async () => {} },
    { where: 'before it read the answers', turn: () => new Promise(setImmediate) },
  ])('do not mistake a replica that stood still itself, $where, for a Redis that hangs', async ({ turn }) => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    const subject = randomUUID();
    const asked = Array.from({ length: 20 }, () => gateway.check(subject));
    await turn();
    // Longer, too, than the connection has for an answer.
    const untilMs = performance.now() + 6 * TIMEOUT_MS;
    while (performance.now() < untilMs);
    await Promise.all(asked);
    const calls = callOn(gateway, subject);
    await waitUntil('calls go on', async () => calls.report.calls > 200, WAIT);
    await calls.stop();
    expect(gateway.changes()).toEqual([BACK]);
    expect(await gateway.fallbacks()).toBe(0);
  });

  test('begin in memory where it is unavailable at the start, and use it once it is there', async () => {
    const server = await startServer();
    await server.kill();
    const gateway = await startLimits(server.url);
    expect(await gateway.store()).toBe('memory');
    expect((await gateway.check('shop')).refusal).toBeUndefined();
    await server.start();
    await waitUntil('Redis is used', usesRedis(gateway), WAIT);
    expect(gateway.changes()).toEqual([UNAVAILABLE, BACK]);
  });

  test('go on in memory where it refuses, and keep the password out of the log', async () => {
    const server = await startServer();
    const url = new URL(server.url);
    url.password = 'not-the-password';
    const gateway = await startLimits(url.href);
    expect((await gateway.check('shop')).refusal).toBeUndefined();
    expect(gateway.lines.map(({ reason }) => reason).join(' ')).toContain('WRONGPASS');
    expect(JSON.stringify(gateway.lines)).not.toContain('not-the-password');
  });

  test('go on in memory where it has no more memory', async () => {
    const server = await startServer();
    const gateway = await startLimits(server.url);
    await gateway.redis.config('SET', 'maxmemory-policy', 'noeviction');
    await gateway.redis.config('SET', 'maxmemory', '1');
    expect((await gateway.check('shop')).refusal).toBeUndefined();
    expect(await gateway.store()).toBe('memory');
    await gateway.redis.config('SET', 'maxmemory', '0');
    await waitUntil('Redis is used', usesRedis(gateway), WAIT);
  });
});

describe('A shared limiter that is slow', () => {
  const timeoutMs = 5000;

  /** @param shared what is asked. @returns whether it decides after so long. */
  async function isUsedAfter(ms: number, shared: RateLimiter): Promise<boolean> {
    const own = new MemoryLimiter();
    const log = createLogger('test', 'silent');
    const limiter = new FailoverLimiter({
      shared,
      own,
      timeoutMs,
      clock: systemClock,
      log,
      onFallback: () => undefined,
    });
    onTestFinished(() => limiter.stop());
    await limiter.start();
    await sleep(ms);
    return limiter.usesShared;
  }

  test('is not seen as one that works because a probe of it was given up before the time of an answer', async () => {
    expect(await isUsedAfter(6000, { take: () => new Promise(() => undefined) })).toBe(false);
  });

  test('decides where the time for an answer is long enough', async () => {
    const own = new MemoryLimiter();
    const take: RateLimiter['take'] = (key, limit) => sleep(3500).then(() => own.take(key, limit));
    expect(await isUsedAfter(3000, { take })).toBe(true);
  });
});
