import { fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { waitUntil } from '@rollcall/local/wait.ts';
import { RedisLimiter } from '@rollcall/platform/limits/redis-limiter.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import { createRedis as createDatabase } from '../support/redis.ts';
import type { CallerOrder, CallerReport } from './limits-caller.ts';

const database = await createDatabase();
afterAll(() => database[Symbol.asyncDispose]());

async function connect() {
  const redis = createRedis({ url: database.url, name: 'test', log: createLogger('test', 'silent') });
  onTestFinished(() => redis.disconnect());
  await waitUntil('Redis is connected', async () => redis.status === 'ready', { timeoutMs: 10_000 });
  return redis;
}

/** Processes that begin together, once all have come up. */
async function callFrom(processes: number, order: CallerOrder): Promise<CallerReport[]> {
  const callers = Array.from({ length: processes }, () => fork(join(import.meta.dirname, 'limits-caller.ts')));
  onTestFinished(() => {
    for (const caller of callers) caller.kill('SIGKILL');
  });
  await Promise.all(callers.map((caller) => once(caller, 'message')));
  return Promise.all(
    callers.map(async (caller): Promise<CallerReport> => {
      const reported = once(caller, 'message');
      caller.send(order);
      const [report] = await reported;
      return report;
    }),
  );
}

describe('Two processes that use one limit as fast as they can', () => {
  test('get exactly the limit together', async () => {
    const order = { url: database.url, key: randomUUID(), requests: 10_000, windowMs: 60_000 };
    const reports = await callFrom(2, { ...order, concurrency: 50, durationMs: 4000 });
    expect(reports.flat()).toHaveLength(10_000);
    // Both took part, so that there was something to keep apart.
    for (const report of reports) expect(report.length).toBeGreaterThan(0);
  });

  test('get no more than the limit in any window, and little less', async () => {
    const [requests, windowMs, durationMs] = [40, 600, 4000];
    const order = { url: database.url, key: randomUUID(), requests, windowMs, concurrency: 10, durationMs };
    const allowed = (await callFrom(2, order)).flat();
    // Whatever was asked for and answered within a window was counted within it.
    for (const [startMs] of allowed) {
      const within = allowed.filter(([sentMs, answeredMs]) => sentMs >= startMs && answeredMs <= startMs + windowMs);
      expect(within.length).toBeLessThanOrEqual(requests);
    }
    const windows = Math.floor(durationMs / (windowMs + windowMs / 60));
    expect(allowed.length).toBeGreaterThanOrEqual((windows - 1) * requests);
  });
});

describe('The counts in Redis', () => {
  const limit = { requests: 2, windowMs: 60_000 };

  test('are one small hash for each key, which ends with the window', async () => {
    const redis = await connect();
    const limiter = new RedisLimiter({ redis, prefix: 'rollcall' });
    const key = randomUUID();
    for (let index = 0; index < 5; index += 1) await limiter.take(key, limit);
    const [name = '', ...more] = await redis.keys(`*${key}*`);
    expect(more).toEqual([]);
    expect(name).toBe(`rollcall:limit:60000:${key}`);
    const endsInMs = await redis.pttl(name);
    expect(endsInMs).toBeGreaterThan(50_000);
    expect(endsInMs).toBeLessThanOrEqual(61_000);
    expect(await redis.object('ENCODING', name)).toBe('listpack');
  });

  test('are apart from those of another installation', async () => {
    const redis = await connect();
    const key = randomUUID();
    const [one, other] = ['rollcall/a/b', 'rollcall/a/c'].map((prefix) => new RedisLimiter({ redis, prefix }));
    for (const remaining of [1, 0]) {
      expect(await one?.take(key, limit)).toMatchObject({ allowed: true, remaining });
      expect(await other?.take(key, limit)).toMatchObject({ allowed: true, remaining });
    }
  });

  test('end by themselves when nobody calls any more, and are then begun anew', async () => {
    const redis = await connect();
    const limiter = new RedisLimiter({ redis, prefix: 'rollcall' });
    const key = randomUUID();
    await limiter.take(key, { requests: 1, windowMs: 120 });
    const gone = async () => (await redis.exists(`rollcall:limit:120:${key}`)) === 0;
    await waitUntil('the count has ended', gone, { timeoutMs: 10_000 });
    expect((await limiter.take(key, { requests: 1, windowMs: 120 })).allowed).toBe(true);
  });

  test('are kept when the server forgets its scripts', async () => {
    const redis = await connect();
    const limiter = new RedisLimiter({ redis, prefix: 'rollcall' });
    const key = randomUUID();
    await limiter.take(key, limit);
    await redis.script('FLUSH');
    const answers = await Promise.all([1, 2, 3].map(() => limiter.take(key, limit)));
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(1);
  });

  test('outlive a clock that is set back within the window, and begin anew when it is set back further', async () => {
    const redis = await connect();
    let serverTimeMs = 1_700_000_000_000;
    const limiter = new RedisLimiter({ redis, prefix: 'rollcall', serverTimeMs: () => serverTimeMs });
    const key = randomUUID();
    for (let index = 0; index < 2; index += 1) expect((await limiter.take(key, limit)).allowed).toBe(true);
    serverTimeMs -= 30_000;
    expect((await limiter.take(key, limit)).allowed).toBe(false);
    serverTimeMs -= 3_600_000;
    expect(await limiter.take(key, limit)).toMatchObject({ allowed: true, remaining: 1 });
    expect((await limiter.take(key, limit)).retryAfterSeconds).toBeLessThanOrEqual(61);
  });

  test('are asked for in few packets, however many requests come at once', async () => {
    const redis = await connect();
    const limiter = new RedisLimiter({ redis, prefix: 'rollcall' });
    let writes = 0;
    const { stream } = redis;
    const write = stream.write.bind(stream);
    stream.write = ((...args: Parameters<typeof write>) => {
      writes += 1;
      return write(...args);
    }) as typeof write;
    const keys = Array.from({ length: 200 }, () => randomUUID());
    await Promise.all(keys.map((key) => limiter.take(key, limit)));
    expect(writes).toBeLessThanOrEqual(3);
  });
});
