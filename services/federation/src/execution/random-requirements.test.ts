import { expect, test } from 'vitest';
import { differences } from '../testing/compare-answers.ts';
import { FEDERATION_2, federate, WIDE_LIMITS } from '../testing/federate.ts';
import { objectOf, resolversOf, type Values } from '../testing/one-service.ts';
import type { JsonObject } from './types.ts';

const priceIn = ({ id }: JsonObject, { year }: JsonObject) => `${String(id)} in ${String(year)}`;
const shelf = ({ id }: JsonObject, { floor }: JsonObject) => objectOf('Shelf', `${String(id)}${String(floor)}`);
const label = ({ id }: JsonObject, { size }: JsonObject) => `${String(id)} of ${String(size)}`;

const values: Values = {
  Query: { items: () => [objectOf('Item', 1), objectOf('Item', 2)], item: () => objectOf('Item', 3) },
  Item: {
    name: ({ id }) => `item ${String(id)}`,
    price: priceIn,
    shelf,
    now: (item) => priceIn(item, { year: 1 }),
    early: (item) => priceIn(item, { year: 0 }),
    any: (item) => `${priceIn(item, {})} of item ${String(item['id'])}`,
    upper: (item) => label(shelf(item, { floor: 1 }), { size: 1 }),
    lower: (item) => label(shelf(item, { floor: 0 }), { size: 1 }),
    small: (item) => label(shelf(item, { floor: 0 }), { size: 0 }),
    next: ({ id }) => objectOf('Item', (Number(id) % 4) + 1),
    like: ({ id }) => [objectOf('Item', id), objectOf('Item', 2)],
    all: (item) => [1, 2].map((year) => priceIn(item, { year })).join(),
  },
  Shelf: { label, height: ({ id }) => String(id).length },
};
const price = ({ price: given }: JsonObject) => given;
const labelOf = ({ shelf: given }: JsonObject) => Object(given).label;

const graph = federate(
  {
    items: {
      sdl: `${FEDERATION_2} type Query { items: [Item!]! item: Item }
        type Item @key(fields: "id") { id: ID! name: String price(year: Int): String shelf(floor: Int!): Shelf }
        type Shelf { id: ID! label(size: Int!): String height: Int }`,
      resolvers: resolversOf(
        values,
        ['Query', 'items', 'item'],
        ['Item', 'name', 'price', 'shelf'],
        ['Shelf', 'label', 'height'],
      ),
    },
    signs: {
      sdl: `${FEDERATION_2} type Item @key(fields: "id") { id: ID! name: String @external price(year: Int): String @external
          shelf(floor: Int!): Shelf @external
          now: String @requires(fields: "price(year: 1)") early: String @requires(fields: "price(year: 0)")
          any: String @requires(fields: "price name") next: Item
          upper: String @requires(fields: "shelf(floor: 1) { label(size: 1) }")
          lower: String @requires(fields: "shelf(floor: 0) { label(size: 1) }")
          small: String @requires(fields: "shelf(floor: 0) { ... on Shelf { label(size: 0) } }") }
        type Shelf @external { label(size: Int!): String }`,
      resolvers: {
        Item: {
          now: price,
          early: price,
          any: ({ price: given, name }) => `${String(given)} of ${String(name)}`,
          upper: labelOf,
          lower: labelOf,
          small: labelOf,
          ...resolversOf(values, ['Item', 'next'])['Item'],
        },
      },
    },
    bills: {
      sdl: `${FEDERATION_2} type Item @key(fields: "id") { id: ID! now: String @external price(year: Int): String @external
          like: [Item!]! all: String @requires(fields: "now price(year: 2)") }`,
      resolvers: {
        Item: {
          all: ({ now, price: given }) => [now, given].join(),
          ...resolversOf(values, ['Item', 'like'])['Item'],
        },
      },
    },
  },
  WIDE_LIMITS,
);

test.each(Array.from({ length: 10 }, (_, batch) => batch))(
  'random queries of the seeds from %i00 on, with requirements that have arguments',
  async (batch) => {
    expect(await differences(graph, values, { from: 100 * batch + 1, count: 20 })).toEqual([]);
  },
);
