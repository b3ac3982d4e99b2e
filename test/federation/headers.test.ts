import { describe, expect, test } from 'vitest';
import { type Federation, startFederation } from './federation-service.ts';
import { graphqlClient, listen } from './graphql-clients.ts';
import { startLiveSubgraph } from './live-subgraph.ts';
import { products, reviews, users } from './shop.ts';
import { type SubgraphServer, startSubgraph } from './subgraph-server.ts';

const WAIT = { timeout: 30_000 };

async function startWith(rules: object, sources = { users, reviews, products }) {
  const federation = await startFederation({ ROLLCALL_HEADER_RULES: JSON.stringify(rules) });
  const servers: Record<keyof typeof sources, SubgraphServer> = {
    users: await startSubgraph(sources.users),
    reviews: await startSubgraph(sources.reviews),
    products: await startSubgraph(sources.products),
  };
  for (const [name, { url: serviceUrl }] of Object.entries(servers))
    await federation.call('POST', '/schemas/introspect', { body: { serviceUrl, name } });
  const anybody = await federation.callerOf(undefined);
  const ask = (query: string, headers: Readonly<Record<string, string>> = {}) =>
    anybody('POST', '/graphql', { body: { query }, headers });
  return { federation, servers, ask };
}

const lastOf = ({ asked }: SubgraphServer) => asked.at(-1);

async function startLive(rules: object) {
  const federation = await startFederation({ ROLLCALL_HEADER_RULES: JSON.stringify(rules) });
  const live = await startLiveSubgraph('WebSocket');
  await federation.call('POST', '/schemas/introspect', { body: { name: 'live', serviceUrl: live.url } });
  return { federation, live };
}
const subscribe = async (transport: 'WebSocket' | 'events', { service, tokenOf }: Federation, tenant: string) => {
  const fields = { 'X-Tenant': tenant, cookie: 'a=1' };
  const client = graphqlClient(transport, { url: service.url, token: await tokenOf('a'), fields });
  return listen(client, 'subscription { joined { name } }');
};

const answering =
  (fields: Readonly<Record<string, string | string[]>>, data: object) =>
  (response: Parameters<Parameters<SubgraphServer['misbehave']>[0] & object>[0]) => {
    for (const [name, value] of Object.entries(fields)) response.setHeader(name, value);
    response.end(JSON.stringify({ data }));
  };

const of = (name: string) => ({
  'x-names': name,
  'x-first': name,
  'x-last': name,
  'set-cookie': ['a=1'],
  etag: '"1"',
});

const keepFor = (seconds: number, data: object) => answering({ 'cache-control': `max-age=${seconds}` }, data);

describe('header fields of requests', () => {
  test('reach the services that rules name, and none that shows who calls', async () => {
    const rules = {
      all: { request: [{ pass: 'x-tenant' }] },
      services: { reviews: { request: [{ pass: 'x-tenant', as: 'tenant' }, { remove: 'x-tenant' }, { pass: 'x-*' }] } },
    };
    const { ask, servers } = await startWith(rules);
    const headers = { 'x-tenant': 'acme', 'x-rollcall-subject': 'root', authorization: 'Bearer a', 'x-till': '7' };
    const answer = await ask('{ users { reviews } }', headers);
    expect(answer.status).toBe(401);
    const { authorization: _authorization, ...unknown } = headers;
    expect((await ask('{ users { reviews } }', unknown)).body).toHaveProperty('data');
    expect(lastOf(servers.users)).toMatchObject({ 'x-tenant': 'acme' });
    expect(lastOf(servers.users)).not.toHaveProperty('x-till');
    expect(lastOf(servers.reviews)).toMatchObject({ tenant: 'acme', 'x-tenant': 'acme', 'x-till': '7' });
    for (const server of [servers.users, servers.reviews]) {
      expect(lastOf(server)).not.toHaveProperty('x-rollcall-subject');
      expect(lastOf(server)).not.toHaveProperty('authorization');
    }
  });

  test('part queries that are equal otherwise', async () => {
    const { ask, servers } = await startWith({ all: { request: [{ pass: 'x-tenant' }] } });
    const waiting: (() => void)[] = [];
    servers.products.misbehave((response) => {
      const tenant = response.req.headers['x-tenant'];
      waiting.push(() => response.end(JSON.stringify({ data: { product: tenant } })));
    });
    const asked = ['a', 'b', 'a'].map((tenant) => ask('{ product }', { 'x-tenant': tenant, 'x-other': tenant }));
    // The third may have joined the first, or come later.
    await expect.poll(() => waiting.length, WAIT).toBeGreaterThanOrEqual(2);
    servers.products.misbehave((response) =>
      response.end(JSON.stringify({ data: { product: response.req.headers['x-tenant'] } })),
    );
    for (const answer of waiting) answer();
    const bodies = (await Promise.all(asked)).map(({ body }) => body);
    expect(bodies).toEqual(['a', 'b', 'a'].map((product) => ({ data: { product } })));
  });
});

describe('header fields of subscriptions', () => {
  test.each(['WebSocket', 'events'] as const)(
    'go on to the service by %s, and part those of one caller',
    async (transport) => {
      const { federation, live } = await startLive({ services: { live: { request: [{ pass: 'x-tenant' }] } } });
      const heard = [
        await subscribe(transport, federation, 'a'),
        await subscribe(transport, federation, 'b'),
        await subscribe(transport, federation, 'a'),
      ];
      await expect
        .poll(() => {
          // Who comes to a subscription that is there is not seen at the service, and may come after an event.
          live.joins({ id: '1', name: 'Ada' });
          return heard.every(({ answers }) => answers.length > 0);
        }, WAIT)
        .toBe(true);
      expect(live.listeners()).toBe(2);
      expect(live.asked.map((headers) => headers['x-tenant'])).toEqual(expect.arrayContaining(['a', 'b']));
      expect(live.asked.map(({ cookie }) => cookie)).toEqual([undefined, undefined]);
    },
  );
});

describe('header fields of answers', () => {
  test('reach the client as rules say, merged', async () => {
    const rules = {
      all: {
        response: [{ pass: 'x-names', merge: 'append' }, { pass: 'x-first', merge: 'first' }, { pass: 'x-last' }],
      },
    };
    const { ask, servers } = await startWith(rules);
    servers.users.misbehave(answering(of('users'), { users: [{ __typename: 'User', id: '1' }] }));
    servers.reviews.misbehave(answering(of('reviews'), { _entities: [{ reviews: [] }] }));
    const { headers, body } = await ask('{ users { reviews } }');
    expect(body).toEqual({ data: { users: [{ reviews: [] }] } });
    expect(headers.get('x-names')).toBe('users, reviews');
    expect(headers.get('x-first')).toBe('users');
    expect(headers.get('x-last')).toBe('reviews');
    expect([headers.get('set-cookie'), headers.get('etag'), headers.get('cache-control')]).toEqual([null, null, null]);
  });

  test('say how long the answer may be kept, unless there is an error', async () => {
    const { ask, servers } = await startWith({ all: { response: [{ pass: 'cache-control' }] } });
    servers.users.misbehave(keepFor(60, { users: [{ __typename: 'User', id: '1', name: 'Anna' }] }));
    servers.reviews.misbehave(keepFor(20, { _entities: [{ reviews: [] }] }));
    const kept = await ask('{ users { reviews } }');
    expect(kept.headers.get('cache-control')).toBe('private, max-age=20');
    expect(kept.headers.get('vary')).toContain('authorization');
    expect((await ask('{ users { name } }')).headers.get('cache-control')).toBe('private, max-age=60');
    servers.reviews.misbehave(keepFor(20, { _entities: [] }));
    expect((await ask('{ users { reviews } }')).headers.get('cache-control')).toBe('no-store');
    expect((await ask('{ users { name } product }')).headers.get('cache-control')).toBe('no-store');
  });
});

test.each([
  ['nonsense', '/'],
  ['{"all": {"request": [{"pass": "Cookie"}]}}', 'all/request/0 has cookie, which is never passed on'],
])('rules that are %s are refused at the start', async (setting, why) => {
  await expect(startFederation({ ROLLCALL_HEADER_RULES: setting })).rejects.toThrow(why);
});

test('what a client sets by WebSocket and is no header field does no harm to others', async () => {
  const { federation, ask } = await startWith({ all: { request: [{ pass: 'x-*' }] } });
  const fields = { 'x-a b': '1', 'x-c\r\nd': '1', 'x-e': '1\r\n', 'x-é': '1' };
  const client = graphqlClient('WebSocket', { url: federation.service.url, fields });
  for (let times = 0; times < 6; times += 1) {
    const heard = listen(client, '{ users { name } }');
    await expect.poll(() => heard.answers, WAIT).toEqual([{ data: { users: [{ name: 'Anna' }, { name: 'Ben' }] } }]);
  }
  expect((await ask('{ users { name } }')).body).not.toHaveProperty('errors');
});
