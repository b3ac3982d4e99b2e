import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

test('complex-entity-call: keys of lists and of objects, over several hops', async () => {
  const graph = federate({
    orders: {
      sdl: `${FEDERATION_2} type Query { baskets: [Basket!]! }
        type Basket @key(fields: "items { sku }") { items: [Item!]! }
        type Item @key(fields: "sku") { sku: ID! }`,
      resolvers: { Query: { baskets: () => [{ items: [{ sku: 's1' }, { sku: 's2' }] }] } },
    },
    items: {
      sdl: `${FEDERATION_2} type Item @key(fields: "sku") @key(fields: "sku kind { id tag }") {
          sku: ID! kind: Kind @shareable }
        type Kind @shareable { id: ID! tag: String }`,
      resolvers: {
        Item: { kind: ({ sku }) => ({ id: `k-${String(sku)}`, tag: 'new' }) },
      },
    },
    baskets: {
      sdl: `${FEDERATION_2}
        type Basket @key(fields: "items { sku kind { id tag } }") @key(fields: "items { sku }", resolvable: false) {
          items: [Item!]! @external first: Item @shareable }
        type Item @key(fields: "sku kind { id tag }") { sku: ID! kind: Kind @shareable }
        type Kind @shareable { id: ID! tag: String }`,
      resolvers: { Basket: { first: ({ items }) => (Array.isArray(items) ? items[0] : undefined) } },
    },
    prices: {
      sdl: `${FEDERATION_2} type Item @key(fields: "sku kind { id tag }") {
          sku: ID! @external kind: Kind @external price: Int }
        type Kind { id: ID! @external tag: String @external }`,
      resolvers: { Item: { price: ({ kind }) => JSON.stringify(kind).length } },
    },
  });
  expect(await graph.ask('{ baskets { items { sku price } first { sku } } }')).toEqual({
    data: {
      baskets: [
        {
          items: [
            { sku: 's1', price: 25 },
            { sku: 's2', price: 25 },
          ],
          first: { sku: 's1' },
        },
      ],
    },
  });
  expect(graph.sent('prices')).toContainEqual({ __typename: 'Item', sku: 's1', kind: { id: 'k-s1', tag: 'new' } });
  expect(graph.sent('baskets')).toEqual([
    {
      __typename: 'Basket',
      items: [
        { sku: 's1', kind: { id: 'k-s1', tag: 'new' } },
        { sku: 's2', kind: { id: 'k-s2', tag: 'new' } },
      ],
    },
  ]);
});

test('keys-mashup: each door has one key, and another one in each direction', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { parts: [Part!]! }
        type Part @key(fields: "id") @key(fields: "id serial", resolvable: false) @key(fields: "id pair { one two }", resolvable: false) {
          id: ID! serial: String! @external pair: Pair! @external }
        type Pair { one: Int @external two: Int @external }`,
      resolvers: { Query: { parts: () => [{ id: '1' }] } },
    },
    b: {
      sdl: `${FEDERATION_2}
        type Part @key(fields: "id") @key(fields: "id serial") { id: ID! serial: String! @shareable pair: Pair! @shareable }
        type Pair @shareable { one: Int two: Int }`,
      resolvers: { Part: { serial: ({ id }) => `s${String(id)}`, pair: () => ({ one: 1, two: 2 }) } },
    },
    c: {
      sdl: `${FEDERATION_2}
        type Part @key(fields: "id pair { one two }") { id: ID! pair: Pair! @external sum: Int! }
        type Pair { one: Int @external two: Int @external }`,
      resolvers: { Part: { sum: ({ pair }) => (JSON.stringify(pair) === '{"one":1,"two":2}' ? 3 : 0) } },
    },
  });
  expect(await graph.ask('{ parts { sum serial } }')).toEqual({ data: { parts: [{ sum: 3, serial: 's1' }] } });
  expect(graph.asked()).toEqual(['a', 'b', 'c']);
});

test('null-keys: an entry that was not found keeps its place, and nobody is asked for it', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { loans: [Loan] } type Loan { book: Book }
        type Book @key(fields: "isbn") { isbn: ID! }`,
      resolvers: { Query: { loans: () => ['x', 'gone', 'y'].map((isbn) => ({ book: { isbn } })) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Book @key(fields: "isbn") @key(fields: "code") { isbn: ID! code: ID! }`,
      resolvers: {
        Book: { __resolveReference: ({ isbn }) => (isbn === 'gone' ? null : { isbn, code: `c-${String(isbn)}` }) },
      },
    },
    c: {
      sdl: `${FEDERATION_2} type Book @key(fields: "code") { code: ID! title: String }`,
      resolvers: { Book: { title: ({ code }) => `title of ${String(code)}` } },
    },
  });
  expect(await graph.ask('{ loans { book { title } } }')).toEqual({
    data: {
      loans: [{ book: { title: 'title of c-x' } }, { book: { title: null } }, { book: { title: 'title of c-y' } }],
    },
  });
  expect(graph.sent('c')).toEqual([
    { __typename: 'Book', code: 'c-x' },
    { __typename: 'Book', code: 'c-y' },
  ]);
});

test('node: the way goes past the subgraph that has the id alone', async () => {
  const graph = federate({
    roots: {
      sdl: `${FEDERATION_2} type Query { item: Node } interface Node { id: ID! }
        type Lamp implements Node @key(fields: "id") { id: ID! }
        type Chair implements Node @key(fields: "id") { id: ID! }`,
      resolvers: { Query: { item: () => ({ __typename: 'Lamp', id: 'l1' }) } },
    },
    dead: {
      sdl: `${FEDERATION_2} interface Node { id: ID! } type Lamp implements Node @key(fields: "id") { id: ID! }`,
      resolvers: {
        Lamp: {
          __resolveReference: () => {
            throw new Error('a dead end');
          },
        },
      },
    },
    lamps: {
      sdl: `${FEDERATION_2} interface Node { id: ID! }
        type Lamp implements Node @key(fields: "id") { id: ID! watts: Int }
        type Chair implements Node @key(fields: "id") { id: ID! legs: Int }`,
      resolvers: { Lamp: { watts: () => 40 }, Chair: { legs: () => 4 } },
    },
  });
  const query = '{ item { __typename id ... on Lamp { watts } ... on Chair { legs } } }';
  expect(await graph.ask(query)).toEqual({ data: { item: { __typename: 'Lamp', id: 'l1', watts: 40 } } });
  expect(graph.asked()).toEqual(['roots', 'lamps']);
});

describe('children without a key', () => {
  test('parent-entity-call: entered again through the parent, by its compound key', async () => {
    const graph = federate({
      a: {
        sdl: `${FEDERATION_2} type Query { houses: [House!]! }
          type House @key(fields: "id town") { id: ID! town: ID! }`,
        resolvers: { Query: { houses: () => [{ id: 'h1', town: 't' }] } },
      },
      b: {
        sdl: `${FEDERATION_2} type House @key(fields: "id town") { id: ID! town: ID! roof: Roof @shareable }
          type Roof { material: String @shareable }`,
        resolvers: { House: { roof: () => ({ material: 'tiles' }) } },
      },
      c: {
        sdl: `${FEDERATION_2} type House @key(fields: "id town") { id: ID! town: ID! roof: Roof @shareable }
          type Roof { slope: Int material: String @shareable }`,
        resolvers: { House: { roof: () => ({ slope: 30, material: 'tiles' }) } },
      },
    });
    expect(await graph.ask('{ houses { roof { slope material } } }')).toEqual({
      data: { houses: [{ roof: { slope: 30, material: 'tiles' } }] },
    });
    expect(graph.asked()).toEqual(['a', 'c']);
    expect(graph.sent('c')).toEqual([{ __typename: 'House', id: 'h1', town: 't' }]);
  });

  test('parent-entity-call-complex: halves are put together, and the id of one leads on', async () => {
    const graph = federate({
      a: {
        sdl: `${FEDERATION_2} type House @key(fields: "id") { id: ID! @external roof: Roof @shareable }
          type Roof { slope: Int }`,
        resolvers: { House: { roof: () => ({ slope: 12 }) } },
      },
      b: {
        sdl: `${FEDERATION_2} type House @key(fields: "id") { id: ID! @external roof: Roof @shareable }
          type Roof { id: ID! @shareable }`,
        resolvers: { House: { roof: ({ id }) => ({ id: `roof-${String(id)}` }) } },
      },
      c: {
        sdl: `${FEDERATION_2} type Roof @key(fields: "id") { id: ID! @shareable maker: String }`,
        resolvers: { Roof: { maker: ({ id }) => `maker of ${String(id)}` } },
      },
      d: {
        sdl: `${FEDERATION_2} type Query { house: House } type House @key(fields: "id") { id: ID! owner: String }`,
        resolvers: { Query: { house: () => ({ id: '5', owner: 'Eve' }) } },
      },
    });
    expect(await graph.ask('{ house { owner roof { slope id maker } } }')).toEqual({
      data: { house: { owner: 'Eve', roof: { slope: 12, id: 'roof-5', maker: 'maker of roof-5' } } },
    });
    expect([...graph.asked()].sort()).toEqual(['a', 'b', 'c', 'd']);
  });
});

/** A service with a requirement, that knows houses by these keys. */
function areasBy(keys: string) {
  return {
    sdl: `${FEDERATION_2} type House ${keys} { id: ID! town: ID! width: Int @external
      area: String @requires(fields: "width") }`,
    resolvers: { House: { area: ({ width }: Readonly<Record<string, unknown>>) => `10 by ${String(width)}` } },
  };
}

describe('a field with a requirement, of a type that its subgraph knows by several keys', () => {
  const houses = {
    sdl: `${FEDERATION_2} type Query { house: House } type House @key(fields: "id") { id: ID! width: Int }`,
    resolvers: { Query: { house: () => ({ id: 'h1', width: 4 }) } },
  };

  test.each([
    ['one that others do not know comes last', '@key(fields: "id") @key(fields: "town")'],
    ['one has all of another one', '@key(fields: "id") @key(fields: "id town")'],
    ['one opens nothing', '@key(fields: "id") @key(fields: "town", resolvable: false)'],
  ])('%s', async (_, keys) => {
    const graph = federate({ areas: areasBy(keys), houses });
    expect(await graph.ask('{ house { area } }')).toEqual({ data: { house: { area: '10 by 4' } } });
    expect(graph.sent('areas')).toEqual([{ __typename: 'House', id: 'h1', width: 4 }]);
  });

  test('the key that all know may be of two fields', async () => {
    const both = '@key(fields: "id town") @key(fields: "town")';
    const graph = federate({
      areas: areasBy(both),
      houses: {
        sdl: houses.sdl.replace('@key(fields: "id") { id: ID!', '@key(fields: "id town") { id: ID! town: ID!'),
        resolvers: { Query: { house: () => ({ id: 'h1', town: 't', width: 4 }) } },
      },
    });
    expect(await graph.ask('{ house { area } }')).toEqual({ data: { house: { area: '10 by 4' } } });
  });
});
