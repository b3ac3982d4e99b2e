import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

const part = (fields: string, value: object) => ({
  sdl: `${FEDERATION_2} type Query { menu: Menu @shareable dishes: [Dish!]! @shareable }
    type Menu { dish: Dish @shareable } type Dish { ${fields} }`,
  resolvers: { Query: { menu: () => ({ dish: value }), dishes: () => [value, { ...value, name: 'Soup' }] } },
});

function counter() {
  const log: string[] = [];
  const found = new Set<unknown>();
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { log: [String!]! @shareable }
        type Mutation { add(n: Int!): Tally! remove(n: Int!): Tally! @shareable }
        type Tally @key(fields: "id") { id: ID! sum: Int! @shareable }`,
      resolvers: {
        Query: { log: () => log },
        Mutation: {
          add: (_, { n }) => ({ id: log.push(`a adds ${String(n)}`), sum: n }),
          remove: (_, { n }) => ({ id: log.push(`a removes ${String(n)}`), sum: 0 }),
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Mutation { multiply(n: Int!): Int! remove(n: Int!): Tally! @shareable }
        type Tally @key(fields: "id") { id: ID! sum: Int! @shareable note: String }`,
      resolvers: {
        Mutation: {
          multiply: (_, { n }) => log.push(`b multiplies ${String(n)}`),
          remove: (_, { n }) => ({ id: log.push(`b removes ${String(n)}`), sum: 0 }),
        },
        Tally: {
          __resolveReference: ({ id }) => {
            if (found.has(id)) throw new Error('it was looked up already');
            found.add(id);
            return { id, note: `note ${String(id)}` };
          },
        },
      },
    },
  });
  return { graph, log };
}

describe('shared-root', () => {
  const graph = federate({
    names: part('id: ID! @shareable name: String!', { id: 'd1', name: 'Stew' }),
    prices: part('id: ID! @shareable price: Int!', { id: 'd1', price: 12 }),
    tastes: part('id: ID! @shareable taste: String!', { id: 'd1', taste: 'salty' }),
  });

  test('all that know a part of it are asked, and their objects are merged', async () => {
    expect(await graph.ask('{ menu { dish { taste name id price } } }')).toEqual({
      data: { menu: { dish: { taste: 'salty', name: 'Stew', id: 'd1', price: 12 } } },
    });
    expect([...graph.asked()].sort()).toEqual(['names', 'prices', 'tastes']);
  });

  test('lists are merged by position', async () => {
    expect(await graph.ask('{ dishes { name price } }')).toEqual({
      data: {
        dishes: [
          { name: 'Stew', price: 12 },
          { name: 'Soup', price: 12 },
        ],
      },
    });
  });
});

describe('mutations', () => {
  test('root fields run one after the other, whichever subgraph they are of', async () => {
    const { graph, log } = counter();
    const answer = await graph.ask('mutation { one: add(n: 1) { id } two: multiply(n: 2) three: add(n: 3) { id } }');
    expect(answer).toEqual({ data: { one: { id: '1' }, two: 2, three: { id: '3' } } });
    expect(log).toEqual(['a adds 1', 'b multiplies 2', 'a adds 3']);
    expect(graph.calls.map(({ kind }) => kind)).toEqual(['mutation', 'mutation', 'mutation']);
  });

  test('a result goes on elsewhere, and is looked up once', async () => {
    const { graph } = counter();
    expect(await graph.ask('mutation { add(n: 5) { sum note } }')).toEqual({
      data: { add: { sum: 5, note: 'note 1' } },
    });
    expect(graph.calls.map(({ kind }) => kind)).toEqual(['mutation', 'query']);
  });

  test('one that several subgraphs have is called once', async () => {
    const { graph, log } = counter();
    expect(await graph.ask('mutation { remove(n: 4) { sum } }')).toEqual({ data: { remove: { sum: 0 } } });
    expect(log).toHaveLength(1);
  });

  test('where queries alone are allowed it is refused', async () => {
    const { graph, log } = counter();
    const answer = await graph.ask('mutation { multiply(n: 2) }', { onlyQueries: true });
    expect(answer).toEqual({ errors: [expect.objectContaining({ extensions: { code: 'MUTATION_BY_GET' } })] });
    expect(log).toEqual([]);
  });
});
