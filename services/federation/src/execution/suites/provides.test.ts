import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

const wasteful = () => {
  throw new Error('a plan without this call is possible');
};

describe('nested-provides', () => {
  const graph = federate({
    categories: {
      sdl: `${FEDERATION_2} type Category @key(fields: "id") { id: ID! name: String }`,
      resolvers: { Category: { __resolveReference: wasteful } },
    },
    products: {
      sdl: `${FEDERATION_2} type Query { products: [Product] @provides(fields: "categories { id name parts { id name } }") }
        type Product @key(fields: "id") { id: ID! categories: [Category] @external }
        type Category @key(fields: "id") { id: ID! name: String @external parts: [Category] @external }`,
      resolvers: {
        Query: {
          products: () => [{ id: 'p1', categories: [{ id: 'c1', name: 'C1', parts: [{ id: 'c2', name: 'C2' }] }] }],
        },
        Product: { __resolveReference: wasteful },
      },
    },
    more: {
      sdl: `${FEDERATION_2} type Product @key(fields: "id") { id: ID! categories: [Category] @shareable }
        type Category @key(fields: "id") { id: ID! parts: [Category] @shareable }`,
      resolvers: { Product: { __resolveReference: wasteful }, Category: { __resolveReference: wasteful } },
    },
  });

  test('what is provided along the path needs no call, several levels deep', async () => {
    expect(await graph.ask('{ products { id categories { id name parts { id name } } } }')).toEqual({
      data: { products: [{ id: 'p1', categories: [{ id: 'c1', name: 'C1', parts: [{ id: 'c2', name: 'C2' }] }] }] },
    });
    expect(graph.asked()).toEqual(['products']);
  });
});

describe('provides-on-interface', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { media: Media @shareable }
        interface Media { id: ID! animals: [Animal] }
        interface Animal { id: ID! name: String }
        type Book implements Media @key(fields: "id") { id: ID! animals: [Animal] @shareable }
        type Dog implements Animal @key(fields: "id") { id: ID! name: String @external }
        type Cat implements Animal @key(fields: "id") { id: ID! name: String @external }`,
      resolvers: { Query: { media: wasteful } },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { media: Media @shareable @provides(fields: "animals { id name }") }
        interface Media { id: ID! animals: [Animal] }
        interface Animal { id: ID! name: String }
        type Book implements Media { id: ID! @shareable animals: [Animal] @external }
        type Dog implements Animal { id: ID! @external name: String @external }
        type Cat implements Animal { id: ID! @external name: String @external }`,
      resolvers: {
        Query: {
          media: () => ({
            __typename: 'Book',
            id: 'm1',
            animals: [
              { __typename: 'Dog', id: 'a1', name: 'Fido' },
              { __typename: 'Cat', id: 'a2', name: 'Tom' },
            ],
          }),
        },
      },
    },
    c: {
      sdl: `${FEDERATION_2} interface Media { id: ID! animals: [Animal] }
        interface Animal { id: ID! name: String }
        type Book implements Media @key(fields: "id") { id: ID! animals: [Animal] @shareable }
        type Dog implements Animal @key(fields: "id") { id: ID! name: String @shareable age: Int }
        type Cat implements Animal @key(fields: "id") { id: ID! name: String @shareable age: Int }`,
      resolvers: {
        Cat: { age: () => 4 },
        Dog: { age: () => 11 },
        Book: { animals: () => [{ __typename: 'Cat', id: 'a2', name: 'Tom' }] },
      },
    },
  });

  test('the root that provides all is taken', async () => {
    expect(await graph.ask('{ media { id animals { id name } } }')).toEqual({
      data: {
        media: {
          id: 'm1',
          animals: [
            { id: 'a1', name: 'Fido' },
            { id: 'a2', name: 'Tom' },
          ],
        },
      },
    });
    expect(graph.asked()).toEqual(['b']);
  });

  test('also where it is asked by fragments', async () => {
    const query =
      '{ media { ...M } } fragment M on Media { id animals { ...A } } fragment A on Animal { id ... { name } }';
    expect(await graph.ask(query)).toMatchObject({ data: { media: { id: 'm1', animals: [{ name: 'Fido' }, {}] } } });
    expect(graph.asked()).toEqual(['b']);
  });

  test('and a hop is made for the rest alone', async () => {
    expect(await graph.ask('{ media { animals { name ... on Cat { age } } } }')).toEqual({
      data: { media: { animals: [{ name: 'Fido' }, { name: 'Tom', age: 4 }] } },
    });
    expect(graph.asked()).toEqual(['b', 'c']);
    expect(graph.sent('c')).toEqual([{ __typename: 'Cat', id: 'a2' }]);
  });
});

describe('provides-on-union', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { media: [Media] @provides(fields: "... on Book { title }") }
        union Media = Book | Movie
        type Book @key(fields: "id") { id: ID! title: String @external }
        type Movie @key(fields: "id") { id: ID! }`,
      resolvers: {
        Query: {
          media: () => [
            { __typename: 'Book', id: 'm1', title: 'provided' },
            { __typename: 'Movie', id: 'm2' },
          ],
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! title: String @shareable }
        type Movie @key(fields: "id") { id: ID! title: String @shareable }`,
      resolvers: { Book: { __resolveReference: wasteful }, Movie: { title: () => 'hopped' } },
    },
  });

  test('one member is provided, the other one needs its hop', async () => {
    const query = '{ media { ... on Book { id title } ... on Movie { id title } } }';
    expect(await graph.ask(query)).toEqual({
      data: {
        media: [
          { id: 'm1', title: 'provided' },
          { id: 'm2', title: 'hopped' },
        ],
      },
    });
    expect(graph.sent('b')).toEqual([{ __typename: 'Movie', id: 'm2' }]);
  });
});
