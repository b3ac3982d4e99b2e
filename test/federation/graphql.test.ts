import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { faultPaths } from '../communication/communication-service.ts';
import { codeOf, type Federation, startFederation } from './federation-service.ts';
import { products, reviews, users } from './shop.ts';
import { type SubgraphServer, startSubgraph } from './subgraph-server.ts';

const RESPONSE_TYPE = 'application/graphql-response+json';

interface Shop extends Federation {
  readonly servers: Readonly<Record<'users' | 'reviews' | 'products', SubgraphServer>>;
}

async function startShop(settings: Readonly<Record<string, string>> = {}): Promise<Shop> {
  const federation = await startFederation(settings);
  const servers = {
    users: await startSubgraph(users),
    reviews: await startSubgraph(reviews),
    products: await startSubgraph(products),
  };
  for (const [name, { url: serviceUrl }] of Object.entries(servers))
    await federation.call('POST', '/schemas/introspect', { body: { serviceUrl, name } });
  return { ...federation, servers };
}

const asGet = (query: string, more: Readonly<Record<string, string>> = {}) =>
  `/graphql?${new URLSearchParams({ query, ...more }).toString()}`;
const PREFLIGHT = { 'graphql-require-preflight': '1' };

describe('GraphQL over HTTP', () => {
  test('takes operations by POST and queries by GET', async () => {
    const { query, callerOf } = await startShop();
    const anybody = await callerOf(undefined);
    const sell = 'query Q { product } mutation M($sku: ID!) { sell(sku: $sku) }';
    const body = { query: sell, operationName: 'M', variables: { sku: '7' } };
    expect((await anybody('POST', '/graphql', { body })).body).toEqual({ data: { sell: 'sold 7' } });
    const got = await anybody('GET', asGet(sell, { operationName: 'Q', variables: '{"sku":"7"}' }), {
      headers: PREFLIGHT,
    });
    expect(got.body).toEqual({ data: { product: 'table' } });
    expect(await query('{ __typename }')).toEqual({ data: { __typename: 'Query' } });
  });

  test('takes no mutation by GET, and no GET that a page of another origin could send', async () => {
    const { callerOf } = await startShop();
    const anybody = await callerOf(undefined);
    const mutation = await anybody('GET', asGet('mutation { sell(sku: 1) }'), { headers: PREFLIGHT });
    expect([mutation.status, codeOf(mutation), mutation.headers.get('allow')]).toEqual([
      405,
      'MUTATION_BY_GET',
      'POST',
    ]);
    const simple = await anybody('GET', asGet('{ product }'));
    expect([simple.status, codeOf(simple)]).toEqual([400, 'CSRF_GUARD']);
    const form = await anybody('POST', '/graphql', {
      body: { query: '{ product }' },
      headers: { 'content-type': 'text/plain' },
    });
    expect(form.status).toBe(415);
  });

  test.each([
    ['application/json', 'application/json; charset=utf-8', 200],
    [RESPONSE_TYPE, `${RESPONSE_TYPE}; charset=utf-8`, 400],
  ])('answers who accepts %s with %s, and a document that is wrong with %d', async (accept, type, status) => {
    const { callerOf } = await startShop();
    const anybody = await callerOf(undefined);
    const ask = (query: string) => anybody('POST', '/graphql', { body: { query }, headers: { accept } });
    const good = await ask('{ product }');
    expect([good.status, good.headers.get('content-type'), good.body]).toEqual([
      200,
      type,
      { data: { product: 'table' } },
    ]);
    for (const query of ['{', '{ nothing }', 'query A { product } query B { product }']) {
      const wrong = await ask(query);
      expect([wrong.status, wrong.headers.get('content-type')]).toEqual([status, type]);
      expect(wrong.body).toEqual({ errors: [expect.objectContaining({ message: expect.any(String) })] });
    }
  });

  test('refuses what is no request of GraphQL', async () => {
    const { callerOf, servers } = await startShop();
    const anybody = await callerOf(undefined);
    for (const body of [
      {},
      { query: 7 },
      { query: '{ product }', variables: [] },
      { query: '' },
      { query: ' '.repeat(15_001) },
    ])
      expect(codeOf(await anybody('POST', '/graphql', { body }))).toBe('INVALID_REQUEST');
    expect(codeOf(await anybody('GET', asGet('{ product }', { variables: '[]' }), { headers: PREFLIGHT }))).toBe(
      'INVALID_REQUEST',
    );
    expect(servers.products.asked).toEqual([]);
  });
});

test('what a schema has for some alone is there for callers with the scope', async () => {
  const { callerOf, call } = await startFederation();
  const link = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.6", import: ["@requiresScopes"])';
  const server = await startSubgraph({
    sdl: `${link} type Query { open: Int secret: Int @requiresScopes(scopes: [["payments:admin"]]) }`,
    resolvers: { Query: { open: () => 1, secret: () => 2 } },
  });
  await call('POST', '/schemas/introspect', { body: { serviceUrl: server.url, name: 'secrets' } });
  const errors = [expect.objectContaining({ path: ['secret'], extensions: { code: 'UNAUTHORIZED_FIELD_OR_TYPE' } })];
  const body = { query: '{ open secret }' };
  for (const scope of [undefined, 'payments:read', 'payments:admin', 'payments:read']) {
    const caller = await callerOf(scope);
    const answer = await caller('POST', '/graphql', { body });
    const isThere = scope === 'payments:admin';
    expect(answer.body).toEqual(
      isThere ? { data: { open: 1, secret: 2 } } : { data: { open: 1, secret: null }, errors },
    );
  }
  const anybody = await callerOf(undefined);
  const headers = { accept: RESPONSE_TYPE };
  const refused = await anybody('POST', '/graphql', { body: { query: '{ secret }' }, headers });
  expect([refused.status, refused.body]).toEqual([200, { data: null, errors }]);
  expect(server.asked).toHaveLength(4);
});

describe('several operations in a request', () => {
  test('are refused, unless that is allowed', async () => {
    const { callerOf, servers } = await startShop();
    const anybody = await callerOf(undefined);
    for (const body of [[{ query: '{ product }' }], Array.from({ length: 10 }, () => ({ query: '{ product }' }))]) {
      const answer = await anybody('POST', '/graphql', { body });
      expect([answer.status, codeOf(answer)]).toEqual([400, 'BATCH_LIMIT_EXCEEDED']);
    }
    expect(servers.products.asked).toEqual([]);
  });

  test('are answered in their order, each by itself', async () => {
    const { callerOf } = await startShop({ ROLLCALL_BATCH_SIZE: '3' });
    const anybody = await callerOf(undefined);
    const ask = (body: unknown) => anybody('POST', '/graphql', { body, headers: { accept: RESPONSE_TYPE } });
    const [one, wrong, sold] = [
      { query: '{ product }' },
      { query: '{ nothing }' },
      { query: 'mutation ($sku: ID!) { sell(sku: $sku) }', variables: { sku: '7' } },
    ];
    const answer = await ask([one, wrong, sold]);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'application/json; charset=utf-8']);
    expect(answer.body).toEqual([
      { data: { product: 'table' } },
      { errors: [expect.objectContaining({ message: expect.stringContaining('nothing') })] },
      { data: { sell: 'sold 7' } },
    ]);
    expect((await ask([one])).body).toEqual([{ data: { product: 'table' } }]);
    const tooMany = await ask([one, one, one, one]);
    expect([tooMany.status, tooMany.body]).toEqual([
      400,
      { error: { code: 'BATCH_LIMIT_EXCEEDED', message: expect.any(String), details: { limit: 3 } } },
    ]);
  });

  test('have the faults of each told where it is', async () => {
    const { callerOf } = await startShop({ ROLLCALL_BATCH_SIZE: '10' });
    const anybody = await callerOf(undefined);
    for (const [body, path] of [
      [[{ query: '{ product }' }, { query: 7 }], 'body/1/query'],
      [[{ query: '{ product }' }, {}], 'body/1/query'],
      [{ query: 7 }, 'body/query'],
      [{ query: '{ product }', variables: [] }, 'body/variables'],
      [{ more: 1, query: '{ product }' }, 'body/more'],
      [[], 'body'],
      [Array.from({ length: 11 }, () => ({ query: '{ product }' })), 'body'],
    ] as const) {
      const answer = await anybody('POST', '/graphql', { body });
      expect([answer.status, faultPaths(answer)]).toEqual([400, [path]]);
    }
  });
});

describe('a subgraph', () => {
  test('gets the language, and nothing that its caller shows', async () => {
    const { callerOf, servers } = await startShop();
    const [anna, anybody] = [await callerOf('payments:read'), await callerOf(undefined)];
    const headers = { cookie: 'a=1', 'accept-language': 'de', 'x-rollcall-subject': 'anna' };
    for (const call of [anna, anybody]) await call('POST', '/graphql', { body: { query: '{ product }' }, headers });
    for (const asked of servers.products.asked) {
      expect(asked).toMatchObject({ 'accept-language': 'de' });
      for (const name of ['x-rollcall-identity', 'x-rollcall-subject', 'cookie'])
        expect(asked).not.toHaveProperty(name);
    }
    const forged = await anybody('POST', '/graphql', {
      body: { query: '{ product }' },
      headers: { 'x-rollcall-identity': 'forged' },
    });
    expect([forged.status, servers.products.asked.length]).toEqual([401, 2]);
  });

  test('that hangs, or answers what is none, costs its own fields alone', async () => {
    const { query, servers } = await startShop({
      ROLLCALL_SUBGRAPH_TIMEOUT_SECONDS: '5',
      ROLLCALL_SUBGRAPH_ANSWER_BYTES: '10000',
    });
    for (const answer of ['', '<html>', '[]', '{', 'x'.repeat(20_000), undefined]) {
      servers.products.misbehave((response) => (answer === undefined ? undefined : response.end(answer)));
      const { data, errors = [] } = await query('{ product users { name } }');
      expect(data).toEqual({ product: null, users: [{ name: 'Anna' }, { name: 'Ben' }] });
      expect(errors).toEqual([
        {
          message: expect.not.stringContaining('127.0.0.1'),
          path: ['product'],
          extensions: { code: 'SUBGRAPH_UNAVAILABLE', service: 'products' },
        },
      ]);
    }
  });

  test.each([
    ['masked', 'The service could not answer this field'],
    ['shown', 'anna@example.org is unknown'],
  ])('has the words of its errors %s', async (setting, message) => {
    const { query, servers } = await startShop({ ROLLCALL_SUBGRAPH_ERRORS: setting });
    const error = { message: 'anna@example.org is unknown', path: ['product'], extensions: { code: 'GONE' } };
    servers.products.misbehave(
      (response) => void response.end(JSON.stringify({ data: { product: null }, errors: [error] })),
    );
    expect((await query('{ product }')).errors).toEqual([
      { message, path: ['product'], extensions: { code: 'GONE', service: 'products' } },
    ]);
  });
});

test('no query fails while the graph changes', async () => {
  const { query, call, servers } = await startShop();
  const answers: unknown[] = [];
  const over = new AbortController();
  const asking = Array.from({ length: 4 }, async () => {
    while (!over.signal.aborted) answers.push(await query('{ users { name reviews } }'));
  });
  for (let times = 0; times < 15; times += 1) {
    const { sdl, resolvers = {} } = products;
    servers.products.become({ sdl: `${sdl} type Added${times} { id: ID }`, resolvers });
    expect((await call('POST', '/schemas/refresh')).body).toMatchObject({ failed: [] });
    await pause(1);
  }
  over.abort();
  await Promise.all(asking);
  const good = {
    data: {
      users: [
        { name: 'Anna', reviews: ['review of 1'] },
        { name: 'Ben', reviews: ['review of 2'] },
      ],
    },
  };
  expect(answers.filter((answer) => JSON.stringify(answer) !== JSON.stringify(good))).toEqual([]);
  expect(answers.length).toBeGreaterThan(0);
  expect((await call('GET', '/schemas/history')).body).toMatchObject({ total: 18 });
});
