import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { freePort } from '../client/contract-server.ts';
import { faultPaths } from '../communication/communication-service.ts';
import { codeOf, startFederation, statusesOf } from './federation-service.ts';
import { clashing, products, reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const introspected = (serviceUrl: string, name: string) =>
  ['POST', '/schemas/introspect', { body: { serviceUrl, name } }] as const;

describe('a service that somebody tells of', () => {
  test('is in the graph once the answer is there', async () => {
    const { call, query } = await startFederation();
    const { url } = await startSubgraph(users);
    const answer = await call(...introspected(url, 'users'));
    expect(answer).toMatchObject({ status: 200 });
    expect(answer.body).toEqual({
      service: 'users',
      url,
      schema: users.sdl,
      lastUpdated: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      status: 'composed',
      version: null,
      composition: { status: 'composed', errors: [], hints: [] },
    });
    expect(await query('{ users { name } }')).toEqual({ data: { users: [{ name: 'Anna' }, { name: 'Ben' }] } });
    const { composition: _composition, ...record } = answer.body ?? {};
    expect((await call('GET', '/schemas')).body).toEqual({ schemas: [record] });
  });

  test('is named by its URL, and again by that name', async () => {
    const { call } = await startFederation();
    const { url } = await startSubgraph(users, { path: '/users/graphql' });
    for (let times = 0; times < 2; times += 1) {
      const { body } = await call('POST', '/schemas/introspect', { body: { serviceUrl: url } });
      expect(body).toMatchObject({ service: 'users' });
    }
    await call(...introspected(url, 'people'));
    await call('DELETE', '/schemas/users');
    expect((await call('POST', '/schemas/introspect', { body: { serviceUrl: url } })).body).toMatchObject({
      service: 'people',
    });
  });

  test('need not know of Federation', async () => {
    const { call, query } = await startFederation();
    const { url } = await startSubgraph(
      { sdl: 'type Query { time: String }', resolvers: { Query: { time: () => 'late' } } },
      { isFederated: false },
    );
    expect((await call(...introspected(url, 'clock'))).body).toMatchObject({
      schema: expect.stringMatching(/^type Query \{\n {2}time: String\n\}/),
    });
    expect(await query('{ time }')).toEqual({ data: { time: 'late' } });
  });
});

describe('services that come one by one', () => {
  test('are held until they compose, and in the graph then', async () => {
    const { call, query } = await startFederation();
    const [ofReviews, ofUsers, ofClashing, ofProducts] = await Promise.all(
      [reviews, users, clashing, products].map((source) => startSubgraph(source)),
    );
    const held = await call(...introspected(ofReviews?.url ?? '', 'reviews'));
    expect(held.body).toMatchObject({
      status: 'held',
      composition: { status: 'held', errors: [{ code: expect.any(String) }] },
    });
    expect(codeOf(await call('POST', '/graphql', { body: { query: '{ users { name } }' } }))).toBe('NO_GRAPH');
    await call(...introspected(ofUsers?.url ?? '', 'users'));
    expect(await statusesOf(call)).toEqual({ reviews: 'composed', users: 'composed' });
    const asked = '{ users { name reviews } }';
    const answer = {
      data: {
        users: [
          { name: 'Anna', reviews: ['review of 1'] },
          { name: 'Ben', reviews: ['review of 2'] },
        ],
      },
    };
    expect(await query(asked)).toEqual(answer);
    await call(...introspected(ofProducts?.url ?? '', 'products'));
    await call(...introspected(ofClashing?.url ?? '', 'clashing'));
    expect(await statusesOf(call)).toEqual({
      reviews: 'composed',
      users: 'composed',
      products: 'composed',
      clashing: 'held',
    });
    expect(await query(asked)).toEqual(answer);
    ofClashing?.become({ sdl: 'type Query { other: Int }' });
    const refreshed = await call('POST', '/schemas/refresh');
    expect(refreshed.body).toMatchObject({ refreshed: ['clashing', 'products', 'reviews', 'users'], failed: [] });
    expect(await statusesOf(call)).toMatchObject({ clashing: 'composed' });
  });

  test('go on with what was good of them as they become what does not compose', async () => {
    const { call, query } = await startFederation();
    const server = await startSubgraph(products);
    await call(...introspected(server.url, 'products'));
    server.claim('type Query { product: Missing }');
    const { body } = await call('POST', '/schemas/refresh');
    expect(body).toMatchObject({
      refreshed: ['products'],
      schemas: [{ status: 'held', error: { message: expect.any(String) } }],
    });
    expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  });
});

describe('a service that does not answer as GraphQL', () => {
  const answers: Readonly<Record<string, (response: ServerResponse) => void>> = {
    'does not answer': () => undefined,
    'closes the connection': (response) => void response.destroy(),
    'answers with a page': (response) => void response.end('<html>'),
    'answers with bytes': (response) => void response.end(Buffer.alloc(100, 0xff)),
    'answers with a list': (response) => void response.end('[]'),
    'answers with an error alone': (response) => void response.end('{"errors":[{"message":"no"}]}'),
    'answers without end': (response) => {
      const more = () =>
        void response.write('{"data":'.repeat(10_000), (error) => (error ? undefined : setImmediate(more)));
      more();
    },
    'has 10 MB of SDL': (response) =>
      void response.end(JSON.stringify({ data: { _service: { sdl: '#'.repeat(1e7) } } })),
    'has more than 1 MiB of SDL': (response) =>
      void response.end(JSON.stringify({ data: { _service: { sdl: `${users.sdl}${'#'.repeat(2 ** 20)}` } } })),
  };

  test.each(Object.entries(answers))('%s: 502, and nothing is known of it', async (_name, misbehaviour) => {
    const { call } = await startFederation();
    const server = await startSubgraph(users);
    server.misbehave(misbehaviour);
    const answer = await call(...introspected(server.url, 'users'));
    expect([answer.status, codeOf(answer)]).toEqual([502, 'INTROSPECTION_FAILED']);
    expect(await statusesOf(call)).toEqual({});
  });

  test('is not there: 502', async () => {
    const { call } = await startFederation();
    const answer = await call(...introspected(`http://127.0.0.1:${await freePort()}/graphql`, 'users'));
    expect([answer.status, codeOf(answer)]).toEqual([502, 'INTROSPECTION_FAILED']);
  });

  test('keeps its place in the graph when it did before', async () => {
    const { call, query } = await startFederation();
    const server = await startSubgraph(products);
    await call(...introspected(server.url, 'products'));
    server.misbehave((response) => void response.end('nonsense'));
    expect((await call('POST', '/schemas/refresh')).body).toMatchObject({
      refreshed: [],
      failed: [{ service: 'products', code: 'INTROSPECTION_FAILED', message: expect.any(String) }],
      schemas: [{ status: 'unreachable' }],
    });
    expect((await call('GET', '/health')).body).toMatchObject({
      status: 'healthy',
      services: { products: 'unreachable' },
    });
    server.misbehave(undefined);
    expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  });
});

test.each([
  ['nested without end', `type Query { a: ${'['.repeat(500_000)} }`],
  ['of one token', '"'.repeat(1_000_000)],
  [
    'of 20,000 types',
    `type Query { a: Int } ${Array.from({ length: 20_000 }, (_, n) => `type T${n} { a: T${n}! }`).join(' ')} type Query { b: Int }`,
  ],
])('a hostile SDL %s is held, and others go on', async (_name, sdl) => {
  const { call, query } = await startFederation();
  const [good, hostile] = [await startSubgraph(products), await startSubgraph(users)];
  await call(...introspected(good.url, 'products'));
  hostile.misbehave((response) => void response.end(JSON.stringify({ data: { _service: { sdl } } })));
  const answer = await call(...introspected(hostile.url, 'hostile'));
  expect(answer.body).toMatchObject({ status: 'held', composition: { status: 'held' } });
  expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  expect((await call('DELETE', '/schemas/hostile')).status).toBe(204);
});

test('a service can be removed at any time, once', async () => {
  const { call, query } = await startFederation();
  for (const [name, source] of Object.entries({ users, reviews })) {
    await call(...introspected((await startSubgraph(source)).url, name));
  }
  // What reviews extend is gone, so the graph stays as it was.
  expect((await call('DELETE', '/schemas/users')).status).toBe(204);
  expect(await statusesOf(call)).toEqual({ reviews: 'held' });
  expect(await query('{ users { name } }')).toEqual({ data: { users: [{ name: 'Anna' }, { name: 'Ben' }] } });
  expect(codeOf(await call('DELETE', '/schemas/users'))).toBe('NOT_FOUND');
  expect((await call('DELETE', '/schemas/reviews')).status).toBe(204);
  expect(codeOf(await call('POST', '/graphql', { body: { query: '{ users { name } }' } }))).toBe('NO_GRAPH');
});

test('the graph in force can be read, once for each that is another', async () => {
  const { call } = await startFederation();
  expect(codeOf(await call('GET', '/schemas/supergraph'))).toBe('NOT_FOUND');
  await call(...introspected((await startSubgraph(users)).url, 'users'));
  const first = await call('GET', '/schemas/supergraph');
  expect(first.text).toContain('type User');
  const etag = first.headers.get('etag') ?? '';
  const again = () => call('GET', '/schemas/supergraph', { headers: { 'if-none-match': `"other", ${etag}` } });
  expect((await again()).status).toBe(304);
  await call(...introspected((await startSubgraph(products)).url, 'products'));
  expect((await again()).status).toBe(200);
  const { body } = await call('GET', '/schemas/history', {});
  expect(body).toMatchObject({
    total: 2,
    generations: [
      { generation: 2, subgraphs: { users: expect.any(String), products: expect.any(String) } },
      { generation: 1 },
    ],
  });
  expect((await call('GET', '/schemas/history?limit=1&offset=1')).body).toMatchObject({
    generations: [{ generation: 1 }],
  });
});

test('a check says what would be wrong, and changes nothing', async () => {
  const { call } = await startFederation();
  await call(...introspected((await startSubgraph(products)).url, 'products'));
  const check = (service: string, schema: string) => call('POST', '/schemas/check', { body: { service, schema } });
  expect((await check('clashing', clashing.sdl)).body).toMatchObject({
    composition: {
      status: 'held',
      errors: expect.arrayContaining([{ code: 'FIELD_TYPE_MISMATCH', message: expect.any(String) }]),
    },
  });
  expect((await check('products', clashing.sdl)).body).toMatchObject({
    composition: { status: 'composed', errors: [] },
  });
  expect((await check('users', 'type Query {')).body).toMatchObject({
    composition: { errors: [{ code: 'INVALID_GRAPHQL' }] },
  });
  expect(await statusesOf(call)).toEqual({ products: 'composed' });
});

describe('a request', () => {
  test('hears of all that is wrong with it at once', async () => {
    const { call } = await startFederation();
    const strange = await call('POST', '/schemas/introspect', { body: { name: 7, more: 1 } });
    expect(faultPaths(strange)).toEqual(['body/more', 'body/name', 'body/serviceUrl']);
    const wrong = await call(...introspected('ftp://users', 'a\u0000b'));
    expect([wrong.status, faultPaths(wrong)]).toEqual([400, ['body/name', 'body/serviceUrl']]);
    expect(faultPaths(await call('POST', '/schemas/check', { body: { service: 'a/b', schema: 'x' } }))).toEqual([
      'body/service',
    ]);
    expect(faultPaths(await call('GET', '/schemas/history?limit=0'))).toEqual(['query/limit']);
  });

  test('needs the scope of what it asks for', async () => {
    const { callerOf } = await startFederation();
    const [nobody, reader, writer] = await Promise.all([undefined, 'schemas:read', 'schemas:write'].map(callerOf));
    expect(codeOf((await nobody?.('GET', '/schemas')) ?? { status: 0, headers: new Headers(), body: undefined })).toBe(
      'UNAUTHENTICATED',
    );
    expect((await reader?.('GET', '/schemas'))?.status).toBe(200);
    expect((await reader?.('POST', '/schemas/refresh'))?.status).toBe(403);
    expect((await writer?.('POST', '/schemas/refresh'))?.status).toBe(200);
    expect((await writer?.('GET', '/schemas/history'))?.status).toBe(403);
    expect((await nobody?.('GET', '/health'))?.status).toBe(200);
  });

  test('may show an access token of the gateway instead', async () => {
    const { callerOf, tokenOf } = await startFederation();
    const nobody = await callerOf(undefined);
    const list = async (scope: string) =>
      nobody('GET', '/schemas', { headers: { authorization: `Bearer ${await tokenOf(scope)}` } });
    expect((await list('schemas:read')).status).toBe(200);
    expect(codeOf(await list('schemas:write'))).toBe('FORBIDDEN');
    expect((await nobody('GET', '/schemas', { headers: { authorization: 'Bearer forged' } })).status).toBe(401);
  });

  test('for a URL on this machine is refused where that is not allowed', async () => {
    const { call } = await startFederation({ ROLLCALL_SERVICE_ADDRESSES: 'cluster' });
    const { url, asked, reads } = await startSubgraph(users);
    for (const each of [
      url,
      url.replace('127.0.0.1', 'localhost'),
      'http://169.254.169.254/latest/meta-data',
      'http://[::1]:9/graphql',
    ]) {
      const answer = await call(...introspected(each, 'users'));
      expect([answer.status, codeOf(answer)]).toEqual([422, 'URL_NOT_ALLOWED']);
    }
    expect([asked, reads()]).toEqual([[], 0]);
  });
});

test('its document names every route', async () => {
  const { call } = await startFederation();
  const { body } = await call('GET', '/openapi.json');
  expect(Object.keys((body as { paths: object }).paths).sort()).toEqual([
    '/documents',
    '/documents/{client}',
    '/documents/{client}/{id}',
    '/graphql',
    '/graphql/{contract}',
    '/health',
    '/schemas',
    '/schemas/check',
    '/schemas/explain',
    '/schemas/history',
    '/schemas/introspect',
    '/schemas/refresh',
    '/schemas/supergraph',
    '/schemas/supergraph/pin',
    '/schemas/usage',
    '/schemas/{service}',
  ]);
});
