import { array, assert, asyncProperty, integer } from 'fast-check';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { absorbWindowMs, createHeartbeats } from './heartbeats.ts';
import type { HeartbeatWrite } from './registration.ts';

const key = { serviceName: 'shop', id: 'uid-1', ttlSeconds: 60 };

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'Date', 'performance'] });
});

afterEach(() => {
  vi.useRealTimers();
});

/** A store that keeps what was written, as the operator would see it. */
function setUp() {
  const writes: (HeartbeatWrite & { readonly writtenAtMs: number })[] = [];
  const failures: string[] = [];
  const beaten: string[] = [];
  const store = { outcome: async (): Promise<boolean> => true };
  const clock = { now: () => new Date(), monotonicMs: () => performance.now() };
  const heartbeats = createHeartbeats({
    clock,
    renew: async (_life, heartbeat) => {
      const renewed = await store.outcome();
      if (renewed) writes.push({ ...heartbeat, writtenAtMs: clock.monotonicMs() });
      return renewed;
    },
    onBeat: ({ serviceName }) => beaten.push(serviceName),
    onFlushFailure: (_name, message) => failures.push(message),
  });
  return { heartbeats, writes, failures, beaten, store };
}

test('the absorb window of the documented TTL is 15 s', () => {
  expect(absorbWindowMs(60)).toBe(15_000);
});

test('a heartbeat after the window is written before it is acknowledged', async () => {
  const { heartbeats, writes } = setUp();
  expect(await heartbeats.beat(key)).toBe(true);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(await heartbeats.beat(key)).toBe(true);
  expect(writes.map(({ ageMs }) => ageMs)).toEqual([0, 0]);
});

test('one heartbeat a second costs one write per window, each saying how old its heartbeat is', async () => {
  const { heartbeats, writes } = setUp();
  for (let second = 0; second < 60; second += 1) {
    await heartbeats.beat(key);
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(writes.length).toBeLessThanOrEqual(5);
  expect(writes.length).toBeGreaterThanOrEqual(4);
  for (const { ageMs } of writes) expect(ageMs).toBeLessThanOrEqual(1000);
});

test('an absorbed heartbeat is known at once and written when the window ends', async () => {
  const { heartbeats, writes, beaten } = setUp();
  await heartbeats.beat(key);
  await vi.advanceTimersByTimeAsync(5000);
  const at = new Date();
  expect(heartbeats.beat(key)).toBe(true);
  expect(heartbeats.lastBeatAt(key.id)).toEqual(at);
  expect(beaten).toEqual(['shop', 'shop']);
  expect(heartbeats.pending()).toBe(1);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(writes.at(-1)).toMatchObject({ at, ageMs: 10_000 });
  expect(heartbeats.pending()).toBe(0);
});

test('a registration that is gone answers false and is forgotten', async () => {
  const { heartbeats, store } = setUp();
  store.outcome = async () => false;
  expect(await heartbeats.beat(key)).toBe(false);
  expect(heartbeats.lastBeatAt(key.id)).toBeUndefined();
});

test('of those that ended it is known when they were heard, until ten thousand others have', async () => {
  const { heartbeats } = setUp();
  const at = new Date();
  await heartbeats.beat(key);
  heartbeats.forget(key.id);
  heartbeats.forget(key.id);
  expect(heartbeats.lastHeardAt(key.id)).toEqual(at);
  for (let other = 0; other < 10_000; other += 1) {
    heartbeats.sawDurable({ ...key, id: `other-${other}` }, { at, ageMs: 0 });
    heartbeats.forget(`other-${other}`);
  }
  expect(heartbeats.lastHeardAt(key.id)).toBeUndefined();
  expect(heartbeats.lastHeardAt('other-0')).toEqual(at);
});

test('heartbeats that come while one is being written share the write', async () => {
  const { heartbeats, writes, store } = setUp();
  const gate = Promise.withResolvers<boolean>();
  store.outcome = () => gate.promise;
  const beats = Array.from({ length: 3 }, async () => heartbeats.beat(key));
  gate.resolve(true);
  expect(await Promise.all(beats)).toEqual([true, true, true]);
  expect(writes).toHaveLength(1);
});

test('a flush that fails is tried again; an acknowledged heartbeat is not lost', async () => {
  const { heartbeats, writes, failures, store } = setUp();
  await heartbeats.beat(key);
  await vi.advanceTimersByTimeAsync(1000);
  const at = new Date();
  await heartbeats.beat(key);
  store.outcome = () => Promise.reject(new Error('API server away'));
  await vi.advanceTimersByTimeAsync(16_500);
  expect(failures.length).toBeGreaterThanOrEqual(2);
  store.outcome = async () => true;
  await vi.advanceTimersByTimeAsync(1500);
  expect(writes.at(-1)?.at).toEqual(at);
});

test('a heartbeat that fails does not take the acknowledged one before it with it', async () => {
  const { heartbeats, writes, store } = setUp();
  await heartbeats.beat(key);
  await vi.advanceTimersByTimeAsync(1000);
  const at = new Date();
  await heartbeats.beat(key);
  store.outcome = () => Promise.reject(new Error('API server away'));
  await vi.advanceTimersByTimeAsync(14_500);
  await expect(heartbeats.beat(key)).rejects.toThrow('API server away');
  store.outcome = async () => true;
  await vi.advanceTimersByTimeAsync(2000);
  expect(writes.at(-1)?.at.getTime()).toBeGreaterThanOrEqual(at.getTime());
  expect(writes).toHaveLength(2);
  expect(heartbeats.pending()).toBe(0);
});

test('a write that fails is the caller’s failure, and shutdown writes what is pending', async () => {
  const { heartbeats, writes, store } = setUp();
  store.outcome = () => Promise.reject(new Error('API server away'));
  await expect(heartbeats.beat(key)).rejects.toThrow('API server away');
  store.outcome = async () => true;
  await heartbeats.beat(key);
  await vi.advanceTimersByTimeAsync(100);
  await heartbeats.beat(key);
  await heartbeats.flushAll();
  expect(writes).toHaveLength(2);
  expect(heartbeats.pending()).toBe(0);
});

test('heartbeats that another replica wrote count, and our own do not come back as news', async () => {
  const { heartbeats, writes } = setUp();
  const elsewhere = new Date(Date.now() - 2000);
  heartbeats.sawDurable(key, { at: elsewhere, ageMs: 2000 });
  expect(heartbeats.lastBeatAt(key.id)).toEqual(elsewhere);
  expect(heartbeats.beat(key)).toBe(true);
  await vi.advanceTimersByTimeAsync(13_000);
  const [written] = writes;
  if (written === undefined) throw new Error('nothing was written');
  await vi.advanceTimersByTimeAsync(500);
  heartbeats.sawDurable(key, { at: written.at, ageMs: written.ageMs });
  expect(heartbeats.lastBeatAt(key.id)).toEqual(written.at);
});

test('a heartbeat found in the store is served, and the next one is written whatever the store said', async () => {
  const { heartbeats, writes } = setUp();
  const at = new Date(Date.now() - 1000);
  heartbeats.learned(key, at);
  expect(heartbeats.lastBeatAt(key.id)).toEqual(at);
  expect(await heartbeats.beat(key)).toBe(true);
  expect(writes).toHaveLength(1);
  heartbeats.learned(key, at);
  expect(heartbeats.lastBeatAt(key.id)).not.toEqual(at);
});

test('news of a heartbeat that come late do not open the window anew', async () => {
  const { heartbeats, writes } = setUp();
  heartbeats.sawDurable(key, { at: new Date(Date.now() - 20_000), ageMs: 0 });
  expect(await heartbeats.beat(key)).toBe(true);
  expect(writes).toHaveLength(1);
});

test.each([-600_000, 600_000])(
  'a wall clock that steps by %d ms changes neither the window nor the age',
  async (stepMs) => {
    const { heartbeats, writes } = setUp();
    await heartbeats.beat(key);
    await vi.advanceTimersByTimeAsync(5000);
    vi.setSystemTime(Date.now() + stepMs);
    const at = new Date();
    expect(heartbeats.beat(key)).toBe(true);
    expect(heartbeats.lastBeatAt(key.id)).toEqual(at);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(writes.at(-1)).toMatchObject({ at, ageMs: 10_000 });
    await vi.advanceTimersByTimeAsync(4999);
    expect(heartbeats.beat(key)).toBe(true);
  },
);

test('a service that beats at least every TTL - window has a durable heartbeat within its TTL at every moment', async () => {
  const gaps = array(integer({ min: 1, max: 45_000 }), { minLength: 1, maxLength: 40 });
  await assert(
    asyncProperty(gaps, async (gapsMs) => {
      const { heartbeats, writes } = setUp();
      await heartbeats.beat(key);
      for (const gapMs of gapsMs) {
        await vi.advanceTimersByTimeAsync(gapMs);
        await heartbeats.beat(key);
        // Were this process to die now, the next heartbeat would reach another replica within 45 s.
        const last = writes.at(-1);
        const durableBeatMs = (last?.writtenAtMs ?? 0) - (last?.ageMs ?? 0);
        expect(performance.now() - durableBeatMs).toBeLessThanOrEqual(15_001);
      }
      await heartbeats.flushAll();
    }),
    { numRuns: 50 },
  );
});
