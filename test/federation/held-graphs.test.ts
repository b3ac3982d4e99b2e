import { expect, test } from 'vitest';
import { startFederation } from './federation-service.ts';
import { products, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

const LINK = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])';
/** Each composes. */
const UNUSABLE = [
  ['clients cannot be shown', 'type Query { bad: join__Field } type join__Field { a: Int }', 'GRAPH_UNUSABLE'],
  ['the planner refuses', `type Query { bad: ${'['.repeat(400)}Int${']'.repeat(400)} }`, 'GRAPH_UNUSABLE'],
  [
    'ends the process of the planner',
    `${LINK} type Query { bad: T } type T @key(fields: "id { x }") { id: ID }`,
    'COMPOSITION_LIMIT',
  ],
] as const;

test.each(UNUSABLE)('a schema that composes, and that %s, is held, and the others go on', async (_what, sdl, code) => {
  const { call, query } = await startFederation();
  const tell = async (name: string, serviceUrl: string) => {
    const { body } = await call('POST', '/schemas/introspect', { body: { name, serviceUrl } });
    return body;
  };
  const servers = {
    users: await startSubgraph(users),
    bad: await startSubgraph({ sdl }),
    products: await startSubgraph(products),
  };
  expect(await tell('users', servers.users.url)).toMatchObject({ status: 'composed' });
  expect(await tell('bad', servers.bad.url)).toMatchObject({
    status: 'held',
    error: { code, message: expect.stringContaining('No graph of it') },
    composition: { errors: [expect.objectContaining({ code })] },
  });
  expect(await tell('products', servers.products.url)).toMatchObject({ status: 'composed' });
  expect(await query('{ users { name } product }')).toEqual({
    data: { users: [{ name: 'Anna' }, { name: 'Ben' }], product: 'table' },
  });
  const check = await call('POST', '/schemas/check', { body: { service: 'more', schema: sdl } });
  expect(check.body).toMatchObject({ composition: { errors: [expect.objectContaining({ code })] } });
  servers.bad.become({ sdl: 'type Query { good: Int }', resolvers: { Query: { good: () => 7 } } });
  expect(await tell('bad', servers.bad.url)).toMatchObject({ status: 'composed' });
  expect(await query('{ good product }')).toEqual({ data: { good: 7, product: 'table' } });
});
