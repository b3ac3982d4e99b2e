import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

/** The owner knows users and robots; `ages` and `posts` know them as `Named` alone. */
function named() {
  return federate({
    owner: {
      sdl: `${FEDERATION_2} type Query { users: [Named!]! }
        interface Named @key(fields: "id") { id: ID! name: String }
        type User implements Named @key(fields: "id") { id: ID! name: String age: Int }
        type Robot implements Named @key(fields: "id") { id: ID! name: String volts: Int }`,
      resolvers: {
        Query: {
          users: () => [
            { __typename: 'User', id: 'u1', name: 'u1-name', age: 11 },
            { __typename: 'Robot', id: 'r1', name: 'r1-name', volts: 12 },
          ],
        },
        Named: { __resolveReference: ({ id }) => named1(id) },
        User: { __resolveReference: ({ id }) => named1(id) },
        Robot: { __resolveReference: ({ id }) => named1(id) },
      },
    },
    posts: {
      sdl: `${FEDERATION_2} type Query { anyone: [Named] }
        type Named @key(fields: "id") @interfaceObject { id: ID! posts: Int nick: String }`,
      resolvers: {
        Query: {
          anyone: () => [
            { id: 'u1', nick: 'by root' },
            { id: 'r1', nick: 'by root' },
          ],
        },
        Named: { __resolveReference: ({ id }) => ({ id, nick: 'by entity' }), posts: () => 2 },
      },
    },
  });
}

function named1(id: unknown) {
  return id === 'u1'
    ? { __typename: 'User', id, name: 'u1-name', age: 11 }
    : { __typename: 'Robot', id, name: `${String(id)}-name`, volts: 12 };
}

describe('simple-interface-object', () => {
  const graph = named();

  test('from the owner to the subgraph that knows the interface alone', async () => {
    expect(await graph.ask('{ users { __typename id posts nick } }')).toEqual({
      data: {
        users: [
          { __typename: 'User', id: 'u1', posts: 2, nick: 'by entity' },
          { __typename: 'Robot', id: 'r1', posts: 2, nick: 'by entity' },
        ],
      },
    });
    expect(graph.asked()).toEqual(['owner', 'posts']);
    expect(graph.sent('posts')).toEqual([
      { __typename: 'Named', id: 'u1' },
      { __typename: 'Named', id: 'r1' },
    ]);
  });

  test('of its own root, without the owner', async () => {
    expect(await graph.ask('{ anyone { id nick posts } }')).toEqual({
      data: {
        anyone: [
          { id: 'u1', nick: 'by root', posts: 2 },
          { id: 'r1', nick: 'by root', posts: 2 },
        ],
      },
    });
    expect(graph.asked()).toEqual(['posts']);
  });

  test.each([
    '{ anyone { ...F } } fragment F on Named { nick posts }',
    '{ ... { anyone { ... { nick } ...F } } } fragment F on Named { ... on Named { posts } ... on User @skip(if: true) { age } }',
  ])('fragments on the interface itself need no owner: %s', async (query) => {
    expect(await graph.ask(query)).toEqual({
      data: {
        anyone: [
          { nick: 'by root', posts: 2 },
          { nick: 'by root', posts: 2 },
        ],
      },
    });
    expect(graph.asked()).toEqual(['posts']);
  });

  test('names of types and fields of types need the owner', async () => {
    expect(await graph.ask('{ anyone { __typename nick name } }')).toEqual({
      data: {
        anyone: [
          { __typename: 'User', nick: 'by root', name: 'u1-name' },
          { __typename: 'Robot', nick: 'by root', name: 'r1-name' },
        ],
      },
    });
    expect(graph.asked()).toEqual(['posts', 'owner']);
    expect(await graph.ask('{ anyone { ... on User { id age } } }')).toEqual({
      data: { anyone: [{ id: 'u1', age: 11 }, {}] },
    });
    expect(graph.asked()).toEqual(['posts', 'owner']);
    expect(await graph.ask('{ anyone { ... on User { nick } } }')).toEqual({
      data: { anyone: [{ nick: 'by entity' }, {}] },
    });
  });

  test('type conditions on the way from the owner', async () => {
    expect(await graph.ask('{ users { ... on User { posts } ... on Robot { volts } } }')).toEqual({
      data: { users: [{ posts: 2 }, { volts: 12 }] },
    });
    expect(graph.sent('posts')).toEqual([{ __typename: 'Named', id: 'u1' }]);
  });
});

describe('interface-object-indirect-extension', () => {
  const graph = federate({
    media: {
      sdl: `${FEDERATION_2} type Query { media: Media } interface Media @key(fields: "id") { id: ID! title: String! }
        type Movie implements Media @key(fields: "id") { id: ID! title: String! minutes: Int }
        type Song implements Media @key(fields: "id") { id: ID! title: String! }`,
      resolvers: {
        Query: { media: () => ({ __typename: 'Movie', id: 'm1', title: 'T', minutes: 90 }) },
        Media: { __resolveReference: ({ id }) => ({ __typename: 'Movie', id, title: 'T', minutes: 90 }) },
      },
    },
    lists: {
      sdl: `${FEDERATION_2} type Query { list: List } type List @key(fields: "id") { id: ID! tracks: [Media!]! }
        type Media @key(fields: "id") @interfaceObject { id: ID! }`,
      resolvers: { Query: { list: () => ({ id: 'l1', tracks: [{ id: 'm1' }] }) } },
    },
    stars: {
      sdl: `${FEDERATION_2} extend type Movie @key(fields: "id") { id: ID! stars: Int! }`,
      resolvers: { Movie: { stars: () => 4 } },
    },
  });

  test('from the owner to one that knows the type alone', async () => {
    expect(await graph.ask('{ media { title ... on Movie { minutes stars } ... on Song { id } } }')).toEqual({
      data: { media: { title: 'T', minutes: 90, stars: 4 } },
    });
    expect(graph.asked()).toEqual(['media', 'stars']);
  });

  test('from one that knows the interface alone to the owner', async () => {
    expect(await graph.ask('{ list { id tracks { id ... on Movie { minutes } } } }')).toEqual({
      data: { list: { id: 'l1', tracks: [{ id: 'm1', minutes: 90 }] } },
    });
    expect(graph.asked()).toEqual(['lists', 'media']);
  });

  test('and by the owner on to the third one', async () => {
    expect(await graph.ask('{ list { tracks { ... on Movie { stars } } } }')).toEqual({
      data: { list: { tracks: [{ stars: 4 }] } },
    });
    expect(graph.asked()).toEqual(['lists', 'media', 'stars']);
  });
});

describe('interface-object-with-requires', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { users: [Named!]! }
        interface Named @key(fields: "id") { id: ID! name: String! }
        type User implements Named @key(fields: "id") { id: ID! name: String! }`,
      resolvers: {
        Query: { users: () => [{ __typename: 'User', id: 'u1', name: 'N1' }] },
        Named: { __resolveReference: ({ id }) => ({ __typename: 'User', id, name: 'N1' }) },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { others: [Named!]! }
        type Named @key(fields: "id") @interfaceObject { id: ID! name: String! @external username: String! @requires(fields: "name") }`,
      resolvers: {
        Query: { others: () => [{ id: 'u1' }] },
        Named: { username: ({ name }) => `user of ${String(name)}` },
      },
    },
  });

  test('from the owner: representations carry the name of the interface', async () => {
    expect(await graph.ask('{ users { id username } }')).toEqual({
      data: { users: [{ id: 'u1', username: 'user of N1' }] },
    });
    expect(graph.sent('b')).toEqual([{ __typename: 'Named', id: 'u1', name: 'N1' }]);
  });

  test.each([
    ['users', '{ name ... on User { username id } }', { name: 'N1', username: 'user of N1', id: 'u1' }],
    ['others', '{ ... on User { name username } id }', { name: 'N1', username: 'user of N1', id: 'u1' }],
    ['others', '{ u: username name: id }', { u: 'user of N1', name: 'u1' }],
    ['others', '{ __typename username }', { __typename: 'User', username: 'user of N1' }],
  ])('%s %s', async (...[root, fields, expected]) => {
    expect(await graph.ask(`{ ${root} ${fields} }`)).toEqual({ data: { [root]: [expected] } });
  });

  test('names of types under other names', async () => {
    expect(await graph.ask('{ others { t: __typename id } }')).toEqual({ data: { others: [{ t: 'User', id: 'u1' }] } });
    expect(graph.asked()).toEqual(['b', 'a']);
  });

  test('from the other one: what is required is fetched first', async () => {
    expect(await graph.ask('{ others { id username } }')).toEqual({
      data: { others: [{ id: 'u1', username: 'user of N1' }] },
    });
    expect(graph.asked()).toEqual(['b', 'a', 'b']);
  });
});

describe('interface-object-with-requires, in lists, with fields of the type', () => {
  const people = [
    { id: 'u1', name: 'Anna', age: 11 },
    { id: 'u2', name: 'Ben', age: 22 },
  ];
  const typed = people.map((one) => ({ __typename: 'User', ...one }));
  const byId = { __resolveReference: ({ id }: Record<string, unknown>) => typed.find((one) => one.id === id) ?? null };
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { users: [Named!]! } interface Named @key(fields: "id") { id: ID! name: String }
        type User implements Named @key(fields: "id") { id: ID! name: String age: Int }`,
      resolvers: { Query: { users: () => typed }, Named: byId, User: byId },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { others: [Named] }
        type Named @key(fields: "id") @interfaceObject { id: ID! name: String @external nick: String @requires(fields: "name") }`,
      resolvers: {
        // It says what it must not be believed.
        Query: { others: () => people.map(({ id }) => ({ __typename: 'User', id, nick: 'of the root' })) },
        Named: {
          nick: ({ name }) => {
            if (typeof name !== 'string') throw new Error('The name is missing');
            return `nick of ${name}`;
          },
        },
      },
    },
  });
  const nicks = people.map(({ id, name }) => ({ id, name, nick: `nick of ${name}` }));

  test.each([
    ['others', '{ id name nick }', nicks],
    ['users', '{ id name nick }', nicks],
    ['others', '{ ... on User { age } }', people.map(({ age }) => ({ age }))],
    [
      'others',
      '{ ... on User { age id name nick } id name }',
      nicks.map((one, at) => ({ age: people[at]?.age, ...one })),
    ],
    [
      'users',
      '{ ... on User { age id name nick } id name }',
      nicks.map((one, at) => ({ age: people[at]?.age, ...one })),
    ],
  ])('%s %s', async (...[root, fields, expected]) => {
    expect(await graph.ask(`{ ${root} ${fields} }`)).toEqual({ data: { [root]: expected } });
  });
});

describe('non-resolvable-interface-object', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { product: Node item: Node }
        type Node @key(fields: "id", resolvable: false) @interfaceObject { id: ID! }`,
      resolvers: { Query: { product: () => ({ id: 'p1' }), item: () => ({ id: 'p2' }) } },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { b: Product } interface Node @key(fields: "id", resolvable: false) { id: ID! }
        type Product implements Node @key(fields: "id") { id: ID! name: String! }`,
      resolvers: { Query: { b: () => ({ id: 'p3', name: 'N3' }) } },
    },
  });

  test('fields of the key are answered without a hop', async () => {
    expect(await graph.ask('{ product { id } item { id } }')).toEqual({
      data: { product: { id: 'p1' }, item: { id: 'p2' } },
    });
    expect(graph.asked()).toEqual(['a']);
    expect(await graph.ask('{ item { ...N } } fragment N on Node { ... { id } }')).toEqual({
      data: { item: { id: 'p2' } },
    });
    expect(graph.asked()).toEqual(['a']);
    expect(await graph.ask('{ b { __typename id name } }')).toEqual({
      data: { b: { __typename: 'Product', id: 'p3', name: 'N3' } },
    });
  });

  test('what cannot be reached ends in an error', async () => {
    const answer = await graph.ask('{ product { ... on Product { name } } }');
    expect(answer.errors?.length).toBeGreaterThan(0);
  });

  test('a field of a type is none of the interface', async () => {
    expect(await graph.ask('{ product { name } }')).toMatchObject({
      errors: [{ extensions: { code: 'INVALID_REQUEST' } }],
    });
  });
});

test('an interface and two of its types are asked for a field of a subgraph that knows them by the interface', async () => {
  const graph = federate({
    shapes: {
      sdl: `${FEDERATION_2} type Query { shapes: [Shape!]! } interface Shape @key(fields: "id") { id: ID! }
        type Disc implements Shape @key(fields: "id") { id: ID! } type Cube implements Shape @key(fields: "id") { id: ID! }
        type Cone implements Shape @key(fields: "id") { id: ID! }`,
      resolvers: { Query: { shapes: () => ['Disc', 'Cube', 'Cone'].map((type) => ({ __typename: type, id: type })) } },
    },
    colours: {
      sdl: `${FEDERATION_2} type Shape @key(fields: "id") @interfaceObject { id: ID! colour: String }`,
      resolvers: { Shape: { colour: ({ id }) => `colour of ${String(id)}` } },
    },
  });
  expect(await graph.ask('{ shapes { ... on Disc { colour } colour ... on Cube { colour } } }')).toEqual({
    data: { shapes: ['Disc', 'Cube', 'Cone'].map((id) => ({ colour: `colour of ${id}` })) },
  });
});
