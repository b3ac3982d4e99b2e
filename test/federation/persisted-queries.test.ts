import { hash } from 'node:crypto';
import { prunePersistedQueries } from '@rollcall/federation/store/persisted-query-store.ts';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { type Caller, codeOf, type Federation, startFederation } from './federation-service.ts';
import { products } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const QUERY = 'query Q { product }';

async function startShop(settings: Readonly<Record<string, string>> = {}): Promise<Federation & { anybody: Caller }> {
  const federation = await startFederation(settings);
  const { url: serviceUrl } = await startSubgraph(products);
  await federation.call('POST', '/schemas/introspect', { body: { serviceUrl, name: 'products' } });
  return { ...federation, anybody: await federation.callerOf(undefined) };
}

const named = (query: string) => ({ persistedQuery: { version: 1, sha256Hash: hash('sha256', query) } });
const refused = (code: string) => ({ errors: [expect.objectContaining({ extensions: { code } })] });

async function ask(caller: Caller, body: object) {
  const answer = await caller('POST', '/graphql', { body });
  return [answer.status, answer.body];
}

test('a document that was sent once with its hash is known by it, to all replicas', async () => {
  const { anybody, another } = await startShop();
  const byHash = { extensions: named(QUERY) };
  expect(await ask(anybody, byHash)).toEqual([
    200,
    { errors: [{ message: 'PersistedQueryNotFound', extensions: { code: 'PERSISTED_QUERY_NOT_FOUND' } }] },
  ]);
  const data = { data: { product: 'table' } };
  expect(await ask(anybody, { ...byHash, query: QUERY })).toEqual([200, data]);
  expect(await ask(anybody, byHash)).toEqual([200, data]);
  const other = await another();
  const anybodyThere = await other.callerOf(undefined);
  expect(await ask(anybodyThere, { ...byHash, operationName: 'Q' })).toEqual([200, data]);
  const path = `/graphql?${new URLSearchParams({ extensions: JSON.stringify(byHash.extensions) }).toString()}`;
  const got = await anybodyThere('GET', path, { headers: { 'graphql-require-preflight': '1' } });
  expect(got.body).toEqual(data);
});

test('a mutation is not executed by GET, however it is named', async () => {
  const { anybody } = await startShop();
  const query = 'mutation { sell(sku: 1) }';
  expect(await ask(anybody, { query, extensions: named(query) })).toEqual([200, { data: { sell: 'sold 1' } }]);
  const path = `/graphql?${new URLSearchParams({ extensions: JSON.stringify(named(query)) }).toString()}`;
  const got = await anybody('GET', path, { headers: { 'graphql-require-preflight': '1' } });
  expect([got.status, codeOf(got)]).toEqual([405, 'MUTATION_BY_GET']);
});

test('what is not valid, or not what the hash is of, is not kept', async () => {
  const { anybody } = await startShop();
  for (const query of ['{ nothing }', '{', `{ ${'product '.repeat(31)} }`]) {
    const [, body] = await ask(anybody, { query, extensions: named(query) });
    expect(body).not.toHaveProperty('data');
    expect(await ask(anybody, { extensions: named(query) })).toEqual([200, refused('PERSISTED_QUERY_NOT_FOUND')]);
  }
  expect(await ask(anybody, { query: '{ product }', extensions: named(QUERY) })).toEqual([
    400,
    refused('PERSISTED_QUERY_HASH_MISMATCH'),
  ]);
  expect(await ask(anybody, { extensions: named(QUERY) })).toEqual([200, refused('PERSISTED_QUERY_NOT_FOUND')]);
});

test('a document that PostgreSQL cannot have is executed all the same', async () => {
  const { anybody } = await startShop();
  const query = '{ product } # \u0000';
  for (const times of [1, 2])
    expect([times, ...(await ask(anybody, { query, extensions: named(query) }))]).toEqual([
      times,
      200,
      { data: { product: 'table' } },
    ]);
});

test('where documents are not kept clients are told so', async () => {
  const { anybody } = await startShop({ ROLLCALL_PERSISTED_QUERIES: 'off' });
  expect(await ask(anybody, { extensions: named(QUERY) })).toEqual([
    200,
    { errors: [{ message: 'PersistedQueryNotSupported', extensions: { code: 'PERSISTED_QUERY_NOT_SUPPORTED' } }] },
  ]);
  expect(await ask(anybody, { query: QUERY, extensions: named(QUERY) })).toEqual([200, { data: { product: 'table' } }]);
});

test('the newest documents are kept, and the others are forgotten', async () => {
  const { databaseUrl } = await startFederation();
  const database = new Pool({ connectionString: databaseUrl, options: '-c search_path=federation' });
  await database.query(`INSERT INTO persisted_queries (hash, document, kept_at)
    SELECT int4send(n), 'a', now() - n * interval '1 s' FROM generate_series(1, 10005) AS n`);
  expect([await prunePersistedQueries(database, 3), await prunePersistedQueries(database, 1000)]).toEqual([3, 2]);
  const { rows } = await database.query(
    'SELECT count(*)::int, max(hash) = int4send(10000) AS ends FROM persisted_queries',
  );
  await database.end();
  expect(rows).toEqual([{ count: 10_000, ends: true }]);
});
