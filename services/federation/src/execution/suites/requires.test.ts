import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

describe('simple-requires-provides', () => {
  const graph = federate({
    users: {
      sdl: `${FEDERATION_2} type Query { me: User } type User @key(fields: "id") { id: ID! name: String username: String @shareable }`,
      resolvers: {
        Query: { me: () => ({ id: 'u1', name: 'Una', username: 'una1' }) },
        User: { __resolveReference: ({ id }) => ({ id, name: 'Una', username: 'una1' }) },
      },
    },
    products: {
      sdl: `${FEDERATION_2} type Query { products: [Product!]! }
        type Product @key(fields: "upc") { upc: ID! weight: Int price: Int name: String }`,
      resolvers: {
        Query: {
          products: () =>
            ['p1', 'p2'].map((upc, at) => ({ upc, weight: 10 * (at + 1), price: at + 1, name: `name ${upc}` })),
        },
        Product: { __resolveReference: ({ upc }) => ({ upc, weight: 10, price: 1, name: `name ${String(upc)}` }) },
      },
    },
    stock: {
      sdl: `${FEDERATION_2} type Product @key(fields: "upc") { upc: ID! weight: Int @external price: Int @external
        inStock: Boolean shipping: Int @requires(fields: "price weight") label: String @requires(fields: "price weight") }`,
      resolvers: {
        Product: {
          inStock: ({ upc }) => upc === 'p1',
          shipping: ({ price, weight }) => Number(price) * Number(weight),
          label: ({ price, weight }) => `${String(price)}/${String(weight)}`,
        },
      },
    },
    reviews: {
      sdl: `${FEDERATION_2} type Review @key(fields: "id") { id: ID! body: String author: User @provides(fields: "username") product: Product }
        type User @key(fields: "id") { id: ID! username: String @external reviews: [Review] }
        type Product @key(fields: "upc") { upc: ID! reviews: [Review] }`,
      resolvers: {
        User: { reviews: () => [{ id: 'r1', product: { upc: 'p1' }, author: { id: 'u1', username: 'provided' } }] },
        Product: {
          reviews: ({ upc }) => [
            { id: 'r1', body: 'good', product: { upc }, author: { id: 'u1', username: 'provided' } },
          ],
        },
      },
    },
  });

  test('two fields with one requirement; what they require stays out of the answer', async () => {
    expect(await graph.ask('{ products { shipping label } }')).toEqual({
      data: {
        products: [
          { shipping: 10, label: '1/10' },
          { shipping: 40, label: '2/20' },
        ],
      },
    });
    expect(graph.asked()).toEqual(['products', 'stock']);
  });

  test('what is required is there under another name', async () => {
    expect(await graph.ask('{ products { price: name weight: upc shipping } }')).toEqual({
      data: {
        products: [
          { price: 'name p1', weight: 'p1', shipping: 10 },
          { price: 'name p2', weight: 'p2', shipping: 40 },
        ],
      },
    });
  });

  test('what is provided needs no hop', async () => {
    expect(await graph.ask('{ products { reviews { author { username id } } } }')).toMatchObject({
      data: { products: [{ reviews: [{ author: { username: 'provided', id: 'u1' } }] }, {}] },
    });
    expect(graph.asked()).toEqual(['products', 'reviews']);
  });

  test('entities that are met again by nesting are asked for once', async () => {
    expect(await graph.ask('{ products { reviews { product { name } author { name } } } }')).toEqual({
      data: {
        products: ['p1', 'p2'].map((upc) => ({
          reviews: [{ product: { name: `name ${upc}` }, author: { name: 'Una' } }],
        })),
      },
    });
    expect(graph.sent('users')).toEqual([{ __typename: 'User', id: 'u1' }]);
  });

  test('a requirement far below', async () => {
    expect(await graph.ask('{ me { reviews { product { shipping inStock } } } }')).toEqual({
      data: { me: { reviews: [{ product: { shipping: 10, inStock: true } }] } },
    });
    expect(graph.asked()).toEqual(['users', 'reviews', 'products', 'stock']);
  });
});

describe('requires-requires', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { thing: Thing } type Thing @key(fields: "id") { id: ID! }`,
      resolvers: { Query: { thing: () => ({ id: '1' }) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Thing @key(fields: "id") { id: ID! price: Int @inaccessible }`,
      resolvers: { Thing: { price: () => 11 } },
    },
    c: {
      sdl: `${FEDERATION_2} type Thing @key(fields: "id") { id: ID! price: Int @external discount: Int @requires(fields: "price") }`,
      resolvers: { Thing: { discount: ({ price }) => Number(price) - 1 } },
    },
    d: {
      sdl: `${FEDERATION_2} type Thing @key(fields: "id") { id: ID! discount: Int @external total: Int @requires(fields: "discount") }`,
      resolvers: { Thing: { total: ({ discount }) => Number(discount) * 2 } },
    },
  });

  test('a chain over four subgraphs, a link of which clients do not see', async () => {
    expect(await graph.ask('{ thing { total } }')).toEqual({ data: { thing: { total: 20 } } });
    expect(graph.asked()).toEqual(['a', 'b', 'c', 'd']);
    expect(graph.sent('d')).toEqual([{ __typename: 'Thing', id: '1', discount: 10 }]);
  });

  test('the hidden link cannot be asked for', async () => {
    expect(await graph.ask('{ thing { price } }')).toMatchObject({
      errors: [{ extensions: { code: 'INVALID_REQUEST' } }],
    });
  });
});

test('requires-circular: two subgraphs need each other, one step after the other', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { feed: [Post!]! }
        type Post @key(fields: "id") { id: ID! byExpert: Boolean! @external expertOnly: Boolean! @requires(fields: "byExpert") }`,
      resolvers: {
        Query: { feed: () => [{ id: '1' }, { id: '2' }] },
        Post: { expertOnly: ({ byExpert }) => byExpert === true },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Post @key(fields: "id") { id: ID! author: Author! expertOnly: Boolean! @external
          shown: Boolean! @requires(fields: "expertOnly") byExpert: Boolean! @requires(fields: "author { years }") }
        type Author @key(fields: "id") { id: ID! years: Int! @external }`,
      resolvers: {
        Post: {
          author: ({ id }) => ({ id: `a${String(id)}` }),
          byExpert: ({ author }) => JSON.stringify(author).includes('"years":9'),
          shown: ({ expertOnly }) => expertOnly !== true,
        },
      },
    },
    c: {
      sdl: `${FEDERATION_2} type Author @key(fields: "id") { id: ID! years: Int! }`,
      resolvers: { Author: { years: ({ id }) => (id === 'a1' ? 9 : 1) } },
    },
  });
  expect(await graph.ask('{ feed { shown } }')).toEqual({ data: { feed: [{ shown: false }, { shown: true }] } });
  expect(graph.asked()[0]).toBe('a');
  expect(graph.asked().at(-1)).toBe('b');
});

describe('requires-interface', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { a: User }
        type User @key(fields: "id") { id: ID! name: String! address: Address @external
          city: String @requires(fields: "address { city }")
          country: String @requires(fields: "address { ... on Home { country } }") }
        interface Address { id: ID! city: String }
        type Home implements Address @key(fields: "id") { id: ID! city: String @external country: String @external }
        type Work implements Address @key(fields: "id") { id: ID! city: String @external }`,
      resolvers: {
        Query: { a: () => ({ id: 'u1', name: 'first' }) },
        User: {
          city: ({ address }) => (JSON.stringify(address).includes('__typename') ? JSON.stringify(address) : 'no type'),
          country: ({ address }) => (JSON.stringify(address).includes('"country":"ZA"') ? 'ZA' : null),
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { b: User }
        type User @key(fields: "id") { id: ID! address: Address }
        interface Address { id: ID! city: String }
        type Home implements Address @key(fields: "id") { id: ID! city: String country: String }
        type Work implements Address @key(fields: "id") { id: ID! city: String }`,
      resolvers: {
        Query: { b: () => ({ id: 'u2' }) },
        User: {
          address: ({ id }) =>
            id === 'u1'
              ? { __typename: 'Home', id: 'h', city: 'Paarl', country: 'ZA' }
              : { __typename: 'Work', id: 'w', city: 'Rome' },
        },
      },
    },
  });

  test('through an interface, representations keep the type', async () => {
    expect(await graph.ask('{ a { city } }')).toMatchObject({
      data: { a: { city: expect.stringContaining('"city":"Paarl"') } },
    });
    expect(graph.asked()).toEqual(['a', 'b', 'a']);
  });

  test('with a condition that the type meets, and one that it does not', async () => {
    expect(await graph.ask('{ a { country } b { country } }')).toEqual({
      data: { a: { country: 'ZA' }, b: { country: null } },
    });
  });
});

describe('include-skip', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { item: Item } type Item @key(fields: "id") { id: ID! price: Int! }`,
      resolvers: { Query: { item: () => ({ id: '1', price: 700 }) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Item @key(fields: "id") { id: ID! price: Int! @external dear: Boolean @requires(fields: "price") }`,
      resolvers: { Item: { dear: ({ price }) => Number(price) > 500 } },
    },
    c: {
      sdl: `${FEDERATION_2} type Item @key(fields: "id") { id: ID! dear: Boolean @external
        never: Boolean @requires(fields: "dear") always: Boolean @requires(fields: "dear") }`,
      resolvers: {
        Item: {
          never: () => {
            throw new Error('asked for what is skipped');
          },
          always: ({ dear }) => dear,
        },
      },
    },
  });

  test.each([
    ['skip', 'query ($c: Boolean!) { item { price never @skip(if: $c) } }', { c: true }],
    ['include', 'query ($c: Boolean!) { item { price never @include(if: $c) } }', { c: false }],
    ['a default', 'query ($c: Boolean = true) { item { price never @skip(if: $c) } }', {}],
    ['a literal', '{ item { price never @include(if: false) } }', {}],
  ])('what is left out by %s asks nobody', async (_, query, variables) => {
    expect(await graph.ask(query, { variables })).toEqual({ data: { item: { price: 700 } } });
    expect(graph.asked()).toEqual(['a']);
  });

  test('what is left in goes its whole way, without helper fields in the answer', async () => {
    const query = 'query ($c: Boolean = false) { item { always @skip(if: $c) id @include(if: $c) } }';
    expect(await graph.ask(query)).toEqual({ data: { item: { always: true } } });
    expect(graph.asked()).toEqual(['a', 'b', 'c']);
  });

  test('the same document again, with another value', async () => {
    const query = 'query ($c: Boolean!) { item { id always @include(if: $c) } }';
    expect(await graph.ask(query, { variables: { c: true } })).toEqual({ data: { item: { id: '1', always: true } } });
    expect(await graph.ask(query, { variables: { c: false } })).toEqual({ data: { item: { id: '1' } } });
    expect(await graph.ask(query, { variables: { c: true } })).toEqual({ data: { item: { id: '1', always: true } } });
  });
});

const people = {
  sdl: `${FEDERATION_2} type Query { boss: Person } type Person @key(fields: "id") { id: ID! born: Int }`,
  resolvers: {
    Query: { boss: () => ({ id: '1' }) },
    Person: { born: ({ id }: Readonly<Record<string, unknown>>) => 1970 + Number(id) },
  },
};
const helperOf = ({ id }: Readonly<Record<string, unknown>>) => ({ __typename: 'Person', id: `${Number(id) + 1}` });
const ageOf = ({ born }: Readonly<Record<string, unknown>>) => 2026 - Number(born);

describe('a requirement of a type that leads to itself', () => {
  test.each([
    [
      'at once',
      'helper: Person',
      '{ boss { helper { age helper { age } } } }',
      { helper: { age: 54, helper: { age: 53 } } },
    ],
    ['through a list', 'helper: [Person]', '{ boss { helper { age } } }', { helper: [{ age: 54 }] }],
    ['through an interface', 'helper: Being', '{ boss { helper { ... on Person { age } } } }', { helper: { age: 54 } }],
    [
      'beside its own',
      'helper: Person',
      '{ boss { age rank helper { id age rank } } }',
      { age: 55, rank: 'R1', helper: { id: '2', age: 54, rank: 'R2' } },
    ],
  ])('%s', async (...[, field, query, boss]) => {
    const isList = field.includes('[');
    const graph = federate({
      ages: {
        sdl: `${FEDERATION_2} interface Being { id: ID! } scalar Years
          type Person implements Being @key(fields: "id") { id: ID! ${field} rank: String
            born: Int @external age: Years @requires(fields: "born") }`,
        resolvers: {
          Person: {
            helper: (person) => (isList ? [helperOf(person)] : helperOf(person)),
            rank: ({ id }) => `R${String(id)}`,
            age: ageOf,
          },
        },
      },
      people,
    });
    expect(await graph.ask(query)).toEqual({ data: { boss } });
    expect(new Set(graph.asked())).toEqual(new Set(['people', 'ages']));
  });
});
