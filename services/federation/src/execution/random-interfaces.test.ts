import { expect, test } from 'vitest';
import { differences } from '../testing/compare-answers.ts';
import { FEDERATION_2, federate, WIDE_LIMITS } from '../testing/federate.ts';
import { objectOf, resolversOf, type Values } from '../testing/one-service.ts';
import type { JsonObject } from './types.ts';

const text = (object: JsonObject, field: string) => `${field} of ${String(object['id'])}`;
const media = (id: number) => objectOf(id % 2 === 0 ? 'Movie' : 'Song', id);

const ofAll: Values[string] = {
  title: (one) => text(one, 'title'),
  stars: ({ id }) => Number(id),
  rank: ({ id }, { by }) => `rank ${String(by)} of ${String(id)}`,
  lists: ({ id }) => [objectOf('List', Number(id) + 10)],
  slogan: (one) => `${text(one, 'title')}!`,
};

const values: Values = {
  Query: {
    all: () => [media(1), media(2), media(3)],
    first: () => media(2),
    list: () => objectOf('List', 11),
    lists: () => [[objectOf('List', 12), null], [objectOf('List', 13)]],
    any: () => [objectOf('List', 12), media(1), media(2)],
  },
  List: {
    name: (list) => text(list, 'name'),
    tracks: ({ id }) => [media(Number(id) % 5), media(4)],
    owner: ({ id }) => objectOf('Owner', id),
    size: () => 2,
  },
  Owner: { name: (owner) => text(owner, 'name'), lists: ({ id }) => [objectOf('List', id)] },
  Movie: { ...ofAll, minutes: () => 90, cast: (one) => [text(one, 'star'), null] },
  Song: { ...ofAll, key: () => 'C', next: ({ id }) => objectOf('Song', Number(id) + 2) },
  Media: ofAll,
};
const slogan = ({ title }: JsonObject) => `${String(title)}!`;
/** Entities by the name of the interface: the owner knows which type they are of. */
const byId = { __resolveReference: ({ id }: JsonObject) => media(Number(id)) };
/** In subgraphs that know the interface alone. */
const untyped = (one: unknown): unknown =>
  one === null ? null : Array.isArray(one) ? one.map(untyped) : { id: Object(one).id };

const graph = federate(
  {
    owner: {
      sdl: `${FEDERATION_2} type Query { all: [Media!]! any: [Any] } union Any = Movie | Song | List
      interface Media @key(fields: "id") { id: ID! title: String! }
      type Movie implements Media @key(fields: "id") { id: ID! title: String! minutes: Int }
      type Song implements Media @key(fields: "id") { id: ID! title: String! next: Song }
      type List @key(fields: "id") { id: ID! name: String @shareable }`,
      resolvers: {
        ...resolversOf(values, ['Query', 'all', 'any'], ['List', 'name']),
        Media: byId,
        Movie: resolversOf(values, ['Movie', 'title', 'minutes'])['Movie'] ?? {},
        Song: resolversOf(values, ['Song', 'title', 'next'])['Song'] ?? {},
      },
    },
    about: {
      sdl: `${FEDERATION_2} type Query { list: List lists: [[List]!] first: Media }
      type List @key(fields: "id") { id: ID! tracks: [Media!]! owner: Owner name: String @shareable }
      type Media @key(fields: "id") @interfaceObject { id: ID! stars: Int rank(by: Int): String lists: [List!]! }
      type Owner @key(fields: "id") { id: ID! lists: [List!] }`,
      resolvers: {
        ...resolversOf(values, ['Query', 'list', 'lists'], ['Media', 'stars', 'rank', 'lists'], ['Owner', 'lists']),
        Query: { ...resolversOf(values, ['Query', 'list', 'lists'])['Query'], first: () => ({ id: '2' }) },
        List: {
          ...resolversOf(values, ['List', 'name', 'owner'])['List'],
          tracks: (list) => untyped(values['List']?.['tracks']?.(list, {})),
        },
      },
    },
    more: {
      sdl: `${FEDERATION_2} type Movie @key(fields: "id") { id: ID! cast: [String] } type Song @key(fields: "id") { id: ID! key: String }
      type Owner @key(fields: "id") { id: ID! name: String } type List @key(fields: "id") { id: ID! size: Int }`,
      resolvers: resolversOf(values, ['Movie', 'cast'], ['Song', 'key'], ['Owner', 'name'], ['List', 'size']),
    },
    slogans: {
      sdl: `${FEDERATION_2} type Media @key(fields: "id") @interfaceObject { id: ID! title: String! @external
      slogan: String @requires(fields: "title") }`,
      resolvers: { Media: { slogan } },
    },
  },
  WIDE_LIMITS,
);

test.each(Array.from({ length: 20 }, (_, batch) => batch))(
  'random queries of the seeds from %i00 on',
  async (batch) => {
    expect(await differences(graph, values, { from: 100 * batch + 1, count: 20 })).toEqual([]);
  },
);

/** Fragments of several types from a subgraph that does not know them; the planner would lose the calls. */
test.each([
  ['one field', '{ ... on Movie { stars } ... on Song { stars } }', { stars: 2 }],
  ['under one name', '{ ... on Movie { x: slogan } ... on Song { x: key } }', { x: 'title of 2!' }],
  ['of two subgraphs', '{ ... on Movie { stars minutes } ... on Song { slogan key } }', { stars: 2, minutes: 90 }],
  [
    'objects',
    '{ ... on Movie { lists { name } } ... on Song { lists { size } } }',
    { lists: [{ name: 'name of 12' }] },
  ],
  ['in a fragment', '{ ... on Media { ... on Movie { stars } ... on Song { slogan } } }', { stars: 2 }],
  [
    'one name with different arguments',
    '{ ... on Movie { rank(by: 1) x: rank(by: 2) } ... on Song { rank(by: 2) x: rank } }',
    { rank: 'rank 1 of 2', x: 'rank 2 of 2' },
  ],
  [
    'parts with different arguments',
    '{ ... on Movie { lists { tracks { rank(by: 1) } } } ... on Song { lists { tracks { rank(by: 2) } } } }',
    { lists: [{ tracks: [{ rank: 'rank 1 of 2' }, { rank: 'rank 1 of 4' }] }] },
  ],
  ['the key', '{ ... on Movie { x: id title } ... on Song { __typename } }', { x: '2', title: 'title of 2' }],
])('fragments of two types ask for %s', async (...[, fields, first]) => {
  expect(await graph.ask(`{ first ${fields} }`)).toEqual({ data: { first } });
});

test('fragments of two types by name, in a list', async () => {
  const query = '{ list { tracks { ...M ...S } } } fragment M on Movie { stars } fragment S on Song { stars }';
  expect(await graph.ask(query)).toEqual({ data: { list: { tracks: [{ stars: 1 }, { stars: 4 }] } } });
});

test('members of a union are asked for one field with different arguments', async () => {
  const query = '{ any { ... on Movie { rank(by: 1) } ... on Song { rank(by: 2) x: rank } } }';
  expect(await graph.ask(query)).toEqual({
    data: { any: [{}, { rank: 'rank 2 of 1', x: 'rank undefined of 1' }, { rank: 'rank 1 of 2' }] },
  });
});
