import { describe, expect, test } from 'vitest';
import { callerWith, LINK, NOBODY, withheld } from '../testing/access.ts';
import { federate } from '../testing/federate.ts';

const blog = () =>
  federate({
    posts: {
      sdl: `${LINK}
          type Query { posts: [Post!]! all: [Any!]! maybe: [Post] }
          interface Post { id: ID! title: String views: Int }
          type Public implements Post @key(fields: "id") { id: ID! title: String views: Int }
          type Private implements Post @authenticated { id: ID! title: String views: Int }
          union Any = Public | Private`,
      resolvers: {
        Query: {
          posts: () => [
            { __typename: 'Public', id: '1', title: 'open', views: 1 },
            { __typename: 'Private', id: '2', title: 'secret', views: 2 },
          ],
          maybe: () => [
            { __typename: 'Private', id: '2', title: 'secret' },
            { __typename: 'Public', id: '1' },
          ],
          all: () => [{ __typename: 'Private', title: 'secret' }],
        },
      },
    },
    views: {
      sdl: `${LINK} type Public @key(fields: "id") { id: ID! votes: Int @requiresScopes(scopes: [["votes"]]) }`,
      resolvers: { Public: { votes: () => 3 } },
    },
  });

describe('an interface', () => {
  test('has the rules of all its types where a field is asked of each', async () => {
    const graph = blog();
    expect(await graph.ask('{ posts { title } }', NOBODY)).toEqual({ data: null, errors: withheld(['posts']) });
    expect(await graph.ask('{ maybe { ... { title } } }', NOBODY)).toEqual({
      data: { maybe: [{ title: null }, { title: null }] },
      errors: withheld(['maybe', '@', 'title']),
    });
    expect(graph.calls.map(({ query }) => query)).toEqual([expect.not.stringContaining('title')]);
    expect(await graph.ask('{ posts { title } }', callerWith())).toEqual({
      data: { posts: [{ title: 'open' }, { title: 'secret' }] },
    });
  });

  test('has those of a type where that is asked', async () => {
    const graph = blog();
    const open = '{ posts { __typename ... on Public { title votes } } }';
    expect(await graph.ask(open, NOBODY)).toEqual({
      data: { posts: [{ __typename: 'Public', title: 'open', votes: null }, { __typename: 'Private' }] },
      errors: withheld(['posts', '@', 'votes']),
    });
    expect(graph.asked()).toEqual(['posts']);
    const both = '{ maybe { ... on Public { id } ...P } } fragment P on Private { id title ... on Post { views } }';
    expect(await graph.ask(both, NOBODY)).toEqual({
      data: { maybe: [null, { id: '1' }] },
      errors: withheld(['maybe', '@', '... on Private']),
    });
  });

  test('and a union say the name of a type, but not of one that is asked for alone', async () => {
    expect(await blog().ask('{ all { __typename ... on Private { title } } }', NOBODY)).toEqual({
      data: { all: [{ __typename: 'Private', title: null }] },
      errors: withheld(['all', '@', '... on Private']),
    });
    expect(await blog().ask('{ maybe { ... on Private { kind: __typename } } }', NOBODY)).toEqual({
      data: { maybe: [null, {}] },
      errors: withheld(['maybe', '@', '... on Private']),
    });
  });

  test('that a subgraph knows as an object hands its rules down to the types', async () => {
    const graph = federate({
      owner: {
        sdl: `${LINK} type Query { nodes: [Node!]! a: A }
          interface Node @key(fields: "id") { id: ID! } type A implements Node @key(fields: "id") { id: ID! }`,
        resolvers: { Query: { nodes: () => [{ __typename: 'A', id: '1' }], a: () => ({ id: '1' }) } },
      },
      extra: {
        sdl: `${LINK} type Node @key(fields: "id") @interfaceObject { id: ID! secret: Int @authenticated }`,
        resolvers: { Node: { secret: () => 1 } },
      },
    });
    const query = '{ nodes { id secret ... on A { again: secret } } a { secret } }';
    expect(await graph.ask(query, NOBODY)).toEqual({
      data: { nodes: [{ id: '1', secret: null, again: null }], a: { secret: null } },
      errors: withheld(['nodes', '@', 'secret'], ['nodes', '@', 'again'], ['a', 'secret']),
    });
    expect(graph.asked()).toEqual(['owner']);
    expect(await graph.ask(query, callerWith())).toEqual({
      data: { nodes: [{ id: '1', secret: 1, again: 1 }], a: { secret: 1 } },
    });
  });
});
