import { sleep } from '@rollcall/platform/retry.ts';
import { expect, onTestFinished, test } from 'vitest';
import { connectFor, startInformer, type TestInformer } from './fixtures.ts';
import {
  type ScriptStep,
  sendEvents,
  sendList,
  sendStatus,
  startScriptedServer,
  wireLease,
} from './scripted-server.ts';

async function follow(steps: readonly ScriptStep[], requestTimeoutMs = 10_000) {
  const server = await startScriptedServer(steps);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const connection = await connectFor(server.kubeconfigPath, { requestTimeoutMs });
  const started: TestInformer = await startInformer({ connection, namespace: 'ns', synced: false });
  const requested = () => server.requests.map(({ what }) => what);
  return { ...started, server, requested };
}

const listOf = (items: readonly object[], version: string, next = ''): ScriptStep => ({
  request: 'list',
  answer: (response) => sendList(response, { items, version, next }),
});

/** A watch that the server ends in the normal way after this long. */
const watchOf = (events: readonly object[], endAfterMs: number): ScriptStep => ({
  request: 'watch',
  async answer(response) {
    sendEvents(response, events);
    await sleep(endAfterMs);
    response.end();
  },
});

const bookmark = (version: number) => ({
  type: 'BOOKMARK',
  object: { kind: 'Lease', metadata: { resourceVersion: `${version}` } },
});

test('a watch that ended is resumed from the last bookmark, and its normal end is no disconnection', async () => {
  const { requested, connectivity, log, informer } = await follow([
    listOf([wireLease('a', 5)], '10'),
    watchOf([{ type: 'MODIFIED', object: wireLease('a', 12) }, bookmark(50)], 200),
    watchOf([bookmark(60)], 200),
    watchOf([], 1100),
  ]);
  await expect.poll(requested).toEqual(['list', 'watch 10', 'watch 50', 'watch 60', 'watch 60']);
  expect(connectivity).toEqual(['connected']);
  expect(log).toEqual(['added a', 'modified a']);
  expect(informer.store.size).toBe(1);
});

test('bookmarks are reported, after what was before them', async () => {
  const server = await startScriptedServer([
    listOf([], '10'),
    watchOf([{ type: 'ADDED', object: wireLease('a', 12) }, bookmark(50), bookmark(60)], 5000),
  ]);
  onTestFinished(() => server[Symbol.asyncDispose]());
  const connection = await connectFor(server.kubeconfigPath);
  const { informer } = await startInformer({ connection, namespace: 'ns', started: false });
  const heard: string[] = [];
  informer.onStream((news) => heard.push(news.type));
  informer.onBookmark((version) => heard.push(version));
  informer.start();
  await expect.poll(() => heard).toEqual(['listed', 'stored', '50', '60']);
});

test('a server that ends every watch at once is not stormed', async () => {
  const { requested, informer } = await follow([
    listOf([], '10'),
    ...Array.from({ length: 100 }, () => watchOf([], 0)),
  ]);
  await sleep(2000);
  expect(requested().length).toBeLessThan(10);
  expect(informer.connectivity()).toBe('disconnected');
});

test('after a long absence of the server a watch that cannot be resumed is followed by a list at once, but not again and again', {
  // A machine that stands still for a second makes it look like a wait.
  retry: 3,
  timeout: 120_000,
}, async () => {
  const broken: ScriptStep = { request: 'watch', answer: (response) => void response.socket?.destroy() };
  const gone: ScriptStep = {
    request: 'watch',
    answer: (response) => sendStatus(response, { code: 410, reason: 'Expired' }),
  };
  const { server } = await follow([listOf([], '10'), ...Array.from({ length: 6 }, () => broken), gone, gone]);
  await expect.poll(() => server.requests.length, { timeout: 30_000 }).toBeGreaterThanOrEqual(12);
  const [refused, listed, refusedAgain, listedLater] = server.requests.slice(7);
  expect([refused, listed, refusedAgain, listedLater].map((request) => request?.what)).toEqual([
    'watch 10',
    'list',
    'watch 1',
    'list',
  ]);
  // Else it would wait for a second at least.
  expect((listed?.atMs ?? 0) - (refused?.atMs ?? 0)).toBeLessThan(900);
  expect((listedLater?.atMs ?? 0) - (refusedAgain?.atMs ?? 0)).toBeGreaterThan(900);
});

test.each([
  [429, 'TooManyRequests'],
  [503, 'ServiceUnavailable'],
])('a list refused with %i and Retry-After is asked for again after that long', async (code, reason) => {
  const refusal: ScriptStep = {
    request: 'list',
    answer: (response) => sendStatus(response, { code, reason, retryAfter: 1 }),
  };
  const { informer, server } = await follow([refusal, listOf([wireLease('a', 5)], '10')]);
  await informer.synced;
  const [first, second] = server.requests;
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(1000);
});

test('a Retry-After beyond the time limit of requests is kept by the informer', async () => {
  const refusal: ScriptStep = {
    request: 'list',
    answer: (response) => sendStatus(response, { code: 429, reason: 'TooManyRequests', retryAfter: 2 }),
  };
  const { informer, server, failures } = await follow([refusal], 500);
  await informer.synced;
  const [first, second] = server.requests;
  expect((second?.atMs ?? 0) - (first?.atMs ?? 0)).toBeGreaterThanOrEqual(2000);
  expect(failures).toEqual(['list']);
});

test('a list that fails without a word about when is tried again with growing pauses', async () => {
  const failing = Array.from(
    { length: 4 },
    (): ScriptStep => ({
      request: 'list',
      answer: (response) => sendStatus(response, { code: 500, reason: 'InternalError' }),
    }),
  );
  const { informer, server, failures } = await follow([...failing, listOf([], '3')]);
  await informer.synced;
  expect(failures).toEqual(['list', 'list', 'list', 'list']);
  const times = server.requests.map(({ atMs }) => atMs);
  expect((times[4] ?? 0) - (times[3] ?? 0)).toBeGreaterThan((times[1] ?? 0) - (times[0] ?? 0));
});

test('a page that has expired begins the list anew, and nothing of the first half is left', async () => {
  const { informer, log, requested } = await follow([
    listOf([wireLease('a', 1), wireLease('gone', 2)], '5', 'next'),
    { request: 'list', answer: (response) => sendStatus(response, { code: 410, reason: 'Expired' }) },
    listOf([wireLease('a', 7)], '9', 'more'),
    listOf([wireLease('b', 8)], '9'),
  ]);
  await informer.synced;
  expect(log).toEqual(['added a', 'added b']);
  expect(requested().slice(0, 4)).toEqual(['list', 'list next', 'list', 'list more']);
});

test.each([
  [
    'as an event',
    (response: Parameters<typeof sendStatus>[0]) =>
      sendEvents(response, [{ type: 'ERROR', object: { code: 410, reason: 'Expired', message: 'too old' } }]),
  ],
  [
    'as the answer',
    (response: Parameters<typeof sendStatus>[0]) => sendStatus(response, { code: 410, reason: 'Expired' }),
  ],
])('a resource version that is too old, said %s, means listing again at once', async (_how, answer) => {
  const { log, connectivity, requested, failures } = await follow([
    listOf([wireLease('a', 5), wireLease('b', 6)], '10'),
    watchOf([{ type: 'ADDED', object: wireLease('c', 11) }], 100),
    { request: 'watch', answer },
    listOf([wireLease('b', 20), wireLease('c', 11), wireLease('d', 21)], '30'),
  ]);
  const changes = ['added a', 'added b', 'added c', 'modified b', 'added d', 'deleted a'];
  await expect.poll(() => log).toEqual(changes);
  await expect.poll(requested).toEqual(['list', 'watch 10', 'watch 11', 'list', 'watch 30']);
  await expect.poll(() => connectivity).toEqual(['connected', 'disconnected', 'connected']);
  expect(failures).toEqual(['watch']);
});

test('what is no event ends the watch, which is resumed after the last one that was', async () => {
  const { log, requested, failures } = await follow([
    listOf([], '10'),
    {
      request: 'watch',
      answer(response) {
        sendEvents(response, [{ type: 'ADDED', object: wireLease('a', 11) }]);
        response.write('{"type":"ADDED","object":{"metadata":{"na\n');
      },
    },
    watchOf([{ type: 'ADDED', object: wireLease('b', 12) }], 5000),
  ]);
  await expect.poll(() => log).toEqual(['added a', 'added b']);
  expect(requested()).toEqual(['list', 'watch 10', 'watch 11']);
  expect(failures).toEqual(['watch']);
});

test('an event of a megabyte that comes in small pieces is read whole', async () => {
  const big = { ...wireLease('big', 11), spec: { holderIdentity: 'x'.repeat(1_000_000) } };
  const line = Buffer.from(`${JSON.stringify({ type: 'ADDED', object: big })}\n`);
  const { log, informer } = await follow([
    listOf([], '10'),
    {
      request: 'watch',
      async answer(response) {
        sendEvents(response, []);
        for (let at = 0; at < line.length; at += 10_000) {
          response.write(line.subarray(at, at + 10_000));
          await sleep(1);
        }
      },
    },
  ]);
  await expect.poll(() => log).toEqual(['added big']);
  expect(informer.store.get('ns/big')?.spec?.holderIdentity).toHaveLength(1_000_000);
});
