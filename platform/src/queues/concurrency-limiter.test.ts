import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type ConcurrencyLimiter, createConcurrencyLimiter } from './concurrency-limiter.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});

afterEach(() => {
  vi.useRealTimers();
});

const refused = (message: string) => ({ message });

const refuse = (reason: string) => new Error(reason);

/** One of a service at a time. */
function createServiceLimiter(most: number): ConcurrencyLimiter {
  return createConcurrencyLimiter({ most, mostPerKey: 1, capacity: 100, waitingPerKey: 20, maxWaitMs: 10_000, refuse });
}

/** Work that takes five seconds, and notes when it is begun. */
function slowWork(limiter: ConcurrencyLimiter) {
  const begun: string[] = [];
  const ask = (serviceName: string, name = serviceName) =>
    limiter.run(serviceName, async () => {
      begun.push(name);
      await new Promise((resolve) => setTimeout(resolve, 5000));
      return name;
    });
  return { begun, ask };
}

test('one of a service at a time, and no more services than may be under way', async () => {
  const { begun, ask } = slowWork(createServiceLimiter(2));
  const all = Promise.all([ask('a', 'a1'), ask('a', 'a2'), ask('b'), ask('c')]);
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['a1', 'b']);
  await vi.advanceTimersByTimeAsync(5000);
  // The other service first, though it asked later.
  expect(begun).toEqual(['a1', 'b', 'c', 'a2']);
  await vi.advanceTimersByTimeAsync(5000);
  expect(await all).toEqual(['a1', 'a2', 'b', 'c']);
});

test('what fails frees a slot, too', async () => {
  const limiter = createServiceLimiter(1);
  await expect(limiter.run('a', () => Promise.reject(new Error('store away')))).rejects.toThrow('store away');
  expect(await limiter.run('a', async () => 'done')).toBe('done');
});

test('what has waited for ten seconds is refused and never begun', async () => {
  const { begun, ask } = slowWork(createServiceLimiter(1));
  const answers = Array.from({ length: 4 }, (_, i) => ask('a', `a${i}`).catch((error: unknown) => error));
  await vi.advanceTimersByTimeAsync(60_000);
  const late = refused('late');
  expect(await Promise.all(answers)).toEqual([
    'a0',
    'a1',
    expect.objectContaining(late),
    expect.objectContaining(late),
  ]);
  expect(begun).toEqual(['a0', 'a1']);
  const next = ask('a', 'next');
  await vi.advanceTimersByTimeAsync(5000);
  expect(await next).toBe('next');
});

test('a hundred calls for one service leave places for the others', async () => {
  const { begun, ask } = slowWork(createServiceLimiter(2));
  const answers = Array.from({ length: 100 }, () => ask('crowded').catch((error: unknown) => error));
  const others = [ask('b'), ask('c')];
  await vi.advanceTimersByTimeAsync(0);
  expect(begun).toEqual(['crowded', 'b']);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await Promise.all(others)).toEqual(['b', 'c']);
  // One has its turn and twenty wait.
  const atOnce = (await Promise.all(answers)).filter((each) => each instanceof Error && each.message === 'full');
  expect(atOnce).toHaveLength(79);
});

test('more than a hundred at all are refused at once, and taken when some have ended', async () => {
  const limiter = createServiceLimiter(2);
  const gate = Promise.withResolvers<string>();
  const all = Array.from({ length: 100 }, (_, i) => limiter.run(`service-${i % 10}`, () => gate.promise));
  await expect(limiter.run('another', async () => 'done')).rejects.toMatchObject(refused('full'));
  gate.resolve('done');
  expect(await Promise.all(all)).toEqual(Array.from({ length: 100 }, () => 'done'));
  expect(await limiter.run('another', async () => 'done')).toBe('done');
});

test('without places to wait, what is over the limit is refused at once, and more is taken when some has ended', async () => {
  const limiter = createConcurrencyLimiter({ most: 2, capacity: 2, refuse });
  const gate = Promise.withResolvers<string>();
  const first = [limiter.run('a', () => gate.promise), limiter.run('a', () => gate.promise)];
  await expect(limiter.run('b', async () => 'third')).rejects.toMatchObject(refused('full'));
  gate.reject(new Error('store away'));
  await Promise.allSettled(first);
  expect(await limiter.run('b', async () => 'fourth')).toBe('fourth');
});

test('one of a key at a time, without a bound for all: work is serial, even after a failure', async () => {
  const limiter = createConcurrencyLimiter({ mostPerKey: 1 });
  const order: string[] = [];
  const gate = Promise.withResolvers<void>();
  const first = limiter.run('a', async () => {
    await gate.promise;
    order.push('a1');
    throw new Error('a1 failed');
  });
  const second = limiter.run('a', async () => void order.push('a2'));
  const third = limiter.run('a', async () => void order.push('a3'));
  await limiter.run('b', async () => void order.push('b1'));
  gate.resolve();
  await expect(first).rejects.toThrow('a1 failed');
  await Promise.all([second, third]);
  expect(order).toEqual(['b1', 'a1', 'a2', 'a3']);
});

test('each key has so many at once without waiting, and another one when one is over', () => {
  const limiter = createConcurrencyLimiter({ mostPerKey: 2 });
  const leave = limiter.tryEnter('a');
  expect(limiter.tryEnter('a')).toBeTypeOf('function');
  expect(limiter.tryEnter('a')).toBeUndefined();
  expect(limiter.tryEnter('b')).toBeTypeOf('function');
  leave?.();
  expect(limiter.tryEnter('a')).toBeTypeOf('function');
  expect(limiter.tryEnter('a')).toBeUndefined();
});

test('who leaves before its turn gives its place to another, and is never begun', async () => {
  const limiter = createConcurrencyLimiter({ mostPerKey: 1, waitingPerKey: 1, refuse });
  const gate = Promise.withResolvers<string>();
  const first = limiter.run('a', () => gate.promise);
  const caller = new AbortController();
  const left = new Error('left');
  const begun: string[] = [];
  const abandoned = limiter.run('a', async () => begun.push('abandoned'), caller.signal);
  await expect(limiter.run('a', async () => 'third')).rejects.toMatchObject(refused('full'));
  caller.abort(left);
  await expect(abandoned).rejects.toBe(left);
  await expect(limiter.run('b', async () => begun.push('late'), caller.signal)).rejects.toBe(left);
  const next = limiter.run('a', async () => begun.push('next'));
  gate.resolve('done');
  expect(await first).toBe('done');
  await next;
  expect(begun).toEqual(['next']);
});
