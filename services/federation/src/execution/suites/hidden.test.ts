import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

const refused = { errors: [expect.objectContaining({ extensions: { code: 'INVALID_REQUEST' } })] };

describe('enum-intersection', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} enum Level { LOW HIGH SECRET @inaccessible }
        type Query { tasks: [Task!]! }
        type Task @key(fields: "id") { id: ID! level: Level @shareable }`,
      resolvers: {
        Query: {
          tasks: () => [
            { id: '1', level: 'SECRET' },
            { id: '2', level: 'HIGH' },
          ],
        },
      },
    },
    b: {
      sdl: `${FEDERATION_2} enum Level { LOW HIGH } type Query { byLevel(level: Level!): [Task!]! }
        type Task @key(fields: "id") { id: ID! level: Level @shareable }`,
      resolvers: { Query: { byLevel: (_, { level }) => [{ id: '9', level }] } },
    },
  });

  test('a hidden value comes out as null', async () => {
    expect(await graph.ask('{ tasks { id level } }')).toEqual({
      data: {
        tasks: [
          { id: '1', level: null },
          { id: '2', level: 'HIGH' },
        ],
      },
    });
  });

  test('a hidden value is no argument, and no subgraph is asked', async () => {
    expect(await graph.ask('{ byLevel(level: SECRET) { id } }')).toEqual(refused);
    expect(await graph.ask('query ($l: Level!) { byLevel(level: $l) { id } }', { variables: { l: 'SECRET' } })).toEqual(
      refused,
    );
    expect(graph.asked()).toEqual([]);
  });

  test('a public value is one', async () => {
    const answer = await graph.ask('query ($l: Level!) { byLevel(level: $l) { level } }', { variables: { l: 'LOW' } });
    expect(answer).toEqual({ data: { byLevel: [{ level: 'LOW' }] } });
  });
});

describe('input-object-intersection', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} input Filter { from: Int only: String } type Query { fromA(filter: Filter): String }`,
      resolvers: { Query: { fromA: (_, { filter }) => JSON.stringify(filter) } },
    },
    b: {
      sdl: `${FEDERATION_2} input Filter { from: Int } type Query { fromB(filter: Filter): String }`,
      resolvers: { Query: { fromB: (_, { filter }) => JSON.stringify(filter) } },
    },
  });

  test('a field that all subgraphs know', async () => {
    const answer = await graph.ask('query ($f: Filter) { fromA(filter: $f) fromB(filter: { from: 2 }) }', {
      variables: { f: { from: 1 } },
    });
    expect(answer).toEqual({ data: { fromA: '{"from":1}', fromB: '{"from":2}' } });
  });

  test.each([
    ['literal', '{ fromA(filter: { only: "x" }) }', {}],
    ['variable', 'query ($f: Filter) { fromA(filter: $f) }', { f: { only: 'x' } }],
  ])('another one is refused, as a %s', async (_, query, variables) => {
    expect(await graph.ask(query, { variables })).toEqual(refused);
    expect(graph.asked()).toEqual([]);
  });
});

describe('simple-inaccessible', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} enum Kind { OPEN CLOSED @inaccessible }
        type Query { doors: [Door!]! }
        type Door @key(fields: "id") { id: ID! kind(as: Kind = CLOSED @inaccessible): Kind secret: String @inaccessible }`,
      resolvers: { Query: { doors: () => [{ id: 'd1' }] }, Door: { kind: (_, { as }) => as } },
    },
    b: {
      sdl: `${FEDERATION_2} type Door @key(fields: "id") { id: ID! width: Int }`,
      resolvers: { Door: { width: () => 90 } },
    },
  });

  test('the default of a hidden argument counts, and its value is hidden', async () => {
    expect(await graph.ask('{ doors { id kind width } }')).toEqual({
      data: { doors: [{ id: 'd1', kind: null, width: 90 }] },
    });
  });

  test.each(['{ doors { kind(as: OPEN) } }', '{ doors { secret } }'])('%s is no valid document', async (query) => {
    expect(await graph.ask(query)).toEqual(refused);
    expect(graph.asked()).toEqual([]);
  });
});

describe('objects of hidden types', () => {
  const shapes = [
    { __typename: 'Circle', id: 'c', area: 3 },
    { __typename: 'Draft', id: 'd', area: 4 },
  ];
  const byId = { __resolveReference: ({ id }: Record<string, unknown>) => shapes.find((one) => one.id === id) ?? null };
  const graph = federate({
    shapes: {
      sdl: `${FEDERATION_2} type Query { all: [Shape] any: [Any] sure: [Shape!] draft: Shape }
        union Any = Circle | Draft
        interface Shape @key(fields: "id") { id: ID! area: Int }
        type Circle implements Shape @key(fields: "id") { id: ID! area: Int }
        type Draft implements Shape @key(fields: "id") @inaccessible { id: ID! area: Int }`,
      resolvers: {
        Query: { all: () => shapes, any: () => shapes, sure: () => shapes, draft: () => shapes[1] },
        Shape: byId,
        Circle: byId,
        Draft: byId,
      },
    },
    plans: {
      sdl: `${FEDERATION_2} type Query { plan: [Shape] }
        type Shape @key(fields: "id") @interfaceObject { id: ID! colour: String }`,
      resolvers: { Query: { plan: () => [{ id: 'c' }, { id: 'd' }] }, Shape: { colour: () => 'red' } },
    },
  });

  test.each([
    ['all', '{ area }', [{ area: 3 }, null]],
    ['all', '{ ... on Shape { area } }', [{ area: 3 }, null]],
    ['all', '{ colour }', [{ colour: 'red' }, null]],
    ['any', '{ ... on Shape { area } }', [{ area: 3 }, null]],
    ['plan', '{ id }', [{ id: 'c' }, null]],
    ['plan', '{ colour }', [{ colour: 'red' }, null]],
    ['draft', '{ id }', null],
  ])('are null, of %s %s', async (...[root, fields, expected]) => {
    expect(await graph.ask(`{ ${root} ${fields} }`)).toEqual({ data: { [root]: expected } });
  });

  test('where there may be none, the list is null', async () => {
    expect(await graph.ask('{ sure { area } }')).toMatchObject({
      data: { sure: null },
      errors: [{ path: ['sure', 1] }],
    });
  });
});
