import { expect, test } from 'vitest';
import { type Federation, startFederation } from './federation-service.ts';
import { type SubgraphServer, startSubgraph } from './subgraph-server.ts';

const sdl = 'type Query { node: Node nodes: [Node] } type Node { id: ID node: Node nodes: [Node] }';

async function start(settings: Readonly<Record<string, string>> = {}): Promise<Federation & { nodes: SubgraphServer }> {
  const federation = await startFederation(settings);
  const nodes = await startSubgraph({ sdl, resolvers: { Query: { node: () => ({ id: '1' }) } } });
  await federation.call('POST', '/schemas/introspect', { body: { serviceUrl: nodes.url, name: 'nodes' } });
  return { ...federation, nodes };
}

const refused = (code: string) => ({
  errors: [expect.objectContaining({ extensions: expect.objectContaining({ code }) })],
});

test('what is too much is 400 for everybody, and no service is asked', async () => {
  const { callerOf, nodes } = await start();
  const anybody = await callerOf(undefined);
  for (const accept of ['application/json', 'application/graphql-response+json'])
    for (const [code, query] of [
      ['DEPTH_LIMIT_EXCEEDED', `{ ${'node { '.repeat(20)} id ${'} '.repeat(20)} }`],
      ['COST_LIMIT_EXCEEDED', `{ ${'nodes { '.repeat(6)} id ${'} '.repeat(6)} }`],
    ] as const) {
      const { status, body } = await anybody('POST', '/graphql', { body: { query }, headers: { accept } });
      expect([status, body]).toEqual([400, refused(code)]);
    }
  expect(nodes.asked).toEqual([]);
});

/** Of five services each knows a part of an interface. */
function partOf(name: string, more: string, types: number): string {
  const all = Array.from({ length: types }, (_, n) => n);
  return `extend schema @link(url: "https://specs.apollo.dev/federation/v2.3", import: ["@key"])
    ${more === '' ? '' : 'type Query { node: Node }'} interface Node { id: ID! ${name}: String ${more} }
    ${all.map((n) => `type T${n} implements Node @key(fields: "id") { id: ID! ${name}: String ${more} }`).join(' ')}`;
}

test('what cannot be planned is refused, and other operations go on', async () => {
  const { call, callerOf } = await startFederation();
  const anybody = await callerOf(undefined);
  const root = { Query: { node: () => ({ __typename: 'T1', id: '1' }) } };
  for (const name of ['a', 'b', 'c', 'd', 'e']) {
    const sdl = partOf(name, name === 'a' ? 'next: Node' : '', 20);
    const { url: serviceUrl } = await startSubgraph({ sdl, resolvers: name === 'a' ? root : {} });
    await call('POST', '/schemas/introspect', { body: { serviceUrl, name } });
  }
  const ask = async (query: string) => {
    const { status, body } = await anybody('POST', '/graphql', { body: { query } });
    return [status, body];
  };
  const bomb = `{ node { ${'next { '.repeat(10)} id ${'} '.repeat(10)} } }`;
  const both = await Promise.all([ask(bomb), ask('{ node { id } }')]);
  expect(both).toEqual([
    [400, refused('PLAN_LIMIT_EXCEEDED')],
    [200, { data: { node: { id: '1' } } }],
  ]);
  expect(await ask(bomb)).toEqual([400, refused('PLAN_LIMIT_EXCEEDED')]);
  expect(await ask('{ node { __typename } }')).toEqual([200, { data: { node: { __typename: 'T1' } } }]);
});

test('settings say how much is too much', async () => {
  const { query } = await start({
    ROLLCALL_QUERY_TOKENS: '100',
    ROLLCALL_QUERY_DEPTH: '3',
    ROLLCALL_QUERY_ALIASES: '0',
    ROLLCALL_QUERY_ROOT_FIELDS: '1',
    ROLLCALL_QUERY_DIRECTIVES: '0',
    ROLLCALL_QUERY_COST: '1',
    ROLLCALL_QUERY_LIST_SIZE: '2',
    ROLLCALL_INTROSPECTION: 'off',
  });
  expect(await query('{ node { id } }')).toEqual({ data: { node: { id: '1' } } });
  expect(await query(`{ node { ${'id '.repeat(100)} } }`)).toEqual(refused('TOKEN_LIMIT_EXCEEDED'));
  expect(await query('{ node { node { node { id } } } }')).toEqual(refused('DEPTH_LIMIT_EXCEEDED'));
  expect(await query('{ node { a: id } }')).toEqual(refused('ALIAS_LIMIT_EXCEEDED'));
  expect(await query('{ node { id } __typename }')).toEqual(refused('ROOT_FIELD_LIMIT_EXCEEDED'));
  expect(await query('{ node { id @skip(if: false) } }')).toEqual(refused('DIRECTIVE_LIMIT_EXCEEDED'));
  expect(await query('{ nodes { id } }')).toEqual(refused('COST_LIMIT_EXCEEDED'));
  expect(await query('{ __schema { description } }')).toEqual(refused('INTROSPECTION_DISABLED'));
});

test('who asks is told what an operation costs', async () => {
  const { callerOf } = await start();
  const body = { query: '{ node { nodes { id } } }' };
  const answer = await (await callerOf(undefined))('POST', '/graphql', { body, headers: { 'graphql-cost': 'report' } });
  expect(answer.body).toEqual({
    data: { node: { nodes: null } },
    extensions: { cost: { estimated: 11, limit: 100_000 } },
  });
});
