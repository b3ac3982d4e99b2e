import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { createWorkQueue } from './workqueue.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const newQueue = (isUrgent?: (key: string) => boolean) =>
  createWorkQueue({ clock: systemClock, baseDelayMs: 10, maxDelayMs: 1000, isUrgent });

/** What is handed out now, without waiting. */
async function takeAll(queue: ReturnType<typeof newQueue>): Promise<string[]> {
  const keys: string[] = [];
  while (queue.depth() > 0) {
    const key = await queue.next();
    if (key !== undefined) keys.push(key);
  }
  return keys;
}

test('a key that is added several times waits once', async () => {
  const queue = newQueue();
  for (const key of ['a', 'b', 'a', 'a']) queue.add(key);
  expect(await takeAll(queue)).toEqual(['a', 'b']);
});

test('a key added while it is worked on comes back once, when that is done', async () => {
  const queue = newQueue();
  queue.add('a');
  expect(await queue.next()).toBe('a');
  queue.add('a');
  queue.add('a');
  expect(queue.depth()).toBe(0);
  queue.done('a');
  expect(await takeAll(queue)).toEqual(['a']);
  queue.done('a');
  expect(queue.depth()).toBe(0);
});

test('a worker that waits gets the next key', async () => {
  const queue = newQueue();
  const next = queue.next();
  queue.add('a');
  expect(await next).toBe('a');
});

test('many keys come out in the order in which they were added', async () => {
  const queue = newQueue();
  const keys = Array.from({ length: 1000 }, (_, index) => `key-${index}`);
  for (const key of keys.slice(0, 600)) queue.add(key);
  const first = await Promise.all(Array.from({ length: 500 }, () => queue.next()));
  for (const key of keys.slice(600)) queue.add(key);
  expect([...first, ...(await takeAll(queue))]).toEqual(keys);
});

test('what is urgent goes first, in its own order', async () => {
  const queue = newQueue((key) => key.startsWith('urgent'));
  for (const key of ['a', 'urgent-1', 'b', 'urgent-2']) queue.add(key);
  expect(await takeAll(queue)).toEqual(['urgent-1', 'urgent-2', 'a', 'b']);
});

test('a key that has become urgent while it was worked on returns before those that wait', async () => {
  const urgent = new Set<string>();
  const queue = newQueue((key) => urgent.has(key));
  for (const key of ['a', 'b', 'c']) queue.add(key);
  expect(await queue.next()).toBe('a');
  urgent.add('a');
  queue.add('a');
  queue.done('a');
  expect(await takeAll(queue)).toEqual(['a', 'b', 'c']);
});

test('what is always urgent does not hold up the rest for ever', async () => {
  const queue = newQueue((key) => key.startsWith('urgent'));
  for (const key of ['a', 'b', 'c', 'urgent']) queue.add(key);
  const taken: string[] = [];
  while (!taken.includes('c')) {
    const key = await queue.next();
    if (key === undefined) break;
    taken.push(key);
    if (key === 'urgent') queue.add(key);
    queue.done(key);
  }
  expect(taken.filter((key) => key !== 'urgent')).toEqual(['a', 'b', 'c']);
  expect(taken).toHaveLength(24);
});

test.each([
  { sentence: 'an earlier delay replaces a later one', delays: [500, 100], dueAt: 100 },
  { sentence: 'a later delay does not put off an earlier one', delays: [100, 500], dueAt: 100 },
])('$sentence', async ({ delays, dueAt }) => {
  const queue = newQueue();
  for (const delay of delays) queue.addAfter('a', delay);
  await vi.advanceTimersByTimeAsync(dueAt - 1);
  expect(queue.depth()).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(await takeAll(queue)).toEqual(['a']);
  queue.done('a');
  await vi.advanceTimersByTimeAsync(1000);
  expect(queue.depth()).toBe(0);
});

test('a delay longer than a timer can be is kept', async () => {
  const queue = newQueue();
  const days = 30 * 86_400_000;
  queue.addAfter('a', days);
  await vi.advanceTimersByTimeAsync(days - 1);
  expect(queue.depth()).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(queue.depth()).toBe(1);
});

test('delayed keys become due in order, whatever the order in which they came', async () => {
  const queue = newQueue();
  const delays = [70, 10, 40, 30, 90, 20, 60, 50, 80];
  for (const delay of delays) queue.addAfter(`after-${delay}`, delay);
  await vi.advanceTimersByTimeAsync(100);
  expect(await takeAll(queue)).toEqual(delays.toSorted((a, b) => a - b).map((delay) => `after-${delay}`));
});

test('the back-off of a key doubles up to its limit and is forgotten when told', async () => {
  const queue = newQueue();
  async function backoff(): Promise<number> {
    const start = performance.now();
    queue.addRateLimited('a');
    const next = queue.next();
    await vi.advanceTimersToNextTimerAsync();
    await next;
    queue.done('a');
    return performance.now() - start;
  }
  const delays: number[] = [];
  for (let attempt = 0; attempt < 9; attempt += 1) delays.push(await backoff());
  expect(delays).toEqual([10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
  queue.forget('a');
  expect(await backoff()).toBe(10);
});

test('shutting down drops what waits, and waits for what is worked on', async () => {
  const queue = newQueue();
  for (const key of ['a', 'b']) queue.add(key);
  queue.addAfter('c', 10);
  await queue.next();
  let drained = false;
  const shutDown = (async () => {
    await queue.shutDown();
    drained = true;
  })();
  queue.add('d');
  expect(await queue.next()).toBeUndefined();
  await vi.advanceTimersByTimeAsync(100);
  expect(drained).toBe(false);
  queue.done('a');
  await shutDown;
  expect(queue.depth()).toBe(0);
});

test('workers that wait are sent home when the queue shuts down', async () => {
  const queue = newQueue();
  const waiting = [queue.next(), queue.next()];
  await queue.shutDown();
  expect(await Promise.all(waiting)).toEqual([undefined, undefined]);
});

test('reports how long keys waited and were worked on', async () => {
  const events: [string, number?][] = [];
  const queue = createWorkQueue({
    clock: systemClock,
    baseDelayMs: 10,
    maxDelayMs: 1000,
    metrics: {
      depth: (size) => events.push(['depth', size]),
      added: () => events.push(['added']),
      started: (ms) => events.push(['started', ms]),
      finished: (ms) => events.push(['finished', ms]),
      retried: () => events.push(['retried']),
    },
  });
  queue.add('a');
  await vi.advanceTimersByTimeAsync(30);
  await queue.next();
  await vi.advanceTimersByTimeAsync(7);
  expect(queue.unfinishedMs()).toEqual([7]);
  queue.done('a');
  queue.addRateLimited('a');
  expect(events).toEqual([['added'], ['depth', 1], ['depth', 0], ['started', 30], ['finished', 7], ['retried']]);
});
