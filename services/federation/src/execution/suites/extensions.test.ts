import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate, type TestGraph } from '../../testing/federate.ts';

const people = [
  { id: 'p1', name: 'Ada', email: 'ada@example.com' },
  { id: 'p2', name: 'Ben', email: 'ben@example.com' },
];

/** Owner of Person, and a subgraph that adds to it by the given text. */
function withExtension(prelude: string, extension: string): TestGraph {
  return federate({
    people: {
      sdl: `${prelude}
        type Query { person(id: ID!): Person }
        type Person @key(fields: "id") { id: ID! name: String! email: String! }`,
      resolvers: {
        Query: { person: (_, { id }) => people.find((person) => person.id === id) },
        Person: { __resolveReference: ({ id }) => people.find((person) => person.id === id) },
      },
    },
    rooms: {
      sdl: `${prelude}
        type Query { guests: [Person!]! newestGuest: Person }
        ${extension}`,
      resolvers: {
        Query: { guests: () => [{ id: 'p2' }, { id: 'p1' }], newestGuest: () => ({ id: 'p1' }) },
        Person: { room: ({ id }) => `room of ${String(id)}` },
      },
    },
  });
}

describe.each([
  { suite: 'fed1-external-extends', prelude: '', word: 'type Person @extends' },
  { suite: 'fed1-external-extension', prelude: '', word: 'extend type Person' },
  { suite: 'fed2-external-extends', prelude: FEDERATION_2, word: 'type Person @extends' },
  { suite: 'fed2-external-extension', prelude: FEDERATION_2, word: 'extend type Person' },
])('$suite', ({ prelude, word }) => {
  const graph = withExtension(prelude, `${word} @key(fields: "id") { id: ID! @external room: String! }`);

  test('the key of an extension is read where it is', async () => {
    expect(await graph.ask('{ guests { id room } }')).toEqual({
      data: {
        guests: [
          { id: 'p2', room: 'room of p2' },
          { id: 'p1', room: 'room of p1' },
        ],
      },
    });
    expect(graph.asked()).toEqual(['rooms']);
  });

  test('other fields come of the owner, all entities in one call', async () => {
    expect(await graph.ask('{ guests { name id } }')).toEqual({
      data: {
        guests: [
          { name: 'Ben', id: 'p2' },
          { name: 'Ada', id: 'p1' },
        ],
      },
    });
    expect(graph.asked()).toEqual(['rooms', 'people']);
    expect(graph.sent('people')).toEqual([
      { __typename: 'Person', id: 'p2' },
      { __typename: 'Person', id: 'p1' },
    ]);
  });

  test('from the owner to the extension', async () => {
    expect(await graph.ask('{ person(id: "p2") { email room } }')).toEqual({
      data: { person: { email: 'ben@example.com', room: 'room of p2' } },
    });
    expect(graph.asked()).toEqual(['people', 'rooms']);
  });

  test('two roots of two subgraphs', async () => {
    const answer = await graph.ask('{ newestGuest { name } person(id: "p2") { room } }');
    expect(answer).toEqual({ data: { newestGuest: { name: 'Ada' }, person: { room: 'room of p2' } } });
  });
});

test('fed1-external-extends-resolvable: the other half of a key is collected first', async () => {
  const graph = federate({
    shelves: {
      sdl: 'type Query { books: [Book!]! } type Book @key(fields: "isbn") { isbn: ID! }',
      resolvers: { Query: { books: () => [{ isbn: 'b1' }] } },
    },
    editions: {
      sdl: `extend type Book @key(fields: "isbn") @key(fields: "isbn edition") {
        isbn: ID! @external
        edition: Int!
      }`,
      resolvers: { Book: { edition: () => 3 } },
    },
    prices: {
      sdl: `type Book @extends @key(fields: "isbn edition") {
        isbn: ID! @external
        edition: Int! @external
        price: Float!
      }`,
      resolvers: { Book: { price: ({ edition }) => Number(edition) * 10 } },
    },
  });
  expect(await graph.ask('{ books { price } }')).toEqual({ data: { books: [{ price: 30 }] } });
  expect(graph.asked()).toEqual(['shelves', 'editions', 'prices']);
  expect(graph.sent('prices')).toEqual([{ __typename: 'Book', isbn: 'b1', edition: 3 }]);
});

describe('mysterious-external', () => {
  const graph = federate({
    catalogue: {
      sdl: 'type Query { item: Item } type Item @key(fields: "code") { code: ID! label: String }',
      resolvers: {
        Query: { item: () => ({ code: 'i1', label: 'Lamp' }) },
        Item: { __resolveReference: ({ code }) => ({ code, label: `label of ${String(code)}` }) },
      },
    },
    stock: {
      sdl: `${FEDERATION_2} type Query { stocked: Item }
        extend type Item @key(fields: "code") { code: ID! @external pieces: Int }`,
      resolvers: { Query: { stocked: () => ({ code: 'i2', pieces: 7 }) } },
    },
  });

  test('a key that is external is answered without a hop', async () => {
    expect(await graph.ask('{ stocked { code pieces } }')).toEqual({ data: { stocked: { code: 'i2', pieces: 7 } } });
    expect(graph.asked()).toEqual(['stock']);
  });

  test('what the extension lacks is a hop away', async () => {
    expect(await graph.ask('{ stocked { label } }')).toEqual({ data: { stocked: { label: 'label of i2' } } });
    expect(graph.asked()).toEqual(['stock', 'catalogue']);
  });
});

test('simple-entity-call: by a key that is not the id that was asked for', async () => {
  const graph = federate({
    accounts: {
      sdl: `${FEDERATION_2} type Query { account: Account }
        type Account @key(fields: "id") @key(fields: "email") { id: ID! email: ID! }`,
      resolvers: { Query: { account: () => ({ id: 'a1', email: 'x@example.com' }) } },
    },
    names: {
      sdl: `${FEDERATION_2} extend type Account @key(fields: "email") { email: ID! @external nickname: String! }`,
      resolvers: { Account: { nickname: ({ email }) => `nick of ${String(email)}` } },
    },
  });
  expect(await graph.ask('{ account { id nickname } }')).toEqual({
    data: { account: { id: 'a1', nickname: 'nick of x@example.com' } },
  });
  expect(graph.sent('names')).toEqual([{ __typename: 'Account', email: 'x@example.com' }]);
});
