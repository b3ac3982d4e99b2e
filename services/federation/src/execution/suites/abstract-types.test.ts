import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

describe('abstract-types', () => {
  const graph = federate({
    shop: {
      sdl: `${FEDERATION_2} type Query { things: [Thing!]! found: [Found!]! } interface Thing { id: ID! size: String hidden: Int @inaccessible }
        union Found = Book | Magazine
        type Book implements Thing @key(fields: "id") { id: ID! size: String hidden: Int @inaccessible }
        type Magazine implements Thing @key(fields: "id") { id: ID! size: String hidden: Int @inaccessible }`,
      resolvers: {
        Query: {
          things: () => [
            { __typename: 'Book', id: 'b1', size: 'A5' },
            { __typename: 'Magazine', id: 'm1', size: 'A4' },
          ],
          found: () => [{ __typename: 'Magazine', id: 'm1' }],
        },
      },
    },
    books: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! title: String by: Writer } type Writer { name: String }`,
      resolvers: { Book: { title: () => 'Moby', by: () => ({ name: 'Herman' }) } },
    },
    magazines: {
      sdl: `${FEDERATION_2} type Magazine @key(fields: "id") { id: ID! title: String by: String }`,
      resolvers: { Magazine: { title: () => 'Wired', by: () => 'a house' } },
    },
  });

  test('each type has a call of its own', async () => {
    expect(await graph.ask('{ things { id size ... on Book { title } ... on Magazine { title } } }')).toEqual({
      data: {
        things: [
          { id: 'b1', size: 'A5', title: 'Moby' },
          { id: 'm1', size: 'A4', title: 'Wired' },
        ],
      },
    });
    expect([...graph.asked()].sort()).toEqual(['books', 'magazines', 'shop']);
  });

  test('one name stands for an object in one type and for a text in another', async () => {
    expect(await graph.ask('{ things { ... on Book { by { name } } ... on Magazine { issue: by } } }')).toEqual({
      data: { things: [{ by: { name: 'Herman' } }, { issue: 'a house' }] },
    });
  });

  test.each([
    [true, [{ title: 'Moby' }, { id: 'm1' }], ['books', 'shop']],
    [false, [{}, { id: 'm1', title: 'Wired' }], ['magazines', 'shop']],
  ])('fragments with conditions that are %s', async (c, things, asked) => {
    const query = `query ($c: Boolean!) { things { ... on Book @include(if: $c) { title }
      ... on Magazine { id } ... on Magazine @skip(if: $c) { title } } }`;
    expect(await graph.ask(query, { variables: { c } })).toEqual({ data: { things } });
    expect([...graph.asked()].sort()).toEqual(asked);
  });

  test('a hidden field of an interface', async () => {
    expect(await graph.ask('{ things { hidden } }')).toMatchObject({
      errors: [{ extensions: { code: 'INVALID_REQUEST' } }],
    });
  });

  test('typename: of interfaces and unions, under other names, and alone', async () => {
    expect(await graph.ask('{ things { is: __typename } found { __typename t: __typename } }')).toEqual({
      data: { things: [{ is: 'Book' }, { is: 'Magazine' }], found: [{ __typename: 'Magazine', t: 'Magazine' }] },
    });
    expect(graph.asked()).toEqual(['shop']);
  });
});

test('child-type-mismatch: a field that may be null in one type and not in another', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { accounts: [Account!]! } union Account = User | Admin
        type User @key(fields: "id") { id: ID! } type Admin @key(fields: "id") { id: ID! }`,
      resolvers: {
        Query: {
          accounts: () => [
            { __typename: 'User', id: 'u1' },
            { __typename: 'Admin', id: 'a1' },
          ],
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} union Account = User | Admin type Query { twins: [Account!]! }
        type User @key(fields: "id") { id: ID! name: String friends: [Account!]! }
        type Admin @key(fields: "id") { id: ID! name: String! friends: [Account!]! }`,
      resolvers: {
        Query: { twins: () => [{ __typename: 'Admin', id: 'a1', name: 'an admin' }] },
        User: { name: () => null, friends: () => [{ __typename: 'Admin', id: 'a1' }] },
        Admin: { name: () => 'an admin', friends: () => [{ __typename: 'User', id: 'u1' }] },
      },
    },
  });
  const names = '... on User { name } ... on Admin { adminName: name }';
  expect(await graph.ask(`{ accounts { ${names} ... on User { friends { ${names} } } } }`)).toEqual({
    data: { accounts: [{ name: null, friends: [{ adminName: 'an admin' }] }, { adminName: 'an admin' }] },
  });
});

test('circular-reference-interface: a field of an interface leads back to its own type', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { product: Product } interface Product { samePrice: [Product] }
        type Book implements Product @key(fields: "id") { id: ID! samePrice: [Book] @provides(fields: "price") price: Float @external }`,
      resolvers: {
        Query: { product: () => ({ __typename: 'Book', id: 'b1' }) },
        Book: { samePrice: ({ id }) => [{ __typename: 'Book', id: id === 'b1' ? 'b2' : 'b1', price: 10.5 }] },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! price: Float @shareable }`,
      resolvers: { Book: { price: () => 10.5 } },
    },
  });
  expect(await graph.ask('{ product { samePrice { ... on Book { id price samePrice { id } } } } }')).toEqual({
    data: { product: { samePrice: [{ id: 'b2', price: 10.5, samePrice: [{ id: 'b1' }] }] } },
  });
});

describe('union-interface-distributed', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { nodes: [Node!]! toasters: [Toaster!]! } union Any = Oven | Toaster interface Node { id: ID! }
        type Oven @key(fields: "id") { id: ID! } type Toaster implements Node @key(fields: "id") { id: ID! watts: Int }`,
      resolvers: {
        Query: {
          nodes: () => [{ __typename: 'Toaster', id: 't1' }],
          toasters: () => [{ __typename: 'Toaster', id: 't1', watts: 9 }],
        },
        Toaster: { __resolveReference: ({ id }) => ({ id, watts: 9 }) },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { anything: [Any!]! broken: Node } union Any = Oven | Toaster interface Node { id: ID! }
        type Oven implements Node @key(fields: "id") { id: ID! warranty: Int } type Toaster @key(fields: "id") { id: ID! }`,
      resolvers: {
        Query: {
          anything: () => [
            { __typename: 'Oven', id: 'o1', warranty: 2 },
            { __typename: 'Toaster', id: 't1' },
          ],
          broken: () => ({ __typename: 'Toaster', id: 't1' }),
        },
      },
    },
  });

  test('a fragment on the interface goes by the whole graph', async () => {
    expect(await graph.ask('{ anything { ... on Node { __typename id } } }')).toEqual({
      data: {
        anything: [
          { __typename: 'Oven', id: 'o1' },
          { __typename: 'Toaster', id: 't1' },
        ],
      },
    });
    expect(await graph.ask('{ anything { ... on Oven { warranty } ... on Toaster { watts } } }')).toEqual({
      data: { anything: [{ warranty: 2 }, { watts: 9 }] },
    });
    expect(await graph.ask('{ nodes { id ... on Oven { warranty } } toasters { watts ... on Node { id } } }')).toEqual({
      data: { nodes: [{ id: 't1' }], toasters: [{ watts: 9, id: 't1' }] },
    });
  });

  test('an object that cannot be there is null, with an error', async () => {
    const { data, errors } = await graph.ask('{ broken { id } }');
    expect(data).toEqual({ broken: null });
    expect(errors).toMatchObject([{ path: ['broken'], extensions: { service: 'b' } }]);
  });
});

describe('corrupted-supergraph-node-id', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { node(id: ID!): Node @shareable } interface Node { id: ID! }
        type Account implements Node @key(fields: "id") { id: ID! } type Chat implements Node @key(fields: "id") { id: ID! @external text: String! }`,
      resolvers: {
        Query: { node: (_, { id }) => ({ __typename: id === 'a1' ? 'Account' : 'Chat', id, text: 'from a' }) },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { node(id: ID!): Node @shareable } interface Node { id: ID! }
        type Account implements Node @key(fields: "id") { id: ID! @external name: String! } type Chat implements Node @key(fields: "id") { id: ID! }`,
      resolvers: {
        Query: { node: (_, { id }) => ({ __typename: id === 'a1' ? 'Account' : 'Chat', id }) },
        Account: { name: () => 'from b' },
      },
    },
  });

  test('names of types and fragments on types work', async () => {
    expect(await graph.ask('{ node(id: "a1") { __typename } }')).toEqual({ data: { node: { __typename: 'Account' } } });
    expect(await graph.ask('{ node(id: "a1") { ... on Account { name } } }')).toMatchObject({
      data: { node: { name: 'from b' } },
    });
    expect(await graph.ask('{ node(id: "c1") { ... on Chat { text } } }')).toMatchObject({
      data: { node: { text: 'from a' } },
    });
  });

  test('the id alone, by the interface, cannot be answered', async () => {
    expect(await graph.ask('{ node(id: "a1") { id } }')).toEqual({
      data: null,
      errors: [{ message: 'The services together cannot answer this', extensions: { code: 'NOT_ANSWERABLE' } }],
    });
    expect(graph.asked()).toEqual([]);
  });
});
