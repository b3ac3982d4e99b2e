import { describe, expect, test } from 'vitest';
import { FEDERATION_2, federate } from '../testing/federate.ts';
import type { PlannedSubscription } from './graph.ts';
import type { SubgraphAnswer } from './types.ts';

function shop() {
  return federate({
    orders: {
      sdl: `${FEDERATION_2} type Query { orders: [Order!] } type Mutation { order: Order }
        type Subscription { ordered(shop: ID, least: Int = 5): Order! ticks: Int }
        type Order @key(fields: "id") { id: ID! total: Int! }`,
    },
    shipping: {
      sdl: `${FEDERATION_2} type Order @key(fields: "id") { id: ID! total: Int! @external days: Int @requires(fields: "total") }`,
      resolvers: { Order: { days: ({ total }) => Number(total) / 2 } },
    },
  });
}

async function subscribed(
  graph: ReturnType<typeof shop>,
  query: string,
  variables = {},
): Promise<PlannedSubscription<undefined>> {
  const planned = await graph.graph.subscription({ query, variables, caller: undefined });
  if (planned === undefined || !('source' in planned)) throw new Error(`Refused: ${JSON.stringify(planned)}`);
  return planned;
}

const QUERY = 'subscription On($shop: ID) { new: ordered(shop: $shop) { id late: days } }';
const answerTo = (planned: PlannedSubscription<undefined>, event: SubgraphAnswer) =>
  planned.answer(event, undefined, new AbortController().signal);

describe('a subscription', () => {
  test('asks one subgraph for its events, with the variables that it needs', async () => {
    const { source } = await subscribed(shop(), QUERY, { shop: 's1' });
    expect(source).toMatchObject({ subgraph: 'orders', kind: 'subscription', variables: { shop: 's1' } });
    expect(source.query).toMatch(/^subscription.*ordered\(shop: ?\$shop\)/);
  });

  test('has what other subgraphs know of each event, under the names of the client', async () => {
    const graph = shop();
    const planned = await subscribed(graph, QUERY);
    for (const id of ['o1', 'o2']) {
      const event = { data: { _as3_new_ordered: { __typename: 'Order', id, total: 8 } } };
      expect(await answerTo(planned, event)).toEqual({ data: { new: { id, late: 4 } } });
    }
    expect(graph.asked()).toEqual(['shipping', 'shipping']);
  });

  test('has the errors of an event in its answer, and goes on', async () => {
    const graph = shop();
    const planned = await subscribed(graph, QUERY);
    graph.interfere = () => ({ data: { _entities: [null] }, errors: [{ message: 'lost', path: ['_entities', 0] }] });
    const event = { data: { _as3_new_ordered: { __typename: 'Order', id: 'o1', total: 8 } } };
    expect(await answerTo(planned, structuredClone(event))).toMatchObject({
      data: { new: { id: 'o1', late: null } },
      errors: [{ message: 'lost', path: ['new'], extensions: { service: 'shipping' } }],
    });
    graph.interfere = undefined;
    expect(await answerTo(planned, event)).toEqual({ data: { new: { id: 'o1', late: 4 } } });
  });

  test.each([
    ['an error', { data: null, errors: [{ message: 'broken' }] }, 'broken'],
    ['nothing', {}, 'without data'],
    ['text', { data: 'text' }, 'without data'],
  ])('whose event is %s answers with an error', async (_, event, message) => {
    const graph = shop();
    expect(await answerTo(await subscribed(graph, QUERY), event)).toEqual({
      data: null,
      errors: [expect.objectContaining({ message: expect.stringContaining(message), path: ['new'] })],
    });
    expect(graph.asked()).toEqual([]);
  });

  test.each([
    ['subscription { nothing }', 'Cannot query field'],
    ['subscription { ordered { id } ticks }', 'only one top level field'],
    ['subscription ($least: Int!) { ordered(least: $least) { id } }', '$least'],
    ['subscription { ticks @skip(if: true) }', 'asks for nothing'],
  ])('%s is refused', async (query, message) => {
    expect(await shop().graph.subscription({ query, caller: undefined })).toEqual({
      errors: [expect.objectContaining({ message: expect.stringContaining(message) })],
    });
  });

  test('is none of the operations that are answered once', async () => {
    const graph = shop();
    expect(await graph.graph.subscription({ query: '{ orders { id } }', caller: undefined })).toBeUndefined();
    expect(await graph.ask('subscription { ticks }')).toMatchObject({
      errors: [{ message: expect.stringContaining('text/event-stream') }],
    });
    expect(graph.asked()).toEqual([]);
  });
});
