import { execute, type GraphQLSchema, parse, validate } from 'graphql/index.js';
import { expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../testing/federate.ts';
import { randomFrom, randomQuery } from '../testing/random-query.ts';
import { isObject, type JsonObject } from './types.ts';

/** An object is its type and id; all else follows from them, in every subgraph alike. */
const of = (__typename: string, id: unknown): JsonObject => ({ __typename, id: String(id) });
const text = (object: JsonObject, field: string) =>
  `${field} of ${String(object['__typename'])} ${String(object['id'])}`;
const number = ({ id }: JsonObject) => Number(id) % 7;
const itemOf = ({ id }: JsonObject) => of(Number(id) % 2 === 0 ? 'Book' : 'Film', id);

const values: Readonly<Record<string, Readonly<Record<string, (object: JsonObject) => unknown>>>> = {
  Query: {
    me: () => of('User', 1),
    users: () => [of('User', 1), of('User', 2), of('User', 1)],
    items: () => [of('Book', 2), of('Film', 3), of('Book', 4)],
    latest: () => of('Review', 5),
    found: () => [of('Film', 3), of('User', 2), null],
  },
  User: {
    name: (user) => text(user, 'name'),
    email: (user) => (number(user) === 2 ? null : text(user, 'email')),
    reviews: ({ id }) => [of('Review', Number(id) + 4), of('Review', 6)],
    favourite: itemOf,
    pet: ({ id }) => (Number(id) === 1 ? of('Dog', 7) : of('Cat', 8)),
  },
  Review: { body: (review) => text(review, 'body'), author: ({ id }) => of('User', Number(id) % 2), item: itemOf },
  Book: {
    title: (book) => text(book, 'title'),
    pages: number,
    reviews: ({ id }) => [of('Review', id)],
    price: number,
    label: (book) => `${text(book, 'title')} for ${number(book)}`,
  },
  Film: {
    title: (film) => text(film, 'title'),
    minutes: number,
    reviews: () => [],
    price: number,
    label: (film) => `${text(film, 'title')} for ${number(film)}`,
  },
  Dog: { name: (dog) => text(dog, 'name'), owner: () => of('User', 1) },
  Cat: { name: (cat) => text(cat, 'name'), lives: () => 9 },
};

/** Only what a subgraph has; of its labels it knows what it was sent. */
function resolversOf(...types: readonly [string, ...string[]][]) {
  return Object.fromEntries(
    types.map(([type, ...fields]) => [type, Object.fromEntries(fields.map((field) => [field, valueOf(type, field)]))]),
  );
}

function valueOf(type: string, field: string) {
  const value = values[type]?.[field];
  if (field === 'label') return ({ title, price }: JsonObject) => `${String(title)} for ${String(price)}`;
  return (object: JsonObject) => value?.(object);
}

const graph = federate({
  users: {
    sdl: `${FEDERATION_2} type Query { me: User users: [User!]! } type User @key(fields: "id") { id: ID! name: String! email: String }`,
    resolvers: resolversOf(['Query', 'me', 'users'], ['User', 'name', 'email']),
  },
  items: {
    sdl: `${FEDERATION_2} type Query { items: [Item!]! found: [Found] } interface Item { id: ID! title: String! } union Found = User | Film
      type User @key(fields: "id") { id: ID! favourite: Item }
      type Book implements Item @key(fields: "id") { id: ID! title: String! pages: Int }
      type Film implements Item @key(fields: "id") { id: ID! title: String! minutes: Int }`,
    resolvers: resolversOf(
      ['Query', 'items', 'found'],
      ['User', 'favourite'],
      ['Book', 'title', 'pages'],
      ['Film', 'title', 'minutes'],
    ),
  },
  reviews: {
    sdl: `${FEDERATION_2} type Query { latest: Review } interface Item { id: ID! reviews: [Review!]! }
      type User @key(fields: "id") { id: ID! reviews: [Review!]! }
      type Review @key(fields: "id") { id: ID! body: String! author: User item: Item }
      type Book implements Item @key(fields: "id") { id: ID! reviews: [Review!]! }
      type Film implements Item @key(fields: "id") { id: ID! reviews: [Review!]! }`,
    resolvers: resolversOf(
      ['Query', 'latest'],
      ['User', 'reviews'],
      ['Review', 'body', 'author', 'item'],
      ['Book', 'reviews'],
      ['Film', 'reviews'],
    ),
  },
  prices: {
    sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! price: Int } type Film @key(fields: "id") { id: ID! price: Int }`,
    resolvers: resolversOf(['Book', 'price'], ['Film', 'price']),
  },
  labels: {
    sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! title: String! @external price: Int @external label: String @requires(fields: "title price") }
      type Film @key(fields: "id") { id: ID! title: String! @external price: Int @external label: String @requires(fields: "price title") }`,
    resolvers: resolversOf(['Book', 'label'], ['Film', 'label']),
  },
  pets: {
    sdl: `${FEDERATION_2} type User @key(fields: "id") { id: ID! pet: Pet } union Pet = Dog | Cat
      type Dog { id: ID! name: String owner: User } type Cat { id: ID! name: String lives: Int }`,
    resolvers: resolversOf(['User', 'pet'], ['Dog', 'name', 'owner'], ['Cat', 'name', 'lives']),
  },
});

/** What one service that had it all would answer. */
async function whole(schema: GraphQLSchema, query: string): Promise<unknown> {
  const result = await execute({
    schema,
    document: parse(query),
    typeResolver: (object) => (isObject(object) ? String(object['__typename']) : undefined),
    fieldResolver: (...[source, , , { parentType, fieldName }]) => {
      const object = isObject(source) ? source : {};
      return fieldName === 'id' ? object['id'] : values[parentType.name]?.[fieldName]?.(object);
    },
  });
  return JSON.parse(JSON.stringify(result));
}

test.each(Array.from({ length: 20 }, (_, batch) => batch))(
  'random queries of the seeds from %i00 on',
  async (batch) => {
    const { apiSchema } = graph.graph;
    for (let seed = 100 * batch + 1; seed <= 100 * batch + 20; seed += 1) {
      const query = randomQuery(apiSchema, randomFrom(seed));
      expect({ query, faults: validate(apiSchema, parse(query)) }).toEqual({ query, faults: [] });
      expect({ query, ...(await graph.ask(query)) }).toEqual({ query, ...Object(await whole(apiSchema, query)) });
    }
  },
);
