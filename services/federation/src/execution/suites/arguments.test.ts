import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

const rates: Readonly<Record<string, number>> = { USD: 1, EUR: 2, ZAR: 18 };
const priceIn = (_: unknown, { currency }: Readonly<Record<string, unknown>>) => 100 * (rates[String(currency)] ?? 0);

describe('requires-with-argument', () => {
  const graph = federate({
    prices: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR } type Query { items: [Item!]! }
        type Item @key(fields: "id") { id: ID! price(currency: Currency!): Int }`,
      resolvers: { Query: { items: () => [{ id: '1' }] }, Item: { price: priceIn } },
    },
    posting: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR }
        type Item @key(fields: "id") { id: ID! price(currency: Currency!): Int @external
          postage: String @requires(fields: "price(currency: USD)") }`,
      resolvers: { Item: { postage: ({ price }) => `on ${String(price)}` } },
    },
  });

  test('with the argument of the requirement', async () => {
    expect(await graph.ask('{ items { postage } }')).toEqual({ data: { items: [{ postage: 'on 100' }] } });
    expect(graph.sent('posting')).toEqual([{ __typename: 'Item', id: '1', price: 100 }]);
  });

  test('the client asks for the field with another one, as a literal', async () => {
    expect(await graph.ask('{ items { price(currency: ZAR) postage } }')).toEqual({
      data: { items: [{ price: 1800, postage: 'on 100' }] },
    });
  });

  test('as a variable, and twice', async () => {
    const query = 'query ($c: Currency!) { items { postage price(currency: $c) usd: price(currency: USD) } }';
    expect(await graph.ask(query, { variables: { c: 'EUR' } })).toEqual({
      data: { items: [{ postage: 'on 100', price: 200, usd: 100 }] },
    });
    expect(graph.asked()).toEqual(['prices', 'posting']);
  });
});

test('requires-with-argument-conflict: two requirements of a field with different arguments', async () => {
  const graph = federate({
    prices: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR } type Query { items: [Item!]! }
        type Item @key(fields: "id") { id: ID! price(currency: Currency!): Int weight: Int }`,
      resolvers: { Query: { items: () => [{ id: '1', weight: 3 }] }, Item: { price: priceIn } },
    },
    posting: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR }
        type Item @key(fields: "id") { id: ID! price(currency: Currency!): Int @external weight: Int @external
          usd: String @requires(fields: "price(currency: USD) weight")
          zar: String @requires(fields: "price(currency: ZAR) weight") }`,
      resolvers: {
        Item: {
          usd: ({ price, weight }) => `${String(price)} for ${String(weight)}`,
          zar: ({ price, weight }) => `${String(price)} for ${String(weight)}`,
        },
      },
    },
  });
  expect(await graph.ask('{ items { zar price(currency: EUR) usd } }')).toEqual({
    data: { items: [{ zar: '1800 for 3', price: 200, usd: '100 for 3' }] },
  });

  // One call with two look-ups.
  graph.interfere = ({ subgraph, query }) => {
    if (subgraph === 'prices') return undefined;
    const [, usd = ''] = /(\w+): _entities[^{]*\{\.\.\.on Item\{usd/.exec(query) ?? [];
    const [, zar = ''] = /(\w+): _entities[^{]*\{\.\.\.on Item\{zar/.exec(query) ?? [];
    const errors = [{ message: 'no rate', path: [zar, 0, 'zar'] }];
    return { data: { [usd]: [{ usd: 'one' }], [zar]: [{ zar: null }] }, errors };
  };
  const { data, errors } = await graph.ask('{ all: items { zar usd } }');
  expect(data).toEqual({ all: [{ zar: null, usd: 'one' }] });
  expect(errors).toEqual([
    { message: 'no rate', path: ['all', 0, 'zar'], extensions: { code: 'SUBGRAPH_ERROR', service: 'posting' } },
  ]);
});
