import { pruneOperations } from '@rollcall/federation/store/usage-store.ts';
import { Pool } from 'pg';
import { expect, test } from 'vitest';
import { faultPaths } from '../communication/communication-service.ts';
import { type Caller, startFederation } from './federation-service.ts';
import { reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const introspect = async (call: Caller, url: string, name: string) =>
  expect((await call('POST', '/schemas/introspect', { body: { serviceUrl: url, name } })).status).toBe(200);

interface Operation {
  readonly name: string | null;
  readonly document: string;
  readonly clients: readonly string[];
  readonly count: number;
}

const usageOf = async (call: Caller, query = '') => {
  const { body } = await call('GET', `/schemas/usage${query}`);
  return (body as { operations: readonly Operation[] }).operations;
};

const counted = async (call: Caller, query?: string) =>
  Object.fromEntries((await usageOf(call, query)).map(({ name, count }) => [name ?? '', count]));

const ask = (caller: Caller, body: { query: string; operationName: string }, client: string) =>
  caller('POST', '/graphql', { body, headers: { 'apollographql-client-name': client } });

test('what clients executed is counted over all replicas, without what they asked about', async () => {
  const federation = await startFederation();
  const { call } = federation;
  await introspect(call, (await startSubgraph(users)).url, 'users');
  await introspect(call, (await startSubgraph(reviews)).url, 'reviews');
  const another = await federation.another();
  const query = 'query Names { users { name } } query Reviews { users { ...R } } fragment R on User { reviews }';
  const names = { query, operationName: 'Names' };
  await expect.poll(async () => (await ask(another.call, names, 'web')).body).toHaveProperty('data');
  for (let times = 0; times < 3; times += 1) await ask(call, names, 'app');
  await ask(call, { query, operationName: 'Reviews' }, 'evil;');
  await ask(call, { query: '{ users { gone } }', operationName: '' }, 'web');
  await expect.poll(() => counted(call)).toEqual({ Names: 4, Reviews: 1 });
  const [newest] = await usageOf(call, '?coordinate=User.reviews');
  expect(newest).toMatchObject({ name: 'Reviews', clients: [], document: expect.stringMatching(/^query Reviews/) });
  expect(await usageOf(call, '?coordinate=User.name')).toMatchObject([{ name: 'Names', clients: ['app', 'web'] }]);
  expect(await counted(call, '?coordinate=Query.users')).toEqual({ Names: 4, Reviews: 1 });
  expect(await counted(call, '?coordinate=User.id')).toEqual({});
  expect(faultPaths(await call('GET', "/schemas/usage?coordinate='--&limit=0"))).toEqual([
    'query/coordinate',
    'query/limit',
  ]);
  expect((await (await federation.callerOf('schemas:write'))('GET', '/schemas/usage')).status).toBe(403);
});

test('a check names the operations of clients that a schema breaks, and nothing is changed', async () => {
  const { call, query } = await startFederation();
  await introspect(call, (await startSubgraph(users)).url, 'users');
  await query('query Names { users { name } }');
  await query('{ users { __typename } }');
  await expect.poll(async () => Object.keys(await counted(call))).toHaveLength(2);
  const check = async (schema: string) =>
    (await call('POST', '/schemas/check', { body: { service: 'users', schema } })).body;
  expect(await check(users.sdl)).toMatchObject({ composition: { status: 'composed' }, operations: 2, broken: [] });
  expect(await check(users.sdl.replace('name: String', 'surname: String'))).toMatchObject({
    composition: { status: 'composed', errors: [] },
    operations: 2,
    broken: [{ name: 'Names', count: 1, errors: [expect.stringContaining('Cannot query field "name"')] }],
  });
  expect(await check('type Query {')).toMatchObject({ composition: { status: 'held' }, operations: 0, broken: [] });
  expect(await query('{ users { name } }')).toMatchObject({ data: { users: [{ name: 'Anna' }, { name: 'Ben' }] } });
});

test('what nobody has executed for a week is forgotten', async () => {
  const federation = await startFederation();
  await introspect(federation.call, (await startSubgraph(users)).url, 'users');
  await federation.query('query Old { users { name } }');
  await federation.query('query New { users { id } }');
  await expect.poll(() => counted(federation.call)).toEqual({ Old: 1, New: 1 });
  const database = new Pool({ connectionString: federation.databaseUrl, options: '-c search_path=federation' });
  await database.query(`UPDATE operations SET last_used_at = now() - interval '8 days' WHERE name = 'Old'`);
  await database.query(`UPDATE operation_days SET day = day - 8
    WHERE hash IN (SELECT hash FROM operations WHERE name = 'New')`);
  await database.query(`INSERT INTO operation_days (hash, day, count)
    SELECT hash, (now() AT TIME ZONE 'UTC')::date, 5 FROM operations WHERE name = 'New'`);
  expect(await pruneOperations(database, 7, 100)).toBe(1);
  await database.end();
  expect(await counted(federation.call)).toEqual({ New: 5 });
});
