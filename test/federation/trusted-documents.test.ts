import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { expect, inject, onTestFinished, test } from 'vitest';
import { faultPaths } from '../communication/communication-service.ts';
import { startTcpRelay } from '../kube/tcp-relay.ts';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, codeOf, type Federation, startFederation } from './federation-service.ts';
import { products } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const QUERY = 'query Q { product }';
const DATA = { data: { product: 'table' } };

interface Shop extends Federation {
  readonly anybody: Caller;
  readonly publish: (documents: Readonly<Record<string, string>>, client?: string) => ReturnType<Caller>;
}

async function startShop(settings: Readonly<Record<string, string>> = {}): Promise<Shop> {
  const federation = await startFederation(settings);
  const { url: serviceUrl } = await startSubgraph(products);
  await federation.call('POST', '/schemas/introspect', { body: { serviceUrl, name: 'products' } });
  return {
    ...federation,
    anybody: await federation.callerOf(undefined),
    publish: (documents, client = 'web') => federation.call('POST', '/documents', { body: { client, documents } }),
  };
}

async function ask(caller: Caller, body: object) {
  const answer = await caller('POST', '/graphql', { body });
  return [answer.status, answer.body];
}

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const byHash = (text: string) => ({ extensions: { persistedQuery: { version: 1, sha256Hash: sha256(text) } } });
const refused = (code: string) => [400, { errors: [expect.objectContaining({ extensions: { code } })] }];

test('a document that was published is asked for by its id, at every replica, by POST and GET', async () => {
  const { anybody, publish, another } = await startShop();
  expect(await ask(anybody, { documentId: 'product' })).toEqual(refused('DOCUMENT_NOT_FOUND'));
  const other = await (await another()).callerOf(undefined);
  expect((await publish({ product: QUERY, [`sha256:${sha256(QUERY)}`]: QUERY })).body).toEqual({
    client: 'web',
    published: 2,
    known: 0,
  });
  expect(await ask(other, { documentId: 'product', operationName: 'Q' })).toEqual([200, DATA]);
  for (const body of [{ documentId: `sha256:${sha256(QUERY)}` }, { documentId: sha256(QUERY) }, byHash(QUERY)])
    expect(await ask(other, body)).toEqual([200, DATA]);
  const got = await other('GET', '/graphql?documentId=product', { headers: { 'graphql-require-preflight': '1' } });
  expect([got.status, got.body]).toEqual([200, DATA]);
  // It was asked for in vain before.
  await expect.poll(() => ask(anybody, { documentId: 'product' })).toEqual([200, DATA]);
});

test('where it is enforced nothing else is executed, whatever the white space', async () => {
  const { anybody, publish } = await startShop({ ROLLCALL_TRUSTED_DOCUMENTS: 'enforce' });
  await publish({ product: QUERY });
  expect(await ask(anybody, { query: QUERY })).toEqual([200, DATA]);
  expect(await ask(anybody, { query: '# ours\nquery Q\n{ product, }' })).toEqual([200, DATA]);
  expect(await ask(anybody, { query: QUERY, ...byHash(QUERY) })).toEqual([200, DATA]);
  expect(await ask(anybody, byHash(QUERY))).toEqual([200, DATA]);
  for (const query of ['{ product }', 'query Q { product product }', '{ __schema { description } }', '{'])
    for (const body of [{ query }, { query, ...byHash(query) }])
      expect(await ask(anybody, body)).toEqual(refused('DOCUMENT_NOT_TRUSTED'));
});

test('where it is logged others are executed, and told of once by their hash', async () => {
  const { anybody, publish, service } = await startShop({ ROLLCALL_TRUSTED_DOCUMENTS: 'log' });
  await publish({ product: QUERY });
  const secret = 'query { product } # 0821234567';
  for (const query of [QUERY, secret, secret]) expect(await ask(anybody, { query })).toEqual([200, DATA]);
  const lines = (await readFile(service.logFile, 'utf8')).split('\n').filter((line) => line.includes('not trusted'));
  expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining({ sha256: sha256(secret) })]);
  expect(lines.join('\n')).not.toContain('0821234567');
  const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
  expect(metrics).toMatch(/^rollcall_federation_untrusted_documents_total(\{.*\})? 2$/m);
});

test('documents are published all or none, and an id stays with its document', async () => {
  const { call, publish } = await startShop();
  expect((await publish({ a: '{ product }' })).body).toMatchObject({ published: 1, known: 0 });
  expect((await publish({ a: '{product}', b: QUERY })).body).toMatchObject({ published: 1, known: 1 });
  const conflict = await publish({ a: '{ users { id } }', c: QUERY }, 'app');
  expect([conflict.status, conflict.body]).toEqual([
    409,
    { error: { code: 'DOCUMENT_CONFLICT', message: expect.any(String), details: { ids: ['a'] } } },
  ]);
  expect(faultPaths(await publish({ d: '{', e: '{ product }', f: 'type A { b: Int }' }))).toEqual([
    'body/documents/d',
    'body/documents/f',
  ]);
  for (const documents of [{}, { 'a b': QUERY }, { a: '' }, { a: ' '.repeat(15_001) }])
    expect((await publish(documents)).status).toBe(400);
  expect((await publish({ a: QUERY }, 'a b')).status).toBe(400);
  const { body } = await call('GET', '/documents');
  expect(body).toMatchObject({ total: 2, documents: [{ id: 'b', client: 'web', document: QUERY }, { id: 'a' }] });
});

test('documents are listed and removed by client', async () => {
  const { call, publish } = await startShop();
  await publish({ a: '{ product }', b: QUERY });
  await publish({ a: '{ product }' }, 'app');
  const listed = async (query = '') => {
    const { body } = await call('GET', `/documents${query}`);
    return (body as { documents: { id: string; client: string }[] }).documents
      .map(({ client, id }) => `${client} ${id}`)
      .toSorted();
  };
  expect(await listed()).toEqual(['app a', 'web a', 'web b']);
  expect(await listed('?client=app&limit=1')).toEqual(['app a']);
  expect((await call('DELETE', '/documents/web/a')).status).toBe(204);
  expect((await call('DELETE', '/documents/web/a')).status).toBe(404);
  expect(await listed()).toEqual(['app a', 'web b']);
  expect((await call('DELETE', '/documents/app')).status).toBe(204);
  expect(await listed()).toEqual(['web b']);
});

test('publishing and reading need their scopes', async () => {
  const { callerOf, anybody } = await startFederationAndCallers();
  const body = { client: 'web', documents: { a: QUERY } };
  const [reader, writer] = [await callerOf('schemas:read'), await callerOf('schemas:write')];
  expect((await anybody('POST', '/documents', { body })).status).toBe(401);
  expect((await reader('POST', '/documents', { body })).status).toBe(403);
  expect((await writer('POST', '/documents', { body })).status).toBe(200);
  expect((await writer('GET', '/documents')).status).toBe(403);
  expect((await reader('GET', '/documents')).status).toBe(200);
  expect((await reader('DELETE', '/documents/web')).status).toBe(403);
});

async function startFederationAndCallers() {
  const federation = await startFederation();
  return { ...federation, anybody: await federation.callerOf(undefined) };
}

test('while the database is away what was asked for before is executed, and nothing else where it is enforced', async () => {
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const relay = await startTcpRelay(Number(new URL(inject('postgresUrl')).port || 5432));
  const url = new URL(database.url);
  url.host = `127.0.0.1:${relay.port}`;
  const settings = { ROLLCALL_DATABASE_URL: url.href, ROLLCALL_TRUSTED_DOCUMENTS: 'enforce' };
  const { anybody, call, publish } = await startShop(settings);
  await publish({ product: QUERY });
  for (const body of [{ documentId: 'product' }, { query: QUERY }])
    expect(await ask(anybody, body)).toEqual([200, DATA]);
  await relay[Symbol.asyncDispose]();
  await expect.poll(async () => (await call('GET', '/health')).body).toMatchObject({ database: 'disconnected' });
  for (const body of [{ documentId: 'product' }, { query: QUERY }])
    expect(await ask(anybody, body)).toEqual([200, DATA]);
  for (const body of [{ documentId: 'other' }, { query: '{ product }' }]) {
    const answer = await anybody('POST', '/graphql', { body });
    expect([answer.status, codeOf(answer)]).toEqual([503, 'UNAVAILABLE']);
  }
});
