import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { systemClock as clock } from '../clock.ts';
import { createRetryQueue } from './retry-queue.ts';

const backoff = { baseMs: 1, maxMs: 4 };

test('a key that is added often while it waits is worked on once, and once more when added meanwhile', async () => {
  const gate = Promise.withResolvers<void>();
  const worked: string[] = [];
  const queue = createRetryQueue({
    work: async (key) => {
      worked.push(key);
      await gate.promise;
    },
    concurrency: 2,
    backoff,
    clock,
    onFailure: () => expect.unreachable(),
  });
  for (const key of ['a', 'b', 'c', 'c', 'a', 'a']) queue.add(key);
  await expect.poll(() => worked).toEqual(['a', 'b']);
  expect(queue.size).toBe(1);
  gate.resolve();
  await expect.poll(() => worked).toEqual(['a', 'b', 'c', 'a']);
  await queue.stop();
});

test('a failing key comes back until it succeeds, and its failures are counted', async () => {
  const failures: number[] = [];
  const done = Promise.withResolvers<void>();
  const queue = createRetryQueue({
    work: async () => {
      if (failures.length < 4) throw new Error('not yet');
      done.resolve();
    },
    concurrency: 1,
    backoff,
    clock,
    onFailure: (_error, _key, count) => failures.push(count),
  });
  queue.add('a');
  await done.promise;
  expect(failures).toEqual([1, 2, 3, 4]);
  await expect.poll(() => queue.size).toBe(0);
  await queue.stop();
});

test('a key that waits for its next try does not hold up others', async () => {
  const worked: string[] = [];
  const queue = createRetryQueue({
    work: async (key) => {
      worked.push(key);
      if (key === 'bad') throw new Error('always');
    },
    concurrency: 1,
    backoff: { baseMs: 60_000, maxMs: 60_000 },
    clock,
    onFailure: () => undefined,
  });
  queue.add('bad');
  queue.add('good');
  await expect.poll(() => worked).toEqual(['bad', 'good']);
  expect(queue.size).toBe(1);
  await queue.stop();
});

test('stopping waits for what is worked on and drops the rest', async () => {
  const worked: string[] = [];
  const queue = createRetryQueue({
    work: async (key) => {
      await delay(20);
      worked.push(key);
    },
    concurrency: 1,
    backoff,
    clock,
    onFailure: () => undefined,
  });
  queue.add('a');
  queue.add('b');
  await queue.stop();
  queue.add('c');
  await delay(40);
  expect(worked).toEqual(['a']);
});
