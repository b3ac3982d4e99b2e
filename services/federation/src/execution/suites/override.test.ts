import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

describe('simple-override', () => {
  const graph = federate({
    old: {
      sdl: `${FEDERATION_2} type Query { feed: [Post] @shareable oldFeed: [Post] }
        type Post @key(fields: "id") { id: ID! created: String! }`,
      resolvers: {
        Query: { feed: () => [{ id: '1' }], oldFeed: () => [{ id: '2' }] },
        Post: { created: () => 'wrong' },
      },
    },
    next: {
      sdl: `${FEDERATION_2} type Query { feed: [Post] @shareable }
        type Post @key(fields: "id") { id: ID! created: String! @override(from: "old") }`,
      resolvers: { Query: { feed: () => [{ id: '1' }] }, Post: { created: ({ id }) => `right ${String(id)}` } },
    },
  });

  test('a field that moved comes of its new owner', async () => {
    expect(await graph.ask('{ feed { created } }')).toEqual({ data: { feed: [{ created: 'right 1' }] } });
    expect(graph.asked()).toEqual(['next']);
    expect(await graph.ask('{ oldFeed { id created } }')).toEqual({
      data: { oldFeed: [{ id: '2', created: 'right 2' }] },
    });
    expect(graph.asked()).toEqual(['old', 'next']);
  });
});

test('unavailable-override: from a subgraph that there is not', async () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { feed: [Post] } type Post @key(fields: "id") { id: ID! created: String! @override(from: "nobody") }`,
      resolvers: { Query: { feed: () => [{ id: '1' }] }, Post: { created: () => 'now' } },
    },
  });
  expect(await graph.ask('{ feed { created } }')).toEqual({ data: { feed: [{ created: 'now' }] } });
});

describe('override-with-requires', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { userA: User }
        type User @key(fields: "id") { id: ID! name: String! @override(from: "b") labelA: String! }`,
      resolvers: {
        Query: { userA: () => ({ id: 'u1' }) },
        User: { name: ({ id }) => `name of ${String(id)}`, labelA: () => 'a' },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { userB: User }
        type User @key(fields: "id") { id: ID! name: String! @external labelB: String! @requires(fields: "name") }`,
      resolvers: {
        Query: { userB: () => ({ id: 'u2' }) },
        User: { name: () => 'wrong', labelB: ({ name }) => `b: ${String(name)}` },
      },
    },
    c: {
      sdl: `${FEDERATION_2} type Query { userC: User }
        type User @key(fields: "id") { id: ID! name: String! @external labelC: String! @requires(fields: "name") }`,
      resolvers: { Query: { userC: () => ({ id: 'u3' }) }, User: { labelC: ({ name }) => `c: ${String(name)}` } },
    },
  });

  test.each(['userA', 'userB', 'userC'])('%s: the old owner too gets the field of the new one', async (root) => {
    const id = { userA: 'u1', userB: 'u2', userC: 'u3' }[root] ?? '';
    expect(await graph.ask(`{ ${root} { labelA labelB labelC name } }`)).toEqual({
      data: { [root]: { labelA: 'a', labelB: `b: name of ${id}`, labelC: `c: name of ${id}`, name: `name of ${id}` } },
    });
  });
});

describe('override-type-interface', () => {
  const graph = federate({
    a: {
      sdl: `${FEDERATION_2} type Query { feed: [Post] } interface Post { id: ID! created: String! }
        type Image implements Post @key(fields: "id") { id: ID! created: String! }`,
      resolvers: {
        Query: { feed: () => [{ __typename: 'Image', id: 'i1', created: 'wrong' }] },
      },
    },
    b: {
      sdl: `${FEDERATION_2} type Query { others: [Other] } interface Other { id: ID! created: String! }
        type Image implements Other @key(fields: "id") { id: ID! created: String! @override(from: "a") }
        type Text implements Other @key(fields: "id") { id: ID! created: String! body: String! }`,
      resolvers: {
        Query: {
          others: () => [
            { __typename: 'Text', id: 't1', created: 'text', body: 'words' },
            { __typename: 'Image', id: 'i1', created: 'right' },
          ],
        },
        Image: { __resolveReference: ({ id }) => ({ id, created: 'right' }) },
      },
    },
  });

  test('asked through the interface it comes of the new owner', async () => {
    expect(await graph.ask('{ feed { id created } }')).toEqual({ data: { feed: [{ id: 'i1', created: 'right' }] } });
    expect(graph.asked()).toEqual(['a', 'b']);
  });

  test('asked of the type', async () => {
    expect(await graph.ask('{ feed { ... on Image { created } } }')).toEqual({
      data: { feed: [{ created: 'right' }] },
    });
    expect(await graph.ask('{ others { __typename id ... on Image { created } ... on Text { body } } }')).toEqual({
      data: {
        others: [
          { __typename: 'Text', id: 't1', body: 'words' },
          { __typename: 'Image', id: 'i1', created: 'right' },
        ],
      },
    });
  });
});

const posts = (text: string, mood: string) => JSON.stringify([{ text, mood }]);

describe('override with a label', () => {
  const LABELS = 'extend schema @link(url: "https://specs.apollo.dev/federation/v2.7", import: ["@key", "@override"])';
  const graph = federate({
    old: {
      sdl: `${LABELS} type Query { posts: [Post] } type Post @key(fields: "id") { id: ID! text: String mood: String stars: String }`,
      resolvers: {
        Query: { posts: () => [{ id: '1' }] },
        Post: { text: () => 'old', mood: () => 'old', stars: () => 'old' },
      },
    },
    next: {
      sdl: `${LABELS} type Post @key(fields: "id") { id: ID!
        text: String @override(from: "old", label: "percent(25)")
        mood: String @override(from: "old", label: "percent(75.5)")
        stars: String @override(from: "old", label: "of-somebody") }`,
      resolvers: { Post: { text: () => 'next', mood: () => 'next', stars: () => 'next' } },
    },
  });
  const of = async (subject?: string) => {
    const caller = { scopes: new Set<string>(), ...(subject === undefined ? {} : { subject }) };
    const { data } = await graph.ask('{ posts { text mood } }', { caller });
    return JSON.stringify(data?.['posts']);
  };
  const answersThere = [posts('next', 'next'), posts('old', 'next'), posts('old', 'old')];

  test('is for a share of callers, each of whom always gets the same', async () => {
    const subjects = Array.from({ length: 400 }, (_, n) => `caller-${n}`);
    const answers = await Promise.all(subjects.map(of));
    const counts = answersThere.map((each) => answers.filter((answer) => answer === each).length);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(400);
    // Subjects and the hash are what they are: a quarter, a half and a quarter, more or less.
    for (const [at, share] of [100, 202, 98].entries()) expect(Math.abs((counts[at] ?? 0) - share)).toBeLessThan(50);
    expect(await Promise.all(subjects.map(of))).toEqual(answers);
  });

  test('who is not known gets the one or the other', async () => {
    expect(answersThere).toContain(await of());
  });

  test('who is not known may say at which place it is', async () => {
    for (const [at, drawnPlace] of [10, 50, 90].entries()) {
      const { data } = await graph.ask('{ posts { text mood } }', { drawnPlace });
      expect(JSON.stringify(data?.['posts'])).toBe(answersThere[at]);
    }
  });

  test('another label than a share is off', async () => {
    expect(await graph.ask('{ posts { stars } }')).toEqual({ data: { posts: [{ stars: 'old' }] } });
    expect(graph.asked()).toEqual(['old']);
  });
});
