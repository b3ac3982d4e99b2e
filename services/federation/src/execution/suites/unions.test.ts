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

/** A wrapper that both have, around a union with a member of its own in each. */
function part(member: string, field: string, { own }: { readonly own: boolean }) {
  const common = { __typename: 'Common', label: 'both' };
  const all = { items: [common, { __typename: member, [field]: `of ${member}` }] };
  return {
    sdl: `${FEDERATION_2} type Query { box${member}: Box shared: Box @shareable }
      type Box @key(fields: "id") { id: ID! wrapper: Wrapper @shareable ${own ? `own${member}: Wrapper` : ''} }
      type Wrapper @shareable { items: [Item!]! } union Item = Common | ${member}
      type Common @shareable { label: String } type ${member} { ${field}: String }`,
    resolvers: {
      Query: { [`box${member}`]: () => ({ id: 'w1' }), shared: () => ({ id: 'w1', wrapper: { items: [common] } }) },
      Box: {
        wrapper: ({ wrapper = all }: Record<string, unknown>) => wrapper,
        ...(own ? { [`own${member}`]: () => all } : {}),
      },
    },
  };
}

describe('partial-union-complex', () => {
  const graph = federate({ a: part('Apple', 'colour', { own: false }), b: part('Bread', 'flour', { own: true }) });
  const items = '{ items { __typename ... on Common { label } ... on Apple { colour } ... on Bread { flour } } }';
  const common = { __typename: 'Common', label: 'both' };

  // Two subgraphs can go on from there: only what both know is sure (public audit of federation engines).
  test.each([
    ['boxApple', 'a', { __typename: 'Apple', colour: null }],
    ['boxBread', 'b', { __typename: 'Bread', flour: null }],
  ])('%s: fields of a member that not all subgraphs of the path know stay null', async (...[root, subgraph, other]) => {
    expect(await graph.ask(`{ ${root} { wrapper ${items} } }`)).toEqual({
      data: { [root]: { wrapper: { items: [common, other] } } },
    });
    expect(graph.asked()).toEqual([subgraph]);
  });

  test('fragments on a member that the subgraph lacks are left out of its call', async () => {
    expect(await graph.ask('{ boxApple { wrapper { items { __typename ... on Bread { flour } } } } }')).toEqual({
      data: { boxApple: { wrapper: { items: [{ __typename: 'Common' }, { __typename: 'Apple' }] } } },
    });
    expect(graph.calls.map(({ query }) => query).join()).not.toContain('Bread');
  });

  test('what both have', async () => {
    expect(await graph.ask(`{ shared { wrapper ${items} } }`)).toEqual({
      data: { shared: { wrapper: { items: [common] } } },
    });
  });

  test('after a hop its own members count', async () => {
    expect(await graph.ask(`{ boxApple { ownBread ${items} } }`)).toEqual({
      data: { boxApple: { ownBread: { items: [common, { __typename: 'Bread', flour: 'of Bread' }] } } },
    });
    expect(graph.asked()).toEqual(['a', 'b']);
  });
});

describe('union-intersection', () => {
  const book = { __typename: 'Book', id: 'b1', title: 'Ulysses', pages: 700, shelf: 'B' };
  const song = { __typename: 'Song', id: 's1', title: 'Waterloo', notes: 90 };
  const film = { __typename: 'Film', id: 'f1', title: 'Metropolis', minutes: 153 };
  /** By its key, in both. */
  const found = (one: typeof book | typeof song | typeof film) => ({
    __resolveReference: ({ id }: Record<string, unknown>) => (id === one.id ? one : null),
  });
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} union Work = Book | Song union Loan = Book | Song
        type Query { work: Work @shareable workA: Work @shareable book: Book @shareable song: Work @shareable reader: Reader @shareable }
        type Reader { loan: Loan @shareable loanA: Loan book: Book @shareable song: Loan @shareable }
        type Book @key(fields: "id") { id: ID! title: String! @shareable pages: Int! }
        type Song @key(fields: "id") { id: ID! title: String! @shareable notes: Int! }`,
      resolvers: {
        Query: {
          work: () => book,
          workA: () => book,
          book: () => book,
          song: () => song,
          reader: () => ({ loan: book, loanA: book, book, song }),
        },
        Book: found(book),
        Song: found(song),
      },
    },
    b: {
      sdl: `${FEDERATION_2} union Work = Book | Film union Loan = Book | Film
        type Query { work: Work @shareable workB: Work @shareable book: Work @shareable reader: Reader @shareable }
        type Reader { loan: Loan @shareable loanB: Loan book: Loan @shareable }
        type Book @key(fields: "id") { id: ID! title: String! @shareable shelf: String! }
        type Film @key(fields: "id") { id: ID! title: String! @shareable minutes: Int! }`,
      resolvers: {
        Query: {
          work: () => book,
          workB: () => film,
          book: () => book,
          reader: () => ({ loan: book, loanB: film, book }),
        },
        Book: found(book),
        Film: found(film),
      },
    },
  });
  const titles = '{ __typename ... on Song { title } ... on Film { title } ... on Book { title } }';
  const all = '{ __typename ... on Song { title notes } ... on Film { minutes } ... on Book { title pages shelf } }';
  const titleOf = ({ __typename, title }: typeof book | typeof song) => ({ __typename, title });
  const wholeBook = { __typename: 'Book', title: 'Ulysses', pages: 700, shelf: 'B' };
  const wholeSong = { __typename: 'Song', title: 'Waterloo', notes: 90 };

  test.each([
    ['a member of the other one alone', '{ work { ... on Film { title } } }', { work: {} }],
    ['a member of both', '{ work { ... on Book { title } } }', { work: { title: 'Ulysses' } }],
    [
      'both kinds of members',
      '{ work { ... on Book { title } ... on Film { title } } }',
      { work: { title: 'Ulysses' } },
    ],
    [
      'an object here and a union there: the union is what clients see',
      `{ work ${titles} book ${titles} song ${titles} }`,
      { work: titleOf(book), book: titleOf(book), song: titleOf(song) },
    ],
    [
      'one level down, of the other one alone',
      '{ reader { loan { ... on Film { title } } } }',
      { reader: { loan: {} } },
    ],
    [
      'one level down, of both',
      '{ reader { loan { ... on Book { title } } } }',
      { reader: { loan: { title: 'Ulysses' } } },
    ],
    [
      'one level down, an object here and a union there',
      `{ reader { loan ${titles} book ${titles} song ${titles} } }`,
      { reader: { loan: titleOf(book), book: titleOf(book), song: titleOf(song) } },
    ],
    ['a hop that no object needs', '{ workA { ... on Film { title minutes } } }', { workA: {} }],
    ['a hop from a member', '{ workA { ... on Book { pages shelf } } }', { workA: { pages: 700, shelf: 'B' } }],
    [
      'hops from all that there is',
      `{ work ${all} book ${all} reader { loan ${all} book ${all} song ${all} } }`,
      { work: wholeBook, book: wholeBook, reader: { loan: wholeBook, book: wholeBook, song: wholeSong } },
    ],
    [
      'fields of one subgraph each',
      '{ reader { loanA { ... on Film { minutes } } loanB { ... on Film { minutes } } } workB { ... on Film { title } } }',
      { reader: { loanA: {}, loanB: { minutes: 153 } }, workB: { title: 'Metropolis' } },
    ],
  ])('%s', async (...[, query, data]) => {
    expect(await graph.ask(query)).toEqual({ data });
  });
});
