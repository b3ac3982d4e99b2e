import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

describe('requires-with-fragments', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { a: Entity } type Entity @key(fields: "id") { id: ID! data: Part }
        interface Part { common: String! }
        interface Deep implements Part { common: String! }
        type One implements Part { common: String! one: String! }
        type Two implements Part & Deep { common: String! two: String! }
        type Three implements Part & Deep @inaccessible { common: String! three: String! }`,
      resolvers: {
        Query: { a: () => ({ id: 'e1' }) },
        Entity: {
          data: ({ id }) =>
            ({
              e1: { __typename: 'One', common: 'c1', one: 'x1' },
              e2: { __typename: 'Two', common: 'c2', two: 'x2' },
              e3: { __typename: 'Three', common: 'c3', three: 'x3' },
            })[String(id)],
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { bs: [Entity!]! }
        type Entity @key(fields: "id") { id: ID! data: Part @external
          asked: String @requires(fields: "data { common ... on One { one } ... on Deep { ... on Two { two } ... on Three { three } } }") }
        interface Part { common: String! }
        interface Deep implements Part { common: String! }
        type One implements Part { common: String! @external one: String! @external }
        type Two implements Part & Deep { common: String! @external two: String! @external }
        type Three implements Part & Deep @inaccessible { common: String! @external three: String! @external }`,
      resolvers: {
        Query: { bs: () => [{ id: 'e1' }, { id: 'e2' }, { id: 'e3' }] },
        Entity: {
          asked: ({ data }) => {
            const { __typename, ...fields }: Record<string, unknown> = typeof data === 'object' ? { ...data } : {};
            return JSON.stringify(fields);
          },
        },
      },
    },
  });

  test('fragments in a requirement, nested, of interfaces of interfaces', async () => {
    expect(await graph.ask('{ a { asked } }')).toEqual({ data: { a: { asked: '{"common":"c1","one":"x1"}' } } });
    expect(graph.asked()).toEqual(['a', 'b']);
  });

  test('an object of a hidden type is null for clients, and feeds the requirement', async () => {
    expect(await graph.ask('{ bs { data { __typename common } asked } }')).toEqual({
      data: {
        bs: [
          { data: { __typename: 'One', common: 'c1' }, asked: '{"common":"c1","one":"x1"}' },
          { data: { __typename: 'Two', common: 'c2' }, asked: '{"common":"c2","two":"x2"}' },
          { data: null, asked: '{"common":"c3","three":"x3"}' },
        ],
      },
    });
  });
});
