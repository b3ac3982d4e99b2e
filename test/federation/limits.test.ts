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
