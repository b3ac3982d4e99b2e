import { parse, validate } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { callerWith, LINK, NOBODY } from '../testing/access.ts';
import { federate, type TestGraph, WIDE_LIMITS } from '../testing/federate.ts';
import { answerOfOneService, objectOf, resolversOf, type Values } from '../testing/one-service.ts';
import { type Random, randomFrom, randomQuery } from '../testing/random-query.ts';
import type { GraphAnswer } from './graph.ts';
import { isObject, type JsonObject } from './types.ts';

/** Says of which field it is. */
const text = (field: string) => (object: JsonObject) =>
  `${field} of ${String(object['__typename'])} ${String(object['id'])}`;

const values: Values = {
  Query: {
    me: () => objectOf('User', 1),
    users: () => [objectOf('User', 1), objectOf('User', 2)],
    latest: () => objectOf('Review', 5),
    item: () => objectOf('Film', 3),
    items: () => [objectOf('Book', 2), objectOf('Film', 3)],
    found: () => [objectOf('Film', 3), objectOf('User', 2), null],
  },
  User: {
    name: text('name'),
    email: text('email'),
    reviews: ({ id }) => [objectOf('Review', Number(id) + 4)],
    latest: () => objectOf('Review', 6),
  },
  Review: {
    body: text('body'),
    stars: text('stars'),
    author: ({ id }) => objectOf('User', Number(id) % 2),
    item: ({ id }) => objectOf(Number(id) % 2 === 0 ? 'Book' : 'Film', id),
  },
  Book: { title: text('title'), pages: text('pages'), price: text('price') },
  Film: { title: text('title'), minutes: text('minutes'), price: text('price') },
};

const users = {
  sdl: `${LINK} type Query { me: User users: [User!]! }
    type User @key(fields: "id") { id: ID! name: String! email: String @requiresScopes(scopes: [["a", "b"], ["c"]]) }`,
  resolvers: resolversOf(values, ['Query', 'me', 'users'], ['User', 'name', 'email']),
};

const reviews = {
  sdl: `${LINK} type Query { latest: Review @policy(policies: [["b"]]) }
    type User @key(fields: "id") { id: ID! reviews: [Review!]! latest: Review }
    type Review @key(fields: "id") { id: ID! body: String! @authenticated stars: Stars author: User! }
    scalar Stars @requiresScopes(scopes: [["a"]])`,
  resolvers: resolversOf(
    values,
    ['Query', 'latest'],
    ['User', 'reviews', 'latest'],
    ['Review', 'body', 'stars', 'author'],
  ),
};

const items = {
  sdl: `${LINK} type Query { item: Item items: [Item!]! found: [Found] } union Found = User | Film
    interface Item { id: ID! title: String! }
    type Book implements Item @key(fields: "id") { id: ID! title: String! pages: String }
    type Film implements Item @key(fields: "id") @requiresScopes(scopes: [["b"]]) { id: ID! title: String! minutes: String }
    type Review @key(fields: "id") { id: ID! item: Item }
    type User @key(fields: "id", resolvable: false) { id: ID! }`,
  resolvers: resolversOf(
    values,
    ['Query', 'item', 'items', 'found'],
    ['Review', 'item'],
    ['Book', 'title', 'pages'],
    ['Film', 'title', 'minutes'],
  ),
};

const prices = {
  sdl: `${LINK} type Book @key(fields: "id") { id: ID! price: String @requiresScopes(scopes: [["c"]]) }
    type Film @key(fields: "id") { id: ID! price: String }`,
  resolvers: resolversOf(values, ['Book', 'price'], ['Film', 'price']),
};

const SCOPES = ['a', 'b', 'c', 'other'];
type Held = ReadonlySet<string> | undefined;

/** Somebody with some of the scopes; or nobody is known. */
function randomHolder(random: Random): Held {
  if (random(5) === 0) return undefined;
  return new Set(SCOPES.filter(() => random(2) === 0));
}

/** Which fields a caller may not have, whatever is said of them elsewhere. */
function forbidden(held: Held): readonly string[] {
  const has = (scope: string) => held?.has(scope) === true;
  return [
    ...((has('a') && has('b')) || has('c') ? [] : ['User.email']),
    ...(held === undefined ? ['Review.body'] : []),
    ...(has('a') ? [] : ['Review.stars']),
    ...(has('b') ? [] : ['Query.latest', 'Film.title', 'Film.minutes', 'Film.price']),
    ...(has('c') ? [] : ['Book.price']),
  ];
}

interface Asked {
  readonly query: string;
  readonly held: Held;
  readonly answer: {
    readonly data?: JsonObject | null;
    readonly errors?: readonly { readonly extensions: JsonObject }[];
  };
}

async function askAtRandom(graph: TestGraph, seed: number): Promise<Asked> {
  const random = randomFrom(seed);
  const query = randomQuery(graph.graph.apiSchema, random);
  const [fault] = validate(graph.graph.apiSchema, parse(query));
  if (fault !== undefined) throw fault;
  const held = randomHolder(random);
  const answer = await graph.ask(query, held === undefined ? NOBODY : callerWith(...held));
  return { query, held, answer: JSON.parse(JSON.stringify(answer)) };
}

const batches = Array.from({ length: 10 }, (_, batch) => batch);
const seedsOf = (batch: number) => Array.from({ length: 40 }, (_, index) => 100 * batch + index + 1);

test.each(batches)('what is withheld is null, and all else as ever, for random queries from %i00 on', async (batch) => {
  const graph = federate({ users, reviews }, WIDE_LIMITS);
  for (const seed of seedsOf(batch)) {
    const { query, held, answer } = await askAtRandom(graph, seed);
    const alone: GraphAnswer = await answerOfOneService(graph.graph.apiSchema, query, without(forbidden(held)));
    const expected = alone.data;
    const isNothing = Object.values(Object(expected)).every((value) => value === null);
    expect({ query, data: answer.data }).toEqual({ query, data: isNothing && answer.data === null ? null : expected });
    for (const { extensions } of answer.errors ?? []) expect(extensions['code']).toBe('UNAUTHORIZED_FIELD_OR_TYPE');
  }
});

test.each(batches)('no value is told that is withheld, through interfaces either, from %i00 on', async (batch) => {
  const graph = federate({ users, reviews, items, prices }, WIDE_LIMITS);
  for (const seed of seedsOf(batch)) {
    const { query, held, answer } = await askAtRandom(graph, seed);
    const told = new Set(coordinatesIn(answer.data));
    expect({ query, told: forbidden(held).filter((coordinate) => told.has(coordinate)) }).toEqual({ query, told: [] });
    for (const { extensions } of answer.errors ?? []) expect(extensions['code']).toBe('UNAUTHORIZED_FIELD_OR_TYPE');
  }
});

/** The values, but for some fields. */
function without(coordinates: readonly string[]): Values {
  return Object.fromEntries(
    Object.entries(values).map(([type, fields]) => [
      type,
      Object.fromEntries(
        Object.entries(fields).map(([field, value]) => [
          field,
          coordinates.includes(`${type}.${field}`) ? () => null : value,
        ]),
      ),
    ]),
  );
}

/** Of the fields that texts are of. */
function coordinatesIn(value: unknown): readonly string[] {
  if (typeof value === 'string') {
    const [field, , type] = value.split(' ');
    return [`${type}.${field}`];
  }
  if (Array.isArray(value)) return value.flatMap(coordinatesIn);
  return isObject(value) ? Object.values(value).flatMap(coordinatesIn) : [];
}
