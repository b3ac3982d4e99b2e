import { expect, onTestFinished, test, vi } from 'vitest';
import { createSharedStatement } from './shared-statement.ts';

interface Call {
  readonly row: string;
  readonly isBad?: boolean;
  readonly bytes?: number;
}

async function turns(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** Statements end when they are told to. */
function recorded({ failure = new Error('bad'), gatherMs = 0 }: { failure?: Error; gatherMs?: number } = {}) {
  const statements: (readonly string[])[] = [];
  const ends: (() => void)[] = [];
  const call = createSharedStatement<Call, string>({
    async run(calls) {
      statements.push(calls.map(({ row }) => row));
      await new Promise<void>((resolve) => ends.push(resolve));
      if (calls.some(({ isBad }) => isBad === true)) throw failure;
      return calls.map(({ row }) => `done ${row}`);
    },
    rowOf: ({ row }) => row,
    bytesOf: ({ bytes = 0 }) => bytes,
    gatherMs,
  });
  const endAll = async () => {
    await turns();
    for (let end = ends.shift(); end !== undefined; end = ends.shift()) {
      end();
      await turns();
    }
  };
  return { call, statements, endAll };
}

test('calls that come together share a statement, and each has its own result', async () => {
  const { call, statements, endAll } = recorded();
  const results = Promise.all([call({ row: 'a' }), call({ row: 'b' })]);
  await endAll();
  expect(await results).toEqual(['done a', 'done b']);
  expect(statements).toEqual([['a', 'b']]);
});

test('who comes while two statements are under way shares the next one', async () => {
  const { call, statements, endAll } = recorded();
  const results: Promise<string>[] = [];
  for (const row of ['a', 'b', 'c', 'd']) {
    results.push(call({ row }));
    await turns();
  }
  expect(statements).toEqual([['a'], ['b']]);
  await endAll();
  expect(await Promise.all(results)).toEqual(['done a', 'done b', 'done c', 'done d']);
  expect(statements).toEqual([['a'], ['b'], ['c', 'd']]);
});

test('calls that may wait for others share a statement with those that come meanwhile', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  onTestFinished(() => void vi.useRealTimers());
  const { call, statements, endAll } = recorded({ gatherMs: 10 });
  const first = call({ row: 'a' });
  await turns();
  vi.advanceTimersByTime(9);
  const second = call({ row: 'b' });
  await turns();
  expect(statements).toEqual([]);
  vi.advanceTimersByTime(1);
  await endAll();
  expect(await Promise.all([first, second])).toEqual(['done a', 'done b']);
  expect(statements).toEqual([['a', 'b']]);
});

test('a call that fails is the only one that does', async () => {
  const { call, statements, endAll } = recorded();
  const results = Promise.allSettled([call({ row: 'a' }), call({ row: 'b', isBad: true }), call({ row: 'c' })]);
  await endAll();
  expect((await results).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
  expect(statements).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c']]);
});

test('while the database is away nothing is tried again: what became of a statement is not known', async () => {
  const { call, statements, endAll } = recorded({ failure: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
  const results = Promise.allSettled([call({ row: 'a', isBad: true }), call({ row: 'b' })]);
  await endAll();
  expect((await results).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  expect(statements).toEqual([['a', 'b']]);
});

test('while the database is away, nobody waits longer than for a connection', async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  onTestFinished(() => void vi.useRealTimers());
  const { call, statements, endAll } = recorded({ failure: Object.assign(new Error('reset'), { code: 'ECONNRESET' }) });
  const results: Promise<string>[] = [];
  for (const each of [{ row: 'a', isBad: true }, { row: 'b', isBad: true }, { row: 'c' }]) {
    results.push(call(each));
    await turns();
  }
  vi.advanceTimersByTime(3000);
  results.push(call({ row: 'd' }));
  const settled = Promise.allSettled(results);
  await endAll();
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected', 'rejected', 'fulfilled']);
  expect(statements).toEqual([['a'], ['b'], ['d']]);
});

test('two calls of one row are in two statements', async () => {
  const { call, statements, endAll } = recorded();
  const results = Promise.all([call({ row: 'a' }), call({ row: 'a' }), call({ row: 'b' })]);
  await endAll();
  await results;
  expect(statements).toEqual([['a', 'b'], ['a']]);
});

test('a call that sends much is alone', async () => {
  const { call, statements, endAll } = recorded();
  const large = 1024 * 1024;
  const results = Promise.all([call({ row: 'a' }), call({ row: 'b', bytes: large }), call({ row: 'c' })]);
  await endAll();
  await results;
  expect(statements).toEqual([['a', 'c'], ['b']]);
});
