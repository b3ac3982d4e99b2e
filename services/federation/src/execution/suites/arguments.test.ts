import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../../testing/federate.ts';

const rates: Readonly<Record<string, number>> = { USD: 1, EUR: 2, ZAR: 18 };
const priceIn = (_: unknown, { currency }: Readonly<Record<string, unknown>>) => 100 * (rates[String(currency)] ?? 0);
const meanOf = ({ kind }: Readonly<Record<string, unknown>>) => Object(kind).mean;

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
    const [, usd = ''] = /(\w+): ?_entities[^{]*\{\.\.\.on Item\{usd/.exec(query) ?? [];
    const [, zar = ''] = /(\w+): ?_entities[^{]*\{\.\.\.on Item\{zar/.exec(query) ?? [];
    const errors = [{ message: 'no rate', path: [zar, 0, 'zar'] }];
    return { data: { [usd]: [{ usd: 'one' }], [zar]: [{ zar: null }] }, errors };
  };
  const { data, errors } = await graph.ask('{ all: items { zar usd } }');
  expect(data).toEqual({ all: [{ zar: null, usd: 'one' }] });
  expect(errors).toEqual([
    { message: 'no rate', path: ['all', 0, 'zar'], extensions: { code: 'SUBGRAPH_ERROR', service: 'posting' } },
  ]);
});

describe('requirements with arguments within objects', () => {
  const graph = federate({
    shops: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR } type Query { items: [Item!]! }
        type Item @key(fields: "id") { id: ID! kind: Kind } type Kind { mean(currency: Currency!): Int name: String }`,
      resolvers: { Query: { items: () => [{ id: '1', kind: { name: 'book' } }] }, Kind: { mean: priceIn } },
    },
    rating: {
      sdl: `${FEDERATION_2} enum Currency { USD EUR ZAR }
        type Item @key(fields: "id") { id: ID! kind: Kind @external stock: Int
          usd: Int @requires(fields: "kind { mean(currency: USD) }")
          zar: Int @requires(fields: "kind { mean(currency: ZAR) name }") }
        type Kind @external { mean(currency: Currency!): Int name: String }`,
      resolvers: { Item: { usd: meanOf, zar: meanOf, stock: () => 5 } },
    },
  });

  test('the client asks for the field with another one', async () => {
    expect(await graph.ask('{ items { kind { mean(currency: EUR) } usd } }')).toEqual({
      data: { items: [{ kind: { mean: 200 }, usd: 100 }] },
    });
    expect(graph.sent('rating')).toEqual([{ __typename: 'Item', id: '1', kind: { mean: 100 } }]);
  });

  test('two requirements differ: one call has a representation for each', async () => {
    expect(await graph.ask('{ items { usd stock zar } }')).toEqual({
      data: { items: [{ usd: 100, stock: 5, zar: 1800 }] },
    });
    expect(graph.asked()).toEqual(['shops', 'rating']);
    expect(graph.sent('rating')).toHaveLength(2);
  });

  test('subgraphs do not see what the planner has in their place', async () => {
    await graph.ask('{ items { usd } }');
    expect(graph.calls[0]?.query).toContain('mean(currency:USD)');
    expect(graph.calls[1]?.query).toBe(
      'query($representations:[_Any!]!){_entities(representations:$representations){...on Item{usd}}}',
    );
  });
});
