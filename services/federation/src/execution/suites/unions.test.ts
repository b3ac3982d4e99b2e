import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

test('partial-union: a union that is narrower in one subgraph', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { event: Event } type Event @shareable { result: Result }
        union Result = Done | Failed type Done @shareable { at: Int } type Failed @shareable { why: String }`,
      resolvers: { Query: { event: () => ({ result: { __typename: 'Failed', why: 'broken' } }) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { last: Event } type Event @shareable { result: Result }
        union Result = Done type Done @shareable { at: Int }`,
      resolvers: { Query: { last: () => ({ result: { __typename: 'Done', at: 3 } }) } },
    },
  });
  const result = '{ result { ... on Done { at } ... on Failed { why } } }';
  expect(await graph.ask(`{ event ${result} last ${result} }`)).toEqual({
    data: { event: { result: { why: 'broken' } }, last: { result: { at: 3 } } },
  });
});

const part = (member: string, field: string, value: object | null) => ({
  sdl: `${FEDERATION_2} type Query { wrapper${member}: Wrapper }
    type Wrapper @key(fields: "id") { id: ID! item${member}: Item }
    union Item = Common | ${member}
    type Common @shareable { id: ID! } type ${member} { ${field}: String! }`,
  resolvers: {
    Query: { [`wrapper${member}`]: () => ({ id: 'w1' }) },
    Wrapper: { [`item${member}`]: () => value },
  },
});

describe('partial-union-complex', () => {
  const graph = federate({
    a: part('Apple', 'colour', { __typename: 'Apple', colour: 'red' }),
    b: part('Bread', 'flour', { __typename: 'Common', id: 'c1' }),
  });

  test('fragments on members that the subgraph lacks are left out of its call', async () => {
    const item = '{ __typename ... on Common { id } ... on Apple { colour } ... on Bread { flour } }';
    expect(await graph.ask(`{ wrapperApple { itemApple ${item} itemBread ${item} } }`)).toEqual({
      data: {
        wrapperApple: {
          itemApple: { __typename: 'Apple', colour: 'red' },
          itemBread: { __typename: 'Common', id: 'c1' },
        },
      },
    });
    expect(graph.calls.find(({ subgraph }) => subgraph === 'a')?.query).not.toContain('Bread');
    expect(graph.calls.find(({ subgraph }) => subgraph === 'b')?.query).not.toContain('Apple');
  });

  test('nothing but a fragment on such a member', async () => {
    expect(await graph.ask('{ wrapperBread { itemBread { ... on Apple { colour } } } }')).toEqual({
      data: { wrapperBread: { itemBread: {} } },
    });
  });
});

describe('union-intersection', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} union Media = Book | Movie type Query { media: Media @shareable book: Media @shareable viewer: Viewer @shareable }
        type Book { title: String! @shareable } type Movie { minutes: Int @shareable }
        type Viewer { media: Media @shareable }`,
      resolvers: {
        Query: {
          media: () => ({ __typename: 'Book', title: 'B' }),
          book: () => ({ __typename: 'Book', title: 'B' }),
          viewer: () => ({ media: { __typename: 'Book', title: 'B' } }),
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} union Media = Book | Song type Query { media: Media @shareable book: Book @shareable viewer: Viewer @shareable }
        type Book { title: String! @shareable } type Song { notes: Int }
        type Viewer { media: Media @shareable song: Media }`,
      resolvers: {
        Query: {
          media: () => ({ __typename: 'Book', title: 'B' }),
          book: () => ({ __typename: 'Book', title: 'B' }),
          viewer: () => ({ media: { __typename: 'Book', title: 'B' }, song: { __typename: 'Song', notes: 7 } }),
        },
      },
    },
  });

  test('members that a subgraph lacks are dropped, the public type is the wider one', async () => {
    const fields = '{ __typename ... on Book { title } ... on Movie { minutes } ... on Song { notes } }';
    const book = { __typename: 'Book', title: 'B' };
    expect(await graph.ask(`{ media ${fields} viewer { media ${fields} song ${fields} } }`)).toEqual({
      data: { media: book, viewer: { media: book, song: { __typename: 'Song', notes: 7 } } },
    });
  });

  test('an object here and a union there', async () => {
    expect(await graph.ask('{ book { __typename ... on Book { title } } }')).toEqual({
      data: { book: { __typename: 'Book', title: 'B' } },
    });
  });
});
