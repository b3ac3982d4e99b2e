import { GraphQLError, getIntrospectionQuery } from 'graphql/index.js';
import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../testing/federate.ts';
import { PlanLimitError, ProcessLostError } from './planner.ts';

function library(keptBytes?: number) {
  const sources = {
    books: {
      sdl: `${FEDERATION_2} type Query { books(first: Int = 2): [Book!]! book(id: ID!): Book shelf: Shelf! }
        type Mutation { lend(id: ID!): Book }
        type Shelf { name: String! books: [Book!]! }
        type Book @key(fields: "id") { id: ID! title: String! pages: Int }`,
      resolvers: {
        Query: {
          books: (_, { first }) =>
            ['b1', 'b2', 'b3'].slice(0, Number(first)).map((id) => ({ id, title: `T ${id}`, pages: 9 })),
          book: (_, { id }) => ({ id, title: `T ${String(id)}` }),
          shelf: () => ({ name: 'S', books: ['b1', 'b2'].map((id) => ({ id, title: `T ${id}` })) }),
        },
      },
    },
    reviews: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! stars: Int! critic: Critic words: [String!] }
        type Critic { name: String! age: Int! }`,
      resolvers: {
        Book: { stars: () => 5, critic: () => ({ name: 'C', age: 40 }), words: () => ['fine'] },
      },
    },
  } satisfies Parameters<typeof federate>[0];
  return federate(sources, {}, keptBytes);
}

const refused = (message: string) => ({
  errors: [expect.objectContaining({ message: expect.stringContaining(message) })],
});

describe('requests', () => {
  const graph = library();

  test.each([
    ['no GraphQL', '{ books {', {}, 'Syntax Error'],
    ['an unknown field', '{ nothing }', {}, 'Cannot query field "nothing"'],
    ['two operations and no name', 'query A { shelf { name } } query B { shelf { name } }', {}, 'operationName'],
    ['an unknown operation', 'query A { shelf { name } }', { operationName: 'B' }, 'operationName'],
    ['no operation', 'fragment F on Shelf { name } ', {}, 'Fragment "F" is never used'],
    ['a variable of a wrong type', 'query ($n: Int) { books(first: $n) { id } }', { variables: { n: 'x' } }, '"$n"'],
    ['a variable that is missing', 'query ($id: ID!) { book(id: $id) { id } }', {}, '"$id"'],
    ['a name that is no key of JavaScript', '{ __proto__: shelf { name } }', {}, '__proto__'],
  ])('%s is refused, and no subgraph is asked', async (...[, query, more, message]) => {
    const answer = await graph.ask(query, more);
    expect(answer).toEqual(refused(message));
    expect(answer.errors?.[0]?.extensions).toEqual({ code: 'INVALID_REQUEST' });
    expect(graph.asked()).toEqual([]);
  });

  test('the operation of the name is executed', async () => {
    const query = 'query A { shelf { name } } query B { book(id: "x") { title } }';
    expect(await graph.ask(query, { operationName: 'A' })).toEqual({ data: { shelf: { name: 'S' } } });
    expect(await graph.ask(query, { operationName: 'B' })).toEqual({ data: { book: { title: 'T x' } } });
  });

  test('defaults of arguments and of variables count', async () => {
    const query = 'query ($n: Int = 1) { books { id } one: books(first: $n) { id } }';
    expect(await graph.ask(query)).toEqual({ data: { books: [{ id: 'b1' }, { id: 'b2' }], one: [{ id: 'b1' }] } });
    expect(await graph.ask(query, { variables: { n: 3 } })).toMatchObject({ data: { one: [{}, {}, { id: 'b3' }] } });
  });

  test('fields come in the order that they are asked for, and nothing besides', async () => {
    const answer = await graph.ask(
      'query { b: books(first: 1) { stars ...F title } } fragment F on Book { pages name: title stars }',
    );
    expect(JSON.stringify(answer)).toBe('{"data":{"b":[{"stars":5,"pages":9,"name":"T b1","title":"T b1"}]}}');
  });

  test('names that objects of JavaScript have by themselves', async () => {
    const query = '{ constructor: shelf { toString: name } book(id: "b1") { valueOf: stars hasOwnProperty: pages } }';
    expect(await graph.ask(query)).toEqual({
      data: { constructor: { toString: 'S' }, book: { valueOf: 5, hasOwnProperty: null } },
    });
  });
});

const plansOf = async (graph: ReturnType<typeof library>, query: string) => {
  const before = graph.plans();
  expect((await graph.ask(query)).errors).toBeUndefined();
  return graph.plans() - before;
};

describe('operations that are kept', () => {
  test('are planned once for each name of an operation', async () => {
    const graph = library();
    const query = 'query A { shelf { name } } query B { books { id } }';
    for (const [operationName, plans] of [
      ['A', 1],
      ['B', 2],
      ['A', 2],
      ['B', 2],
    ] as const) {
      expect(await graph.ask(query, { operationName })).toHaveProperty('data');
      expect(graph.plans()).toBe(plans);
    }
  });

  test('are fewer where they are large', async () => {
    const graph = library();
    const small = Array.from({ length: 100 }, (_, n) => `{ shelf { name } } # ${n}`);
    const large = small.map((query) => `${query}${' '.repeat(14_000)}`);
    for (const query of [...small, ...small]) await graph.ask(query);
    expect(graph.plans()).toBe(small.length);
    for (const query of large) await graph.ask(query);
    expect([await plansOf(graph, large.at(-1) ?? ''), await plansOf(graph, large[0] ?? '')]).toEqual([0, 1]);
  });

  test('are none where there is no memory for them', async () => {
    const graph = library(1);
    const query = '{ shelf { name } }';
    expect([await plansOf(graph, query), await plansOf(graph, query)]).toEqual([1, 1]);
  });

  test('are kept with the variants that were asked for last', async () => {
    const graph = library();
    const names = ['a', 'b', 'c', 'd', 'e'];
    const query = `query (${names.map((name) => `$${name}: Boolean!`).join(' ')}) {
      ${names.map((name) => `${name}: shelf @include(if: $${name}) { name }`).join(' ')} }`;
    const plansFor = async (bits: number) => {
      const before = graph.plans();
      const variables = Object.fromEntries(names.map((name, at) => [name, (bits & (1 << at)) > 0]));
      expect((await graph.ask(query, { variables })).errors).toBeUndefined();
      return graph.plans() - before;
    };
    for (let bits = 1; bits <= 17; bits += 1) expect([bits, await plansFor(bits)]).toEqual([bits, 1]);
    expect([await plansFor(17), await plansFor(2), await plansFor(1)]).toEqual([0, 0, 1]);
  });
});

describe('where no plan is made', () => {
  test('as the planner was lost, the operation is planned anew when it comes again', async () => {
    const graph = library();
    graph.planFault = new ProcessLostError('It has ended');
    await expect(graph.ask('{ shelf { name } }')).rejects.toMatchObject({ code: 'UNAVAILABLE' });
    graph.planFault = undefined;
    expect(await graph.ask('{ shelf { name } }')).toEqual({ data: { shelf: { name: 'S' } } });
  });

  test('as that takes too long, it is not tried again', async () => {
    const graph = library();
    graph.planFault = new PlanLimitError('It takes too long');
    const beyond = { errors: [expect.objectContaining({ extensions: { code: 'PLAN_LIMIT_EXCEEDED' } })] };
    expect(await graph.ask('{ shelf { name } }')).toEqual(beyond);
    graph.planFault = undefined;
    expect([await graph.ask('{ shelf { name } }'), graph.plans()]).toEqual([beyond, 1]);
  });
});

describe('introspection', () => {
  const graph = library();

  test('is answered from what clients see, beside other fields', async () => {
    const answer = await graph.ask(
      `query ($n: String!) { type: __type(name: $n) { name fields { name } } __typename shelf { __typename name }
        no: __type(name: "join__Graph") { name } schema: __schema { queryType { name } } }`,
      { variables: { n: 'Book' } },
    );
    const names = ['critic', 'id', 'pages', 'stars', 'title', 'words'];
    expect(answer.errors).toBeUndefined();
    expect(answer.data).toMatchObject({
      __typename: 'Query',
      shelf: { __typename: 'Shelf', name: 'S' },
      no: null,
      schema: { queryType: { name: 'Query' } },
    });
    expect(JSON.stringify(answer.data?.['type'])).toContain('"name":"Book"');
    for (const name of names) expect(JSON.stringify(answer.data?.['type'])).toContain(`{"name":"${name}"}`);
    expect(graph.asked()).toEqual(['books']);
  });

  test('alone it asks no subgraph', async () => {
    const answer = await graph.ask(getIntrospectionQuery());
    expect(answer.errors).toBeUndefined();
    expect(JSON.stringify(answer.data)).not.toContain('join__');
    expect(await graph.ask('{ __typename }')).toEqual({ data: { __typename: 'Query' } });
    expect(await graph.ask('mutation { __typename }')).toEqual({ data: { __typename: 'Mutation' } });
    expect(graph.asked()).toEqual([]);
  });
});

describe('errors of subgraphs', () => {
  test('come with the path of the client, through entities and lists', async () => {
    const graph = library();
    graph.interfere = ({ subgraph }) =>
      subgraph === 'reviews'
        ? {
            data: {
              _entities: [
                { __typename: 'Book', critic: null },
                { __typename: 'Book', critic: { name: 'D' } },
              ],
            },
            errors: [{ message: 'no critic', path: ['_entities', 0, 'critic'], extensions: { code: 'SHY', more: 1 } }],
          }
        : undefined;
    expect(await graph.ask('{ shelf { books { critic { name } } } }')).toEqual({
      data: { shelf: { books: [{ critic: null }, { critic: { name: 'D' } }] } },
      errors: [
        {
          message: 'no critic',
          path: ['shelf', 'books', 0, 'critic'],
          extensions: { code: 'SHY', more: 1, service: 'reviews' },
        },
      ],
    });
  });

  test('of one entity in two places are in both', async () => {
    const graph = library();
    graph.interfere = ({ subgraph }) => {
      if (subgraph === 'books') return { data: { books: [1, 1].map(() => ({ __typename: 'Book', id: 'same' })) } };
      return { data: { _entities: [{ words: null }] }, errors: [{ message: 'none', path: ['_entities', 0, 'words'] }] };
    };
    const { data, errors } = await graph.ask('{ books { words } }');
    expect(data).toEqual({ books: [{ words: null }, { words: null }] });
    expect(errors?.map(({ path }) => path)).toEqual([
      ['books', 0, 'words'],
      ['books', 1, 'words'],
    ]);
    expect(errors?.[0]?.extensions).toEqual({ code: 'SUBGRAPH_ERROR', service: 'reviews' });
  });

  test('a null where none may be takes its object away, with one error', async () => {
    const graph = library();
    graph.interfere = ({ subgraph }) =>
      subgraph === 'reviews' ? { data: { _entities: [{ critic: { name: 'E', age: null } }] } } : undefined;
    expect(await graph.ask('{ book(id: "b1") { title critic { name age } } }')).toEqual({
      data: { book: { title: 'T b1', critic: null } },
      errors: [
        {
          message: 'Cannot return null for non-nullable field Critic.age',
          path: ['book', 'critic', 'age'],
          extensions: { code: 'INVALID_SUBGRAPH_ANSWER' },
        },
      ],
    });
  });

  test('up to the root, never without an error', async () => {
    const graph = library();
    graph.interfere = ({ subgraph }) => {
      if (subgraph === 'reviews') throw new Error('connect ECONNREFUSED 10.1.2.3');
      return undefined;
    };
    expect(await graph.ask('{ shelf { books { title stars } } }')).toEqual({
      data: null,
      errors: [
        {
          message: 'The service did not answer',
          path: ['shelf', 'books'],
          extensions: { code: 'SUBGRAPH_UNAVAILABLE', service: 'reviews' },
        },
      ],
    });
  });

  test('a subgraph that fails leaves the others their answer', async () => {
    const graph = library();
    graph.interfere = ({ subgraph }) => {
      if (subgraph === 'reviews') throw new GraphQLError('It is too busy', { extensions: { code: 'BUSY' } });
      return undefined;
    };
    expect(await graph.ask('{ book(id: "b1") { title critic { name } } }')).toEqual({
      data: { book: { title: 'T b1', critic: null } },
      errors: [{ message: 'It is too busy', path: ['book'], extensions: { code: 'BUSY', service: 'reviews' } }],
    });
  });

  test('each root field of a failed call has one', async () => {
    const graph = library();
    graph.interfere = () => ({ errors: [{ message: 'broken' }] });
    const { data, errors } = await graph.ask('{ a: book(id: "b1") { id } b: book(id: "b2") { id } }');
    expect(data).toEqual({ a: null, b: null });
    expect(errors?.map(({ path }) => path)).toEqual([['a'], ['b']]);
  });
});

describe('subgraphs that answer wrongly', () => {
  test.each([
    ['nothing', {}],
    ['text', { data: 'text' }],
    ['fewer entities than were asked for', { data: { _entities: [{ critic: { name: 'F' } }] } }],
    ['more entities than were asked for', { data: { _entities: [1, 2, 3].map(() => ({ critic: { name: 'F' } })) } }],
    ['no list of entities', { data: { _entities: {} } }],
  ])('%s', async (_, answer) => {
    const graph = library();
    graph.interfere = ({ subgraph }) => (subgraph === 'reviews' ? answer : undefined);
    expect(await graph.ask('{ books { id critic { name } } }')).toEqual({
      data: { books: ['b1', 'b2'].map((id) => ({ id, critic: null })) },
      errors: [
        {
          message: expect.stringContaining('The service answered'),
          path: ['books'],
          extensions: { code: 'INVALID_SUBGRAPH_ANSWER', service: 'reviews' },
        },
      ],
    });
  });

  test.each([
    ['a text for an object', { critic: 'C' }, { critic: null }],
    ['an object for a text', { critic: { name: {} } }, { critic: null }],
    ['an object for a list', { words: { length: 1 } }, { words: null }],
    ['a list in a list', { words: [['x']] }, { words: null }],
  ])('%s', async (_, entity, expected) => {
    const graph = library();
    graph.interfere = ({ subgraph }) => (subgraph === 'reviews' ? { data: { _entities: [entity] } } : undefined);
    const field = 'critic' in entity ? 'critic { name }' : 'words';
    expect(await graph.ask(`{ book(id: "b1") { ${field} } }`)).toEqual({
      data: { book: expected },
      errors: [expect.objectContaining({ extensions: { code: 'INVALID_SUBGRAPH_ANSWER' } })],
    });
  });

  test('100,000 entities, each with an error, are no more work than they are many', async () => {
    const many = 100_000;
    const graph = library();
    graph.interfere = ({ subgraph }) => {
      if (subgraph === 'books')
        return { data: { books: Array.from({ length: many }, (_, id) => ({ __typename: 'Book', id })) } };
      const errors = Array.from({ length: many }, (_, at) => ({
        message: 'no words',
        path: ['_entities', at, 'words'],
      }));
      return { data: { _entities: Array.from({ length: many }, () => ({ words: null })) }, errors };
    };
    const { data, errors } = await graph.ask('{ books { words } }');
    expect(data?.['books']).toHaveLength(many);
    // More are of no use to people.
    expect(errors).toHaveLength(1000);
    expect(errors?.at(-1)?.path).toEqual(['books', 999, 'words']);
  });

  test('an error of each of many places that share an entity', async () => {
    const many = 20_000;
    const graph = library();
    graph.interfere = ({ subgraph }) => {
      if (subgraph === 'books')
        return { data: { books: Array.from({ length: many }, () => ({ __typename: 'Book', id: 1 })) } };
      const errors = Array.from({ length: many }, () => ({ message: 'no words', path: ['_entities', 0, 'words'] }));
      return { data: { _entities: [{ words: null }] }, errors };
    };
    const { errors = [] } = await graph.ask('{ books { words } }');
    expect(errors.length).toBeGreaterThanOrEqual(1000);
    expect(errors.length).toBeLessThan(2 * many);
  });

  test('errors that are none, and keys that are prototypes, do no harm', async () => {
    const graph = library();
    const data: unknown = JSON.parse(
      '{"_entities":[{"__proto__":{"polluted":1},"critic":{"__proto__":{"polluted":1},"name":"G"}}]}',
    );
    graph.interfere = ({ subgraph }) =>
      subgraph === 'reviews' ? { data, errors: [null, 7, { message: 8, path: 'x' }] } : undefined;
    const answer = await graph.ask('{ book(id: "b1") { critic { name } } }');
    expect(answer.data).toEqual({ book: { critic: { name: 'G' } } });
    expect(answer.errors).toHaveLength(3);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });
});

test('an aborted request ends with the reason of its signal, and asks nobody any more', async () => {
  const graph = library();
  const controller = new AbortController();
  graph.interfere = () => {
    controller.abort(new Error('over'));
    return undefined;
  };
  const request = { query: '{ books { stars } }', context: undefined, caller: undefined };
  await expect(graph.graph.execute(request, controller.signal)).rejects.toThrow('over');
  expect(graph.asked()).toEqual(['books']);
});

test('a graph tells its subgraphs and what clients see', () => {
  const { graph } = library();
  expect([...graph.subgraphs]).toEqual([
    ['books', 'http://books/api/graphql'],
    ['reviews', 'http://reviews/api/graphql'],
  ]);
  expect(graph.apiSchema.getType('Book')).toBeDefined();
  expect(graph.apiSchema.getType('join__Graph')).toBeUndefined();
});
