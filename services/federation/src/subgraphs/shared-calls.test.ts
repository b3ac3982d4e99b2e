import { expect, test } from 'vitest';
import { createSharedCalls } from './shared-calls.ts';

/** Calls that are answered when the test says so. */
function calls() {
  const made: { readonly answer: PromiseWithResolvers<string>; readonly signal: AbortSignal }[] = [];
  const work = (signal: AbortSignal): Promise<string> => {
    const answer = Promise.withResolvers<string>();
    made.push({ answer, signal });
    return answer.promise;
  };
  return { made, work };
}

const forEver = new AbortController().signal;

test('equal ones at the same time are one, others and later ones are not', async () => {
  const { made, work } = calls();
  const shared = createSharedCalls<string>();
  let joined = 0;
  const all = ['a', 'a', 'b', 'a'].map((key) =>
    shared.run({ key, signal: forEver, onShared: () => void (joined += 1) }, work),
  );
  expect([made.length, joined]).toEqual([2, 2]);
  made[0]?.answer.resolve('of a');
  made[1]?.answer.resolve('of b');
  expect(await Promise.all(all)).toEqual(['of a', 'of a', 'of b', 'of a']);
  expect(made.map(({ signal }) => signal.aborted)).toEqual([false, false]);
  const later = shared.run({ key: 'a', signal: forEver }, work);
  expect(made.length).toBe(3);
  made[2]?.answer.reject(new Error('broken'));
  await expect(later).rejects.toThrow('broken');
});

test('who leaves does not take the answer from the others; when all have left it is broken off', async () => {
  const { made, work } = calls();
  const shared = createSharedCalls<string>();
  const [first, second] = [new AbortController(), new AbortController()];
  const one = shared.run({ key: 'a', signal: first.signal }, work);
  const other = shared.run({ key: 'a', signal: second.signal }, work);
  first.abort(new Error('The first has left'));
  await expect(one).rejects.toThrow('The first has left');
  expect(made[0]?.signal.aborted).toBe(false);
  second.abort(new Error('So has the second'));
  await expect(other).rejects.toThrow('So has the second');
  expect(made[0]?.signal.aborted).toBe(true);
  const next = shared.run({ key: 'a', signal: forEver }, work);
  made[1]?.answer.resolve('anew');
  expect(await next).toBe('anew');
  made[0]?.answer.reject(new Error('Nobody hears of it'));
});

test('who has left already begins nothing that goes on', async () => {
  const { made, work } = calls();
  await expect(
    createSharedCalls<string>().run({ key: 'a', signal: AbortSignal.abort(new Error('gone')) }, work),
  ).rejects.toThrow('gone');
  expect(made[0]?.signal.aborted).toBe(true);
});

test('after a change nobody joins what was under way before it', async () => {
  const { made, work } = calls();
  const shared = createSharedCalls<string>();
  const before = shared.run({ key: 'a', signal: forEver }, work);
  shared.separate();
  const after = shared.run({ key: 'a', signal: forEver }, work);
  made[0]?.answer.resolve('old');
  made[1]?.answer.resolve('new');
  expect(await Promise.all([before, after])).toEqual(['old', 'new']);
});
