import { getIntrospectionQuery } from 'graphql/index.js';
import { expect, test } from 'vitest';
import type { ErrorCode } from '../errors.ts';
import { FEDERATION_2, federate, WIDE_LIMITS } from '../testing/federate.ts';

const sdl = `${FEDERATION_2} directive @mark repeatable on QUERY | FIELD | FRAGMENT_SPREAD | INLINE_FRAGMENT
  type Query { node: Node nodes(where: Where, names: [[String]]): Node } input Where { and: [Where!] name: String }
  type Node { id(in: [Int]): ID node: Node }`;
const resolvers = { Query: { node: () => ({ id: '1' }), nodes: () => ({ id: '2' }) } };
const graph = federate({ nodes: { sdl, resolvers } });

const many = (count: number, make: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at)).join(' ');
const nested = (depth: number) => `{ ${'node { '.repeat(depth - 1)} id ${'} '.repeat(depth - 1)} }`;
/** Fragments of which each has the next one twice: doubled with each. */
const doubling = (count: number, field: string) =>
  `{ node { ...F0 } } fragment F${count} on Node { ${field} }
  ${many(count, (at) => `fragment F${at} on Node { ...F${at + 1} node { ...F${at + 1} } }`)}`;
const chained = (count: number) =>
  `{ node { ...F0 } } fragment F${count} on Node { id } ${many(count, (at) => `fragment F${at} on Node { ...F${at + 1} }`)}`;

const WITHIN: readonly (readonly [string, string])[] = [
  ['tokens', `{ node { id(in: [${'1 '.repeat(1988)}]) } }`],
  ['repetitions', `{ node { ${'id '.repeat(245)} } }`],
  ['depth', nested(20)],
  ['aliases', `{ node { ${many(50, (at) => `a${at}: id`)} } }`],
  ['root fields', `{ a: node { id } ${many(29, (at) => `b${at}: __typename`)} }`],
  ['directives', `query @mark { ...F @mark } fragment F on Query { node { ${many(48, () => '... @mark { id }')} } }`],
];

test.each(WITHIN)('what is just within the limit of %s is answered', async (_, query) => {
  expect(await graph.ask(query)).toEqual({ data: expect.anything() });
});

const BEYOND: readonly (readonly [ErrorCode, string, number, string])[] = [
  ['TOKEN_LIMIT_EXCEEDED', 'tokens', 2000, `{ node { id(in: [${'1 '.repeat(1989)}]) } }`],
  ['REPETITION_LIMIT_EXCEEDED', 'repetitions', 30_000, `{ node { ${'id '.repeat(246)} } }`],
  [
    'REPETITION_LIMIT_EXCEEDED',
    'repetitions by fragments',
    30_000,
    `{ ${many(20, (at) => `node { ...F${at} }`)} } ${many(20, (at) => `fragment F${at} on Node { ${'id(in: 1) '.repeat(5)} }`)}`,
  ],
  ['TOKEN_LIMIT_EXCEEDED', 'tokens of what is no GraphQL', 2000, '{ node '.repeat(100_000)],
  ['DEPTH_LIMIT_EXCEEDED', 'depth', 20, nested(21)],
  ['DEPTH_LIMIT_EXCEEDED', 'depth by fragments', 20, doubling(20, 'id').replaceAll('...F', 'node { id } ...F')],
  ['ALIAS_LIMIT_EXCEEDED', 'aliases', 50, `{ node { ${many(51, (at) => `a${at}: id`)} } }`],
  ['ALIAS_LIMIT_EXCEEDED', 'aliases by fragments', 50, doubling(6, 'a: id')],
  ['ROOT_FIELD_LIMIT_EXCEEDED', 'root fields', 30, `{ a: node { id } ${many(30, (at) => `b${at}: __typename`)} }`],
  ['ROOT_FIELD_LIMIT_EXCEEDED', 'root fields of one name', 30, `{ ${'node { id } '.repeat(31)} }`],
  ['DIRECTIVE_LIMIT_EXCEEDED', 'directives', 50, `query ${'@mark '.repeat(51)} { node { id } }`],
  ['DIRECTIVE_LIMIT_EXCEEDED', 'directives by fragments', 50, doubling(6, 'id @mark')],
  ['SELECTION_LIMIT_EXCEEDED', 'selections by fragments', 10_000, doubling(12, 'id')],
  ['SELECTION_LIMIT_EXCEEDED', 'selections without end', 10_000, doubling(15, 'id').replaceAll('node {', '... {')],
  ['SELECTION_LIMIT_EXCEEDED', 'fragments in fragments', 100, chained(120)],
];

test.each(BEYOND)(
  '%s: %s beyond the limit are refused, and no subgraph is asked',
  async (...[code, , limit, query]) => {
    const answer = await graph.ask(query);
    expect(answer.data).toBeUndefined();
    expect(answer.errors).toContainEqual(expect.objectContaining({ extensions: { code, limit } }));
    expect(graph.calls).toEqual([]);
  },
);

test('all limits that an operation is beyond are told at once, with the operation', async () => {
  const query = `query A { node { id } } query B ${'@mark '.repeat(51)} ${nested(22)}`;
  const { errors = [] } = await graph.ask(query, { operationName: 'A' });
  expect(errors.map(({ extensions, locations }) => [extensions['code'], locations])).toEqual([
    ['DEPTH_LIMIT_EXCEEDED', [{ line: 1, column: 25 }]],
    ['DIRECTIVE_LIMIT_EXCEEDED', [{ line: 1, column: 25 }]],
  ]);
});

test('fields of one name that differ are refused', async () => {
  expect((await graph.ask('{ node { id } ...F } fragment F on Query { node: nodes { id } }')).errors).toMatchObject([
    { message: expect.stringContaining('Fields "node" conflict'), extensions: { code: 'INVALID_REQUEST' } },
  ]);
});

test('a fragment in itself is refused for that', async () => {
  const query = '{ node { ...F } } fragment F on Node { node { ...G } } fragment G on Node { ...F }';
  const { errors } = await graph.ask(query);
  expect(errors?.[0]?.message).toContain('Cannot spread fragment "F" within itself');
});

test('limits can be others', async () => {
  const wide = federate({ nodes: { sdl, resolvers } }, WIDE_LIMITS);
  for (const query of [nested(21), `query ${'@mark '.repeat(51)} { node { id } }`])
    expect(await wide.ask(query)).toEqual({ data: { node: expect.anything() } });
  const tight = federate({ nodes: { sdl, resolvers } }, { depth: 1 });
  expect((await tight.ask('{ node { id } }')).errors).toMatchObject([{ extensions: { limit: 1 } }]);
});

test.each(['query ($v: Where) { nodes(where: $v) { id } }', 'query ($v: [[String]]) { nodes(names: $v) { id } }'])(
  'a variable that is nested too deep is refused',
  async (query) => {
    for (const levels of [33, 200_000]) {
      const deep: unknown = JSON.parse(`${'['.repeat(levels)}${']'.repeat(levels)}`);
      const { errors } = await graph.ask(query, { variables: { v: deep } });
      expect(errors).toMatchObject([{ extensions: { code: 'VARIABLE_LIMIT_EXCEEDED', limit: 32 } }]);
    }
    const objects: unknown = JSON.parse(`${'{"and":'.repeat(33)}null${'}'.repeat(33)}`);
    const { errors } = await graph.ask(query, { variables: { v: objects } });
    expect(errors).toMatchObject([{ extensions: { code: 'VARIABLE_LIMIT_EXCEEDED', limit: 32 } }]);
    expect(graph.calls).toEqual([]);
  },
);

test('a variable with 32 levels is taken', async () => {
  const where: unknown = JSON.parse(`${'{"and":['.repeat(15)}{"name":"a"}${']}'.repeat(15)}`);
  const query = 'query ($v: Where) { nodes(where: $v) { id } }';
  expect(await graph.ask(query, { variables: { v: where } })).toEqual({ data: { nodes: { id: '2' } } });
});

test('of many faults of variables not all are told', async () => {
  const query = 'query ($v: Where) { nodes(where: $v) { id } }';
  const variables = { v: { and: Array.from({ length: 1000 }, () => 7) } };
  expect((await graph.ask(query, { variables })).errors).toHaveLength(51);
});

test('the schema is not told where it is not to be, but types of objects are', async () => {
  const closed = federate({ nodes: { sdl, resolvers } }, { allowsIntrospection: false });
  for (const query of [
    getIntrospectionQuery(),
    '{ __type(name: "Node") { name } }',
    '{ node { id } ...F } fragment F on Query { s: __schema { __typename } }',
  ])
    expect((await closed.ask(query)).errors).toMatchObject([{ extensions: { code: 'INTROSPECTION_DISABLED' } }]);
  const [error] = (await closed.ask('{ nod }')).errors ?? [];
  expect(error?.message).toBe('Cannot query field "nod" on type "Query".');
  expect(await closed.ask('{ __typename node { __typename } }')).toEqual({
    data: { __typename: 'Query', node: { __typename: 'Node' } },
  });
});
