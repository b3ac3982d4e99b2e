import { expect, test } from 'vitest';
import { LateError, unlessLeft, withinTime } from './within-time.ts';

const forEver = new AbortController().signal;

/** Work that is over when its signal says so. */
const untilAborted = (limit: AbortSignal): Promise<never> =>
  new Promise((_resolve, reject) => {
    if (limit.aborted) reject(limit.reason);
    limit.addEventListener('abort', () => reject(limit.reason));
  });

test('work that is over in time is not disturbed', async () => {
  let signal: AbortSignal | undefined;
  const done = await withinTime(1, forEver, async (limit) => {
    signal = limit;
    return 'done';
  });
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect([done, signal?.aborted]).toEqual(['done', false]);
});

test('work that takes too long is told so', async () => {
  await expect(withinTime(1, forEver, untilAborted)).rejects.toThrow(LateError);
});

test('it hears the reason of whoever leaves, also before it begins', async () => {
  const leaving = new AbortController();
  const work = withinTime(60_000, leaving.signal, untilAborted);
  leaving.abort(new Error('left'));
  await expect(work).rejects.toThrow('left');
  await expect(withinTime(60_000, leaving.signal, untilAborted)).rejects.toThrow('left');
});

test('who leaves does not wait for work that goes on for others', async () => {
  const leaving = new AbortController();
  const work = Promise.withResolvers<string>();
  const waits = unlessLeft(work.promise, leaving.signal);
  const other = unlessLeft(work.promise, forEver);
  leaving.abort(new Error('left'));
  await expect(waits).rejects.toThrow('left');
  await expect(unlessLeft(work.promise, leaving.signal)).rejects.toThrow('left');
  work.resolve('done');
  expect(await other).toBe('done');
  await expect(unlessLeft(Promise.reject(new Error('broken')), forEver)).rejects.toThrow('broken');
});
