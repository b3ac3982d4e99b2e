import type { ServerResponse } from 'node:http';
import { describe, expect, test } from 'vitest';
import { type Federation, type GraphqlAnswer, startFederation } from './federation-service.ts';
import { products, reviews, users } from './shop.ts';
import { type SubgraphServer, startSubgraph } from './subgraph-server.ts';

interface Shop extends Federation {
  /** The one that has faults. */
  readonly products: SubgraphServer;
  readonly users: SubgraphServer;
}

async function startShop(settings: Readonly<Record<string, string>> = {}): Promise<Shop> {
  const federation = await startFederation(settings);
  const servers = { users: await startSubgraph(users), products: await startSubgraph(products) };
  for (const [name, { url: serviceUrl }] of Object.entries(servers))
    await federation.call('POST', '/schemas/introspect', { body: { serviceUrl, name } });
  return { ...federation, ...servers };
}

const unavailable = (message = expect.any(String)) => ({
  message,
  path: ['product'],
  extensions: { code: 'SUBGRAPH_UNAVAILABLE', service: 'products' },
});
/** What waits for the test does not fail by itself. */
const PATIENT = { ROLLCALL_SUBGRAPH_TIMEOUT_SECONDS: '60' };
const PEOPLE = [{ name: 'Anna' }, { name: 'Ben' }];

/** Answers that wait until somebody gives them. */
function hold(server: SubgraphServer) {
  const held: ServerResponse[] = [];
  server.misbehave((response) => void held.push(response));
  return {
    held,
    /** Gives the oldest. */
    give: (value: string): void => {
      held.shift()?.end(JSON.stringify({ data: { product: value } }));
    },
  };
}

describe('an answer', () => {
  test('of a gigabyte is read up to the limit, and costs its own fields alone', async () => {
    const { query, products } = await startShop({ ROLLCALL_SUBGRAPH_ANSWER_BYTES: '100000' });
    const chunk = Buffer.alloc(64 * 1024, ' ');
    let sent = 0;
    const closed = Promise.withResolvers<number>();
    products.misbehave((response) => {
      response.on('close', () => closed.resolve(sent));
      const more = (): void => {
        while (sent < 2 ** 30 && !response.destroyed) {
          sent += chunk.length;
          if (!response.write(chunk)) {
            response.once('drain', more);
            return;
          }
        }
        response.end();
      };
      more();
    });
    expect(await query('{ product users { name } }')).toEqual({
      data: { product: null, users: PEOPLE },
      errors: [unavailable('The answer of the service is too large')],
    });
    expect(await closed.promise).toBeLessThan(2 ** 30);
  });

  test('of one byte after the other has to be whole in time', async () => {
    const { query, products } = await startShop({ ROLLCALL_SUBGRAPH_TIMEOUT_SECONDS: '3' });
    const closed = Promise.withResolvers<undefined>();
    products.misbehave((response) => {
      const timer = setInterval(() => response.write(' '), 100);
      response.on('close', () => {
        clearInterval(timer);
        closed.resolve(undefined);
      });
    });
    expect((await query('{ product }')).errors).toEqual([unavailable('The service did not answer')]);
    await closed.promise;
  });

  test('that is not UTF-8 is none', async () => {
    const { query, products } = await startShop();
    const answer = Buffer.concat([Buffer.from('{"data":{"product":"'), Buffer.from([0xff, 0xfe]), Buffer.from('"}}')]);
    products.misbehave((response) => void response.end(answer));
    expect((await query('{ product }')).errors).toEqual([unavailable('The service did not answer as GraphQL')]);
  });

  test('that breaks off is none', async () => {
    const { query, products } = await startShop();
    products.misbehave((response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('{"data":', () => response.destroy());
    });
    expect((await query('{ product }')).errors).toEqual([unavailable('The service did not answer')]);
  });
});

describe('calls of one service', () => {
  test('are so many at a time, and the others wait', async () => {
    const shop = await startShop({ ROLLCALL_SUBGRAPH_CALLS: '2', ...PATIENT });
    const { held, give } = hold(shop.products);
    const answers = await different(shop, 6);
    for (let given = 0; given < 6; given += 1) {
      await expect.poll(() => held.length).toBe(Math.min(2, 6 - given));
      give('chair');
    }
    for (const answer of await Promise.all(answers)) expect(answer).toEqual({ data: { product: 'chair' } });
    expect(await shop.query('{ users { name } }')).toEqual({ data: { users: PEOPLE } });
  });

  test('wait in a line that has an end', async () => {
    const shop = await startShop({ ROLLCALL_SUBGRAPH_CALLS: '1', ...PATIENT });
    const { held, give } = hold(shop.products);
    const answers = await different(shop, 13);
    const refused = () => metricOf(shop.service.adminUrl, 'rollcall_federation_refused_calls_total', 'busy');
    await expect.poll(refused).toBe(2);
    for (let given = 0; given < 11; given += 1) {
      await expect.poll(() => held.length).toBe(1);
      give('chair');
    }
    const codes = (await Promise.all(answers)).map(({ errors }) => errors?.[0]?.extensions);
    expect(codes.filter((code) => code !== undefined)).toEqual(
      Array.from({ length: 2 }, () => ({ code: 'SUBGRAPH_BUSY', service: 'products' })),
    );
  });

  test('are not made for a while where it fails, and are made again once it is back', async () => {
    const { query, products, service } = await startShop();
    products.misbehave((response) => void response.writeHead(503).end());
    const message = 'The service has failed, and is not asked for a moment';
    await expect.poll(async () => (await query('{ product }')).errors).toEqual([unavailable(message)]);
    expect(await metricOf(service.adminUrl, 'rollcall_federation_refused_calls_total', 'failing')).toBeGreaterThan(0);
    expect(await query('{ users { name } }')).toEqual({ data: { users: PEOPLE } });
    products.misbehave(undefined);
    await expect.poll(() => query('{ product }')).toEqual({ data: { product: 'table' } });
  });

  test('go on where callers are refused, which is not the fault of the service', async () => {
    const { query, products } = await startShop();
    products.misbehave((response) => void response.writeHead(401).end('Who are you?'));
    for (let times = 0; times < 10; times += 1)
      expect((await query('{ product }')).errors).toEqual([unavailable('The service did not answer as GraphQL')]);
    products.misbehave(undefined);
    expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  });
});

describe('equal queries at the same time', () => {
  test('are one call for one caller, and none of another one', async () => {
    const { callerOf, products, service } = await startShop(PATIENT);
    const { held, give } = hold(products);
    const [anna, other, nobody] = await Promise.all([callerOf('a'), callerOf('b'), callerOf(undefined)]);
    const body = { query: '{ product }' };
    const ask = async (call: typeof anna, headers = {}) => (await call('POST', '/graphql', { body, headers })).body;
    const ofAnna = [ask(anna), ask(anna), ask(anna)];
    const ofOthers = [ask(other), ask(nobody), ask(anna, { 'accept-language': 'de' })];
    await expect.poll(() => metricOf(service.adminUrl, 'rollcall_federation_shared_calls_total')).toBe(2);
    await expect.poll(() => held.length).toBe(4);
    for (let given = 0; given < 4; given += 1) give(`answer ${given}`);
    const [first, ...same] = await Promise.all(ofAnna);
    expect(same).toEqual([first, first]);
    const all = new Set([first, ...(await Promise.all(ofOthers))].map((one) => JSON.stringify(one)));
    expect(all.size).toBe(4);
  });

  test('mutations are not', async () => {
    const { callerOf, products } = await startShop(PATIENT);
    const anna = await callerOf('a');
    const { held } = hold(products);
    const body = { query: 'mutation { sell(sku: "1") }' };
    const answers = [anna('POST', '/graphql', { body }), anna('POST', '/graphql', { body })];
    await expect.poll(() => held.length).toBe(2);
    for (const response of held) response.end(JSON.stringify({ data: { sell: 'sold' } }));
    for (const { body } of await Promise.all(answers)) expect(body).toEqual({ data: { sell: 'sold' } });
  });
});

test('a query after a mutation has a call of its own, though another graph is in force since', async () => {
  // Nor is its schema read meanwhile.
  const { call, query, products } = await startShop({ ...PATIENT, ROLLCALL_SCHEMA_POLL_SECONDS: '3600' });
  const { held } = hold(products);
  const take = async () => {
    await expect.poll(() => held.length).toBe(1);
    return held.splice(0);
  };
  const selling = query('mutation { sell(sku: "1") }');
  const mutation = await take();
  const { url: serviceUrl } = await startSubgraph(reviews);
  expect((await call('POST', '/schemas/introspect', { body: { serviceUrl, name: 'reviews' } })).status).toBe(200);
  expect(await query('{ users { name reviews } }')).toMatchObject({ data: { users: [{ name: 'Anna' }, {}] } });
  const before = query('{ product }');
  const old = await take();
  for (const response of mutation) response.end(JSON.stringify({ data: { sell: 'sold' } }));
  expect(await selling).toEqual({ data: { sell: 'sold' } });
  const after = query('{ product }');
  const anew = await take();
  for (const response of old) response.end(JSON.stringify({ data: { product: 'before' } }));
  for (const response of anew) response.end(JSON.stringify({ data: { product: 'after' } }));
  expect([await before, await after]).toEqual([{ data: { product: 'before' } }, { data: { product: 'after' } }]);
});

/** Queries none of which is shared. */
async function different({ callerOf }: Shop, count: number): Promise<readonly Promise<GraphqlAnswer>[]> {
  const anybody = await callerOf(undefined);
  return Array.from({ length: count }, async (_, n) => {
    const headers = { 'accept-language': `x-${n}` };
    return (await anybody('POST', '/graphql', { body: { query: '{ product }' }, headers })).body as GraphqlAnswer;
  });
}

/** The sum of its series that have a label of the value. */
async function metricOf(adminUrl: string, name: string, label = ''): Promise<number> {
  const text = await (await fetch(`${adminUrl}/metrics`)).text();
  const lines = text.split('\n').filter((line) => line.startsWith(name) && line.includes(label));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
}
