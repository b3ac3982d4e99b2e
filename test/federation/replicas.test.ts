import { hash } from 'node:crypto';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, inject, onTestFinished, test } from 'vitest';
import { freePort } from '../client/contract-server.ts';
import { startTcpRelay } from '../kube/tcp-relay.ts';
import { createDatabase } from '../support/postgres.ts';
import { codeOf, startFederation, statusesOf } from './federation-service.ts';
import { products, reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

test('a replica that starts answers before any subgraph does', async () => {
  const first = await startFederation();
  const [ofUsers, ofProducts] = [await startSubgraph(users), await startSubgraph(products)];
  await first.call('POST', '/schemas/introspect', { body: { serviceUrl: ofUsers.url, name: 'users' } });
  await first.call('POST', '/schemas/introspect', { body: { serviceUrl: ofProducts.url, name: 'products' } });
  const supergraph = (await first.call('GET', '/schemas/supergraph')).text;
  await first.service[Symbol.asyncDispose]();
  await ofUsers.stop();
  const second = await first.another();
  expect((await second.call('GET', '/schemas/supergraph')).text).toBe(supergraph);
  const { data, errors } = await second.query('{ product users { name } }');
  // users is not null in a graph whose other half has an answer.
  expect([data, errors?.[0]?.extensions]).toEqual([null, { code: 'SUBGRAPH_UNAVAILABLE', service: 'users' }]);
  expect(await second.query('{ product }')).toEqual({ data: { product: 'table' } });
});

test('replicas answer by the graph that another has made', async () => {
  const first = await startFederation();
  const second = await first.another();
  const { url: serviceUrl } = await startSubgraph(products);
  await first.call('POST', '/schemas/introspect', { body: { serviceUrl, name: 'products' } });
  await expect.poll(() => second.query('{ product }')).toEqual({ data: { product: 'table' } });
  await second.call('DELETE', '/schemas/products');
  await expect.poll(async () => (await first.query('{ product }')).data).toBeUndefined();
});

test('changes of several replicas at once are all made', async () => {
  const first = await startFederation();
  const replicas = [first, await first.another(), await first.another()];
  const servers = await Promise.all(
    Array.from({ length: 9 }, (_, n) => startSubgraph({ sdl: `type Query { field${n}: Int }`, resolvers: {} })),
  );
  const answers = await Promise.all(
    servers.map(async ({ url }, n) =>
      replicas[n % replicas.length]?.call('POST', '/schemas/introspect', { body: { serviceUrl: url, name: `s${n}` } }),
    ),
  );
  expect(answers.map((answer) => answer?.status)).toEqual(servers.map(() => 200));
  const all = `{ ${servers.map((_, n) => `field${n}`).join(' ')} }`;
  for (const { query } of replicas)
    await expect
      .poll(async () => (await query(all)).data)
      .toEqual(Object.fromEntries(servers.map((_, n) => [`field${n}`, null])));
  expect(Object.values(await statusesOf(first.call))).toEqual(servers.map(() => 'composed'));
});

test('schemas are read anew from time to time, and a service that was away is found again', async () => {
  const { call, query } = await startFederation({ ROLLCALL_SCHEMA_POLL_SECONDS: '1' });
  const server = await startSubgraph(users);
  await call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'users' } });
  server.misbehave((response) => void response.destroy());
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'unreachable' });
  server.become(reviews);
  server.become({ ...users, sdl: `${users.sdl} extend type Query { more: Int }` });
  server.misbehave(undefined);
  await expect.poll(() => query('{ more }')).toEqual({ data: { more: null } });
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'composed' });
});

test('a replica that starts while the database is away answers by the graph in its file', async () => {
  const file = join(await mkdtemp(join(inject('temporaryDirectory'), 'graph-')), 'graph.json');
  const first = await startFederation({ ROLLCALL_GRAPH_FILE: file });
  const server = await startSubgraph(products);
  await first.call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'products' } });
  await first.service[Symbol.asyncDispose]();
  const nowhere = { ROLLCALL_DATABASE_URL: `postgres://rollcall@127.0.0.1:${await freePort()}/none` };
  const second = await first.another(nowhere);
  expect(await second.query('{ product }')).toEqual({ data: { product: 'table' } });
  const health = (await second.call('GET', '/health')).body;
  expect(health).toMatchObject({ status: 'healthy', database: 'disconnected' });
  await writeFile(file, '{"number":');
  const third = await first.another(nowhere);
  expect(codeOf(await third.call('POST', '/graphql', { body: { query: '{ product }' } }))).toBe('NO_GRAPH');
});

test('queries go on while the database is away, and what needs it says so', async () => {
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const relay = await startTcpRelay(Number(new URL(inject('postgresUrl')).port || 5432));
  const url = new URL(database.url);
  url.host = `127.0.0.1:${relay.port}`;
  const { call, query } = await startFederation({ ROLLCALL_DATABASE_URL: url.href });
  const server = await startSubgraph(products);
  const introspect = () => call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'products' } });
  await introspect();
  await relay[Symbol.asyncDispose]();
  await expect.poll(async () => (await call('GET', '/health')).body).toMatchObject({ database: 'disconnected' });
  expect((await call('GET', '/health')).body).toMatchObject({ status: 'healthy', services: { products: 'healthy' } });
  expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  const extensions = { persistedQuery: { version: 1, sha256Hash: hash('sha256', '{ product }') } };
  const byHash = () => call('POST', '/graphql', { body: { extensions } });
  expect((await byHash()).body).toMatchObject({ errors: [{ message: 'PersistedQueryNotFound' }] });
  const sent = await call('POST', '/graphql', { body: { query: '{ product }', extensions } });
  for (const { body } of [sent, await byHash()]) expect(body).toEqual({ data: { product: 'table' } });
  for (const answer of [await call('GET', '/schemas'), await introspect(), await call('POST', '/schemas/refresh')])
    expect([answer.status, codeOf(answer)]).toEqual([503, 'UNAVAILABLE']);
});
