import { setImmediate as nextTurn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createSharedReads } from './shared-reads.ts';

/** Reads that end when told to. */
function setUp() {
  const begun: { readonly key: string; readonly end: PromiseWithResolvers<string> }[] = [];
  const read = createSharedReads((key) => {
    const end = Promise.withResolvers<string>();
    begun.push({ key, end });
    return end.promise;
  });
  return { read, begun };
}

test('who asks while a read is under way gets the answer of one that began later, and shares it', async () => {
  const { read, begun } = setUp();
  const first = read('a');
  const later = [read('a'), read('a')];
  expect(begun).toHaveLength(1);
  begun[0]?.end.resolve('old');
  expect(await first).toBe('old');
  await nextTurn();
  expect(begun).toHaveLength(2);
  const last = read('a');
  begun[1]?.end.resolve('new');
  expect(await Promise.all(later)).toEqual(['new', 'new']);
  await nextTurn();
  begun[2]?.end.resolve('newest');
  expect(await last).toBe('newest');
  expect(begun).toHaveLength(3);
});

test('reads of other keys do not wait, and nothing is kept once all have ended', async () => {
  const { read, begun } = setUp();
  const answers = [read('a'), read('b')];
  for (const { key, end } of begun) end.resolve(key);
  expect(await Promise.all(answers)).toEqual(['a', 'b']);
  await nextTurn();
  void read('a');
  expect(begun.map(({ key }) => key)).toEqual(['a', 'b', 'a']);
});

test('a read that fails is the failure of those who asked before it began, and of nobody else', async () => {
  const { read, begun } = setUp();
  const first = read('a');
  const second = read('a');
  begun[0]?.end.reject(new Error('away'));
  await expect(first).rejects.toThrow('away');
  await nextTurn();
  begun[1]?.end.resolve('back');
  expect(await second).toBe('back');
});
