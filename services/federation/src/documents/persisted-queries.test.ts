import { hash as digest } from 'node:crypto';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { createPersistedQueries } from './persisted-queries.ts';

const query = '{ product }';
const hash = digest('sha256', query);
const sent = { query, hash };
const byHash = { query: undefined, hash };

/** A replica, with what all replicas have in common. */
function replica() {
  const documents = new Map<string, string>();
  const state = { isAway: false, nowMs: 1000, adds: 0 };
  const queries = createPersistedQueries({
    store: {
      find: async (hash) => documents.get(hash),
      async add(hash, document) {
        state.adds += 1;
        if (state.isAway) throw new Error('The database is away');
        documents.set(hash, document);
      },
    },
    clock: { now: () => new Date(state.nowMs), monotonicMs: () => state.nowMs },
    log: createLogger('test', 'silent'),
  });
  return { queries, documents, state };
}

test('a document that could not be kept is known here alone, and is kept when it is sent again', async () => {
  const { queries, documents, state } = replica();
  state.isAway = true;
  await queries.keep(sent);
  expect(await queries.read(byHash)).toBe(query);
  state.isAway = false;
  await queries.keep(sent);
  expect(documents.get(hash)).toBe(query);
  expect(await queries.read(byHash)).toBe(query);
});

test('a document that others have forgotten is added again, once a minute at most', async () => {
  const { queries, documents, state } = replica();
  await queries.keep(sent);
  documents.clear();
  await queries.keep(sent);
  expect([state.adds, documents.size]).toEqual([1, 0]);
  state.nowMs += 60_001;
  await queries.keep(sent);
  await queries.keep(sent);
  expect([state.adds, documents.get(hash)]).toEqual([2, query]);
});

test('a document that was found is added when it is sent with its hash', async () => {
  const { queries, documents, state } = replica();
  documents.set(hash, query);
  expect(await queries.read(byHash)).toBe(query);
  documents.clear();
  await queries.keep(sent);
  expect([state.adds, documents.get(hash)]).toEqual([1, query]);
});
