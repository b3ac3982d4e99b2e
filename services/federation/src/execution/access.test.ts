import { describe, expect, test } from 'vitest';
import { callerWith, LINK, NOBODY, withheld } from '../testing/access.ts';
import { federate } from '../testing/federate.ts';
import type { SubgraphSource } from '../testing/subgraph.ts';

const anna = { id: '1', name: 'Anna', mail: 'a@example.com', salary: 7, level: 'HIGH', token: 'x' };
const ben = { id: '2', name: 'Ben', mail: 'b@example.com', salary: 8, level: 'LOW', token: 'y' };

const staff: SubgraphSource = {
  sdl: `${LINK}
    type Query { users: [User!]! me: User @authenticated first: User vault: Vault open: String }
    type Mutation { rename(name: String): User @requiresScopes(scopes: [["users:write"]]) touch: String }
    type User @key(fields: "id") {
      id: ID!
      name: String!
      mail: String @requiresScopes(scopes: [["mail", "users"], ["admin"]])
      salary: Int! @policy(policies: [["payroll"]])
      level: Level
      token: Token
      boss: User
    }
    type Vault @authenticated { gold: Int }
    enum Level @requiresScopes(scopes: [["levels"]]) { LOW HIGH }
    scalar Token @authenticated`,
  resolvers: {
    Query: {
      users: () => [anna, ben],
      me: () => anna,
      first: () => anna,
      vault: () => ({ gold: 1 }),
      open: () => 'yes',
    },
    Mutation: { rename: () => anna, touch: () => 'touched' },
    User: { __resolveReference: ({ id }) => [anna, ben].find((user) => user.id === id), boss: () => ben },
  },
};

const notes: SubgraphSource = {
  sdl: `${LINK} type User @key(fields: "id") { id: ID! notes: [String!]! @authenticated }`,
  resolvers: { User: { notes: ({ id }) => [`note on ${String(id)}`] } },
};

const shop = () => federate({ staff, notes });

describe('a field with a rule', () => {
  test('is null with one error for all places in a list, and is not asked for', async () => {
    const graph = shop();
    expect(await graph.ask('{ users { name mail notes } first { boss { mail } } }', callerWith('mail'))).toEqual({
      data: {
        users: [
          { name: 'Anna', mail: null, notes: ['note on 1'] },
          { name: 'Ben', mail: null, notes: ['note on 2'] },
        ],
        first: { boss: { mail: null } },
      },
      errors: withheld(['users', '@', 'mail'], ['first', 'boss', 'mail']),
    });
    for (const { query } of graph.calls) expect(query).not.toContain('mail');
  });

  test('takes the object around it away where it may not be null, with no other error', async () => {
    const graph = shop();
    expect(await graph.ask('{ first { name salary } open }', callerWith())).toEqual({
      data: { first: null, open: 'yes' },
      errors: withheld(['first', 'salary']),
    });
    expect(await graph.ask('{ users { boss { salary } name } }', callerWith())).toEqual({
      data: {
        users: [
          { boss: null, name: 'Anna' },
          { boss: null, name: 'Ben' },
        ],
      },
      errors: withheld(['users', '@', 'boss', 'salary']),
    });
    expect(await graph.ask('{ users { salary } open }', callerWith())).toEqual({
      data: null,
      errors: withheld(['users', '@', 'salary']),
    });
  });

  test.each([
    [['mail'], false],
    [['users'], false],
    [['mail', 'users'], true],
    [['admin'], true],
    [['*'], true],
    [['administrator'], false],
  ])('with the scopes %j is there: %s', async (scopes, isThere) => {
    const { data } = await shop().ask('{ first { mail } }', callerWith(...scopes));
    expect(data).toEqual({ first: { mail: isThere ? anna.mail : null } });
  });

  test('with a policy is there for who has a scope of that name', async () => {
    expect(await shop().ask('{ first { salary } }', callerWith('payroll'))).toEqual({ data: { first: { salary: 7 } } });
  });

  test('of another subgraph is not asked for, nor is that subgraph', async () => {
    const graph = shop();
    expect(await graph.ask('{ users { name notes } }', NOBODY)).toEqual({
      data: null,
      errors: withheld(['users', '@', 'notes']),
    });
    expect(graph.asked()).toEqual(['staff']);
  });
});

test('where nothing is left no subgraph is asked, and there are no data', async () => {
  const graph = shop();
  const query = '{ me { name } vault { gold } ...More } fragment More on Query { again: me { __typename } }';
  expect(await graph.ask(query, NOBODY)).toEqual({ data: null, errors: withheld(['me'], ['vault'], ['again']) });
  expect(graph.asked()).toEqual([]);
  expect(await graph.ask('{ me { name } __typename }', NOBODY)).toEqual({
    data: { me: null, __typename: 'Query' },
    errors: withheld(['me']),
  });
  expect(graph.asked()).toEqual([]);
});

test('a mutation that is withheld is not made', async () => {
  const graph = shop();
  expect(await graph.ask('mutation { rename(name: "x") { id } touch }', callerWith('users'))).toEqual({
    data: { rename: null, touch: 'touched' },
    errors: withheld(['rename']),
  });
  expect(graph.calls.map(({ query }) => query)).toEqual([expect.not.stringContaining('rename')]);
  expect(await graph.ask('mutation { rename(name: "x") { id } }', callerWith('users:write'))).toEqual({
    data: { rename: { id: '1' } },
  });
});

describe('types', () => {
  test.each(['vault { gold }', 'vault { __typename }', 'first { level }', 'first { token }'])(
    '%s is withheld for the type of its value',
    async (field) => {
      const { data, errors } = await shop().ask(`{ ${field} open }`, NOBODY);
      expect(errors).toMatchObject([{ extensions: { code: 'UNAUTHORIZED_FIELD_OR_TYPE' } }]);
      expect(JSON.stringify(data)).toMatch(/^\{"(vault":null|first":\{"(level|token)":null\}),"open":"yes"\}$/);
    },
  );

  test('with a rule are there for who meets it', async () => {
    expect(await shop().ask('{ vault { gold } first { level token } }', callerWith('levels'))).toEqual({
      data: { vault: { gold: 1 }, first: { level: 'HIGH', token: 'x' } },
    });
  });
});

describe('nothing leads round a rule', () => {
  test.each([
    ['an alias', '{ first { id: mail } }'],
    ['an alias of an open field', '{ first { name: mail } }'],
    ['an inline fragment', '{ first { ... { ... on User { x: mail } } } }'],
    ['a fragment in a fragment', '{ first { ...A } } fragment A on User { ...B } fragment B on User { x: mail }'],
    ['a condition', 'query ($on: Boolean = true) { first { x: mail @include(if: $on) @skip(if: false) } }'],
    ['the same field twice', '{ first { x: mail } ... on Query { first { x: mail } } }'],
    ['a longer way', '{ first { boss { boss { x: mail } } } }'],
  ])('%s', async (_, query) => {
    const graph = shop();
    const answer = await graph.ask(query, callerWith('mail'));
    expect(answer.errors).toHaveLength(1);
    expect(JSON.stringify(answer.data)).not.toContain('example.com');
    for (const call of graph.calls) expect(call.query).not.toContain('mail');
  });

  test('what is left out is not told', async () => {
    expect(await shop().ask('{ first { name mail @skip(if: true) } }', NOBODY)).toEqual({
      data: { first: { name: 'Anna' } },
    });
  });

  test('neither of two callers gets what was planned for the other', async () => {
    const graph = shop();
    const query = 'query ($no: Boolean!) { first { mail name @skip(if: $no) } }';
    const ask = (scopes: readonly string[], no: boolean) =>
      graph.ask(query, { ...callerWith(...scopes), variables: { no } });
    const asked = [...Array(40).keys()].map(async (index) => {
      const [isAdmin, no] = [index % 2 === 0, index % 3 === 0];
      const { data } = await ask(isAdmin ? ['admin', `other${index}`] : [`admin${index}`, 'mail'], no);
      expect(data).toEqual({ first: { mail: isAdmin ? anna.mail : null, ...(no ? {} : { name: 'Anna' }) } });
    });
    await Promise.all(asked);
  });

  test('a path is told once, and of very many the first', async () => {
    const many = [...Array(300).keys()].map((index) => `x${index}: mail`).join(' ');
    const graph = federate({ staff, notes }, { aliases: 300 });
    expect((await graph.ask(`{ first { ${many} } }`, NOBODY)).errors).toHaveLength(100);
    expect((await shop().ask('{ first { mail mail } }', NOBODY)).errors).toEqual(withheld(['first', 'mail']));
  });
});

test('subgraphs that say different things of a field are all right', async () => {
  const rules = [
    '@requiresScopes(scopes: [["a"], ["b"]])',
    '@requiresScopes(scopes: [["c"]]) @policy(policies: [["p"]])',
    '@authenticated',
  ];
  const sources = rules.map((rule, index) => [
    `s${index}`,
    { sdl: `${LINK} type Query { shared: Int @shareable ${rule} }`, resolvers: { Query: { shared: () => 1 } } },
  ]);
  const graph = federate(Object.fromEntries(sources));
  for (const scopes of [[], ['a'], ['c', 'p'], ['a', 'b', 'c'], ['b', 'p']])
    expect(await graph.ask('{ shared }', callerWith(...scopes))).toEqual({ data: null, errors: withheld(['shared']) });
  for (const scopes of [
    ['a', 'c', 'p'],
    ['b', 'c', 'p'],
  ])
    expect(await graph.ask('{ shared }', callerWith(...scopes))).toEqual({ data: { shared: 1 } });
});

test('keys with a rule lead to entities, and are not told', async () => {
  const graph = federate({
    a: {
      sdl: `${LINK} type Query { product: Product } type Product @key(fields: "id") { id: ID! @authenticated name: String }`,
      resolvers: { Query: { product: () => ({ id: '1', name: 'table' }) } },
    },
    b: {
      sdl: `${LINK} type Product @key(fields: "id") { id: ID! @authenticated inStock: Boolean }`,
      resolvers: { Product: { inStock: () => true } },
    },
  });
  expect(await graph.ask('{ product { name inStock } }', NOBODY)).toEqual({
    data: { product: { name: 'table', inStock: true } },
  });
  expect(await graph.ask('{ product { id inStock } }', NOBODY)).toEqual({
    data: { product: null },
    errors: withheld(['product', 'id']),
  });
});

test('a root type may have a rule, introspection included', async () => {
  const graph = federate({ a: { sdl: `${LINK} type Query @authenticated { a: Int }` } });
  expect(await graph.ask('{ a __typename __schema { types { name } } }', NOBODY)).toEqual({
    data: null,
    errors: withheld(['a'], ['__typename'], ['__schema']),
  });
});

test('a subscription with a rule is not opened', async () => {
  const { graph } = federate({
    a: {
      sdl: `${LINK} type Query { a: Int } type Subscription { ticks: Int @authenticated }`,
    },
  });
  const query = 'subscription { ticks }';
  expect(await graph.subscription({ query, caller: undefined })).toEqual({ data: null, errors: withheld(['ticks']) });
  expect(await graph.subscription({ query, ...callerWith() })).toHaveProperty('source');
});
