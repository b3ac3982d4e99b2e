import { expect, test } from 'vitest';
import { differences } from '../testing/compare-answers.ts';
import { FEDERATION_2, federate, WIDE_LIMITS } from '../testing/federate.ts';
import { objectOf, resolversOf, type Values } from '../testing/one-service.ts';
import type { JsonObject } from './types.ts';

const text = (object: JsonObject, field: string) =>
  `${field} of ${String(object['__typename'])} ${String(object['id'])}`;
const number = ({ id }: JsonObject) => Number(id) % 7;
const itemOf = ({ id }: JsonObject) => objectOf(Number(id) % 2 === 0 ? 'Book' : 'Film', id);

const values: Values = {
  Query: {
    me: () => objectOf('User', 1),
    users: () => [objectOf('User', 1), objectOf('User', 2), objectOf('User', 1)],
    items: () => [objectOf('Book', 2), objectOf('Film', 3), objectOf('Book', 4)],
    latest: () => objectOf('Review', 5),
    found: () => [objectOf('Film', 3), objectOf('User', 2), null],
  },
  User: {
    name: (user) => text(user, 'name'),
    email: (user) => (number(user) === 2 ? null : text(user, 'email')),
    reviews: ({ id }) => [objectOf('Review', Number(id) + 4), objectOf('Review', 6)],
    favourite: itemOf,
    pet: ({ id }) => (Number(id) === 1 ? objectOf('Dog', 7) : objectOf('Cat', 8)),
  },
  Review: {
    body: (review) => text(review, 'body'),
    author: ({ id }) => objectOf('User', Number(id) % 2),
    item: itemOf,
  },
  Book: {
    title: (book) => text(book, 'title'),
    pages: number,
    reviews: ({ id }) => [objectOf('Review', id)],
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
  Dog: { name: (dog) => text(dog, 'name'), owner: () => objectOf('User', 1) },
  Cat: { name: (cat) => text(cat, 'name'), lives: () => 9 },
};

/** A label is made of what its subgraph was sent. */
const label = ({ title, price }: JsonObject) => `${String(title)} for ${String(price)}`;

const graph = federate(
  {
    users: {
      sdl: `${FEDERATION_2} type Query { me: User users: [User!]! } type User @key(fields: "id") { id: ID! name: String! email: String }`,
      resolvers: resolversOf(values, ['Query', 'me', 'users'], ['User', 'name', 'email']),
    },
    items: {
      sdl: `${FEDERATION_2} type Query { items: [Item!]! found: [Found] } interface Item { id: ID! title: String! } union Found = User | Film
      type User @key(fields: "id") { id: ID! favourite: Item }
      type Book implements Item @key(fields: "id") { id: ID! title: String! pages: Int }
      type Film implements Item @key(fields: "id") { id: ID! title: String! minutes: Int }`,
      resolvers: resolversOf(
        values,
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
        values,
        ['Query', 'latest'],
        ['User', 'reviews'],
        ['Review', 'body', 'author', 'item'],
        ['Book', 'reviews'],
        ['Film', 'reviews'],
      ),
    },
    prices: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! price: Int } type Film @key(fields: "id") { id: ID! price: Int }`,
      resolvers: resolversOf(values, ['Book', 'price'], ['Film', 'price']),
    },
    labels: {
      sdl: `${FEDERATION_2} type Book @key(fields: "id") { id: ID! title: String! @external price: Int @external label: String @requires(fields: "title price") }
      type Film @key(fields: "id") { id: ID! title: String! @external price: Int @external label: String @requires(fields: "price title") }`,
      resolvers: { Book: { label }, Film: { label } },
    },
    pets: {
      sdl: `${FEDERATION_2} type User @key(fields: "id") { id: ID! pet: Pet } union Pet = Dog | Cat
      type Dog { id: ID! name: String owner: User } type Cat { id: ID! name: String lives: Int }`,
      resolvers: resolversOf(values, ['User', 'pet'], ['Dog', 'name', 'owner'], ['Cat', 'name', 'lives']),
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
