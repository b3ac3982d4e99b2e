import { pruneGenerations } from '@rollcall/federation/store/graph-store.ts';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { faultPaths } from '../communication/communication-service.ts';
import { codeOf, startFederation } from './federation-service.ts';
import { products, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

test('an earlier graph is in force in all replicas while it is pinned, whatever changes', async () => {
  const federation = await startFederation();
  const { call, query } = federation;
  const introspect = async (serviceUrl: string, name: string) =>
    (await call('POST', '/schemas/introspect', { body: { serviceUrl, name } })).body;
  const ofUsers = await startSubgraph(users);
  await introspect(ofUsers.url, 'users');
  await introspect((await startSubgraph(products)).url, 'products');
  const another = await federation.another();
  const asked = '{ product }';
  await expect.poll(() => another.query(asked)).toEqual({ data: { product: 'table' } });

  expect((await call('PUT', '/schemas/supergraph/pin', { body: { generation: 1 } })).status).toBe(204);
  expect(await query(asked)).toMatchObject({ errors: [{ message: expect.stringContaining('"product"') }] });
  await expect.poll(() => another.query(asked)).toMatchObject({ errors: [{}] });
  ofUsers.become({ ...users, sdl: users.sdl.replace('name: String', 'name: String age: Int') });
  await call('POST', '/schemas/refresh');
  expect(await query('{ users { age } }')).toMatchObject({ errors: [{}] });
  expect((await call('GET', '/schemas/history')).body).toMatchObject({ pinned: 1, total: 3 });
  expect((await call('GET', '/schemas/supergraph')).text).not.toContain('product');

  expect((await call('DELETE', '/schemas/supergraph/pin')).status).toBe(204);
  expect(await query(asked)).toEqual({ data: { product: 'table' } });
  expect(await query('{ users { age } }')).toMatchObject({ data: { users: [{ age: null }, { age: null }] } });
  expect((await call('GET', '/schemas/history')).body).toMatchObject({ pinned: null });
});

test('only a graph of the history can be pinned, by who may write schemas; it is not forgotten', async () => {
  const { call, callerOf, databaseUrl } = await startFederation();
  const pin = async (generation: unknown) => call('PUT', '/schemas/supergraph/pin', { body: { generation } });
  expect((await pin(1)).body).toMatchObject({
    error: { code: 'NOT_FOUND', message: 'The history has no graph of this number' },
  });
  expect(faultPaths(await pin(0))).toEqual(['body/generation']);
  expect(faultPaths(await pin('1'))).toEqual(['body/generation']);
  const { url } = await startSubgraph(users);
  await call('POST', '/schemas/introspect', { body: { serviceUrl: url, name: 'users' } });
  const reader = await callerOf('schemas:read');
  expect((await reader('PUT', '/schemas/supergraph/pin', { body: { generation: 1 } })).status).toBe(403);
  expect((await reader('DELETE', '/schemas/supergraph/pin')).status).toBe(403);
  expect((await pin(1)).status).toBe(204);
  await call('DELETE', '/schemas/users');
  // The graph without services.
  expect(codeOf(await pin(2))).toBe('NOT_FOUND');
  const pool = new Pool({ connectionString: databaseUrl, options: '-c search_path=federation' });
  await pool.query('UPDATE graph SET generation = generation + 1000');
  expect(await pruneGenerations(pool, 100)).toBe(1);
  await pool.end();
  expect((await call('GET', '/schemas/supergraph')).text).toContain('type User');
});

test('a plan is explained, and no service is asked', async () => {
  const { call } = await startFederation();
  const explain = async (query: string, more = {}) =>
    (await call('POST', '/schemas/explain', { body: { query, ...more } })).body;
  expect(codeOf(await call('POST', '/schemas/explain', { body: { query: '{ users { id } }' } }))).toBe('NO_GRAPH');
  const server = await startSubgraph(users);
  await call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'users' } });
  expect(await explain('{ users { name } }')).toEqual({
    generation: 1,
    cost: expect.any(Number),
    plan: {
      kind: 'fetch',
      service: 'users',
      operation: 'query',
      entities: [],
      query: '{\n  users {\n    name\n  }\n}',
    },
    errors: [],
  });
  expect(await explain('{ __typename }')).toMatchObject({ plan: null, errors: [] });
  expect(await explain('{ users { gone } }')).toMatchObject({
    cost: null,
    plan: null,
    errors: [{ message: expect.any(String) }],
  });
  expect(await explain('query A { users { id } } query B { __typename }', { operationName: 'B' })).toMatchObject({
    plan: null,
    errors: [],
  });
  expect(server.asked).toEqual([]);
});
