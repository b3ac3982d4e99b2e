import { getIntrospectionQuery } from 'graphql/index.js';
import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../testing/federate.ts';

const graph = federate({
  nodes: { sdl: `${FEDERATION_2} type Query { node: Node } type Node { id(in: [Int]): ID node: Node }` },
});

const times = (count: number, make: (at: number) => string) => Array.from({ length: count }, (_, at) => make(at));

/** As tools ask: GraphiQL and code generators send the first two. */
const USUAL = [
  getIntrospectionQuery(),
  getIntrospectionQuery({
    descriptions: true,
    specifiedByUrl: true,
    directiveIsRepeatable: true,
    schemaDescription: true,
    inputValueDeprecation: true,
    oneOf: true,
  }),
  '{ __schema { types { name } } ...F } fragment F on Query { __schema { types { kind fields { name } } } }',
  '{ __type(name: "Query") { fields { name type { name fields { name args { name type { name } } } } } } }',
  `{ ${times(5, (at) => `a${at}: __type(name: "Node") { enumValues { name } }`).join(' ')} }`,
  '{ __schema { queryType { fields { name args { type { inputFields { name } } } } } } }',
];

test.each(USUAL)('%s is answered', async (query) => {
  expect(await graph.ask(query)).toEqual({ data: expect.anything() });
});

describe('it is refused to ask for', () => {
  test.each([
    ['the schema twice', '{ a: __schema { types { name } } b: __schema { types { name } } }'],
    [
      'the schema twice by fragments',
      '{ ...A ...B } fragment A on Query { a: __schema { types { name } } } fragment B on Query { b: __schema { types { name } } }',
    ],
    ['six types', `{ ${times(6, (at) => `a${at}: __type(name: "Node") { name }`).join(' ')} }`],
    ['lists twice', '{ __schema { types { a: fields { name } b: fields { name } } } }'],
    ['names of all fields twice', '{ __schema { types { fields { a: name b: name } } } }'],
    ['fields of fields of all types', '{ __schema { types { fields { type { fields { name } } } } } }'],
    [
      'values of fields of fields',
      '{ __type(name: "Node") { fields { type { fields { type { enumValues { name } } } } } } }',
    ],
    ['values of fields of all types', '{ __schema { types { fields { args { type { enumValues { name } } } } } } }'],
    [
      'fields of fields of all types by fragments',
      '{ __schema { types { ...F } } } fragment F on __Type { fields { type { ...G } } } fragment G on __Type { fields { name } }',
    ],
  ])('%s', async (_, query) => {
    const answer = await graph.ask(query);
    expect(answer).toEqual({
      errors: [expect.objectContaining({ extensions: { code: 'INTROSPECTION_LIMIT_EXCEEDED' } })],
    });
  });
});

test('the last answer is kept, but for those that depend on variables', async () => {
  const partOf = async (query: string, variables = {}) => (await graph.ask(query, { variables })).data?.['__type'];
  const query = '{ __type(name: "Node") { name } }';
  const first = await partOf(query);
  expect(first).toEqual({ name: 'Node' });
  await graph.ask('{ __typename }');
  expect(await partOf(query)).toBe(first);
  const byName = 'query ($name: String!) { __type(name: $name) { name } }';
  for (const name of ['Node', 'Query']) expect(await partOf(byName, { name })).toEqual({ name });
});

test('no service has a say in what is kept', async () => {
  const pushy = federate({ nodes: { sdl: 'type Query { node: String }' } });
  pushy.interfere = () => ({ data: { node: 'a', __schema: { queryType: { name: 'Mine' } } } });
  for (const times of [1, 2])
    expect([times, await pushy.ask('{ node __schema { queryType { name } } }')]).toEqual([
      times,
      { data: { node: 'a', __schema: { queryType: { name: 'Query' } } } },
    ]);
});
