import { expect, test } from 'vitest';
import { federate } from '../testing/federate.ts';

const sdl = `extend schema @link(url: "https://specs.apollo.dev/federation/v2.9", import: ["@key", "@cost", { name: "@listSize", as: "@sized" }])
  type Query {
    me: User
    dear: User @cost(weight: 7)
    users: [User!]!
    page(first: Int = 5, last: Int, where: Where): [User!]! @sized(slicingArguments: ["first", "last"], requireOneSlicingArgument: false)
    one(first: Int, last: Int): [User!]! @sized(slicingArguments: ["first", "last"])
    few: [User!]! @sized(assumedSize: 3)
    edges(first: Int!): Edges @sized(slicingArguments: ["first"], sizedFields: ["nodes"])
    any: [Any!]! @sized(assumedSize: 2)
    find(where: Where, code: Int @cost(weight: 4)): String @cost(weight: 2)
    grid: [[User]]
  }
  type Mutation { rename(name: String): User }
  type User @key(fields: "id") { id: ID! name: String! friends: [User!]! photo: Photo score: Float @cost(weight: 5) }
  type Photo @cost(weight: 20) { url: String }
  type Edges { nodes: [User!]! total: Int others: [User!]! }
  type Book { title: String author: User }
  union Any = User | Book
  input Where { name: String age: Int @cost(weight: 3) and: [Where!] }`;
const graph = federate({ users: { sdl } });

const costOf = async (query: string, variables: Readonly<Record<string, unknown>> = {}) => {
  const { extensions, errors } = await graph.ask(query, { variables, reportsCost: true });
  return extensions?.cost.estimated ?? errors;
};

test.each([
  ['an object is one, and its values nothing', '{ me { id name } }', 1],
  ['an object in an object', '{ me { photo { url } } }', 21],
  ['the weight of a field is instead of that of its type', '{ dear { id } }', 7],
  ['the weight of a value', '{ me { score } }', 6],
  ['a list of which nothing is known has ten', '{ users { id } }', 10],
  ['lists in lists', '{ users { friends { friends { id } } } }', 10 + 100 + 1000],
  ['a list of lists is one list', '{ grid { id } }', 10],
  ['an assumed size', '{ few { score } }', 3 * 6],
  ['a size by an argument', '{ page(first: 4) { id } }', 4],
  ['the larger of two arguments', '{ page(first: 4, last: 6) { id } }', 6],
  ['a default of an argument', '{ page { id } }', 5],
  ['no size that is less than nothing', '{ page(first: -4) { id } me { id } }', 1],
  ['a size for a field within', '{ edges(first: 50) { nodes { id } total } }', 1 + 50],
  ['other lists beside it', '{ edges(first: 50) { others { id } } }', 1 + 10],
  [
    'types of a union all count',
    '{ any { ... on User { friends { id } } ... on Book { author { id } } } }',
    2 * (1 + 10 + 1),
  ],
  ['a mutation is ten more', 'mutation { rename { id } }', 11],
  ['introspection is nothing', '{ __schema { types { name } } me { __typename } }', 1],
  [
    'a field that is asked for twice is one',
    '{ me { id } me { photo { url } } ...F } fragment F on Query { me { photo { url } } }',
    21,
  ],
  ['aliases are more', '{ a: me { id } b: me { id } }', 2],
  ['what is left out is nothing', '{ me { id } users @skip(if: true) { id } }', 1],
  ['arguments with a weight', '{ find(code: 1) }', 2 + 4],
  ['arguments that are not given', '{ find }', 2],
  ['objects that are given', '{ find(where: { name: "a", and: [{ age: 4 }, {}] }) }', 2 + 3 + 3],
])('%s', async (_, query, cost) => {
  expect(await costOf(query)).toBe(cost);
});

test('variables count as what they are', async () => {
  const page = 'query ($n: Int = 2, $where: Where) { page(first: $n, where: $where) { friends { id } } }';
  expect(await costOf(page)).toBe(2 * 11);
  expect(await costOf(page, { n: 30 })).toBe(30 * 11);
  expect(await costOf(page, { n: 30, where: { age: 1 } })).toBe(30 * 11 + 1 + 3);
  const skip = 'query ($no: Boolean!) { me { id } users @skip(if: $no) { id } }';
  expect([await costOf(skip, { no: true }), await costOf(skip, { no: false })]).toEqual([1, 11]);
});

test.each(['{ one { id } }', '{ one(first: 1, last: 2) { id } }', '{ one(first: null) { id } }'])(
  '%s needs just one of the arguments',
  async (query) => {
    expect(await graph.ask(query)).toEqual({
      errors: [{ message: expect.stringContaining('first, last'), extensions: { code: 'SLICING_ARGUMENT_REQUIRED' } }],
    });
    expect(graph.calls).toEqual([]);
  },
);

test('one argument may be a variable', async () => {
  const one = 'query ($first: Int, $last: Int) { one(first: $first, last: $last) { id } }';
  expect(await costOf(one, { last: 8 })).toBe(8);
  expect(await costOf(one, { first: 1, last: 8 })).toMatchObject([
    { extensions: { code: 'SLICING_ARGUMENT_REQUIRED' } },
  ]);
  expect(await costOf(one)).toMatchObject([{ extensions: { code: 'SLICING_ARGUMENT_REQUIRED' } }]);
});

test('what costs too much is refused, whatever a variable says, and no subgraph is asked', async () => {
  const query = 'query ($n: Int) { page(first: $n) { friends { friends { id } } } }';
  expect(await graph.ask(query, { variables: { n: 1000 }, reportsCost: true })).toEqual({
    errors: [
      {
        message: 'The operation is estimated to cost 111000, and 100000 is the most that it may',
        extensions: { code: 'COST_LIMIT_EXCEEDED', limit: 100_000, estimated: 111_000 },
      },
    ],
  });
  const endless = `{ ${'users { friends { '.repeat(1)} ${'friends { '.repeat(17)} id ${'} '.repeat(19)} }`;
  expect((await graph.ask(endless)).errors).toMatchObject([{ extensions: { code: 'COST_LIMIT_EXCEEDED' } }]);
  expect(graph.calls).toEqual([]);
});

test('limit and size of lists can be others, and the cost is told to those who ask', async () => {
  const other = federate({ users: { sdl } }, { cost: 40, listSize: 2 });
  const answer = await other.ask('{ users { friends { id } } }', { reportsCost: true });
  expect(answer.extensions).toEqual({ cost: { estimated: 6, limit: 40 } });
  expect(await other.ask('{ me { id } }')).not.toHaveProperty('extensions');
  expect((await other.ask('{ page(first: 41) { id } }')).errors).toMatchObject([{ extensions: { limit: 40 } }]);
});

test('a graph without costs has the plain ones', async () => {
  const plain = federate({ users: { sdl: 'type Query { users(first: Int): [User] } type User { id: ID }' } });
  const { extensions } = await plain.ask('{ users(first: 2) { id } }', { reportsCost: true });
  expect(extensions?.cost.estimated).toBe(10);
});
