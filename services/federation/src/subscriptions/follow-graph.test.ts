import { systemClock } from '@rollcall/platform/clock.ts';
import { commonError } from '@rollcall/platform/common-errors.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { buildSchema } from 'graphql/index.js';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import type { Graph, GraphOperation, PlannedSubscription } from '../execution/graph.ts';
import { createFeeds } from './feeds.ts';
import { createOperations } from './operations.ts';

const SOURCE = { subgraph: 'clock', query: 'subscription{ticks}', variables: {}, kind: 'subscription' } as const;
const log = createLogger('test', 'silent');
const nothing = async () => ({});

/** Nothing ever happens. */
const open = () => new ReadableStream<object>();
const planned: PlannedSubscription<unknown> = { source: SOURCE, open, answer: nothing };

/** Feeds of a graph that plans what it is asked as `plan` does. */
function following(plan: (count: number) => PlannedSubscription<unknown>) {
  const asked: GraphOperation[] = [];
  const graph: Graph<unknown> = {
    apiSchema: buildSchema('type Query { now: Int } type Subscription { ticks: Int }'),
    subgraphs: new Map(),
    execute: nothing,
    explain: nothing,
    async subscription(operation) {
      asked.push(operation);
      return plan(asked.length);
    },
    close: () => undefined,
  };
  const inForce = () => graph;
  const feeds = createFeeds<unknown>({
    graph: inForce,
    deadlineMs: 10_000,
    endingMs: 0,
    clock: systemClock,
    log,
    metrics: new Registry(),
  });
  return { feeds, asked, inForce };
}

/** @returns how it ended; undefined: it goes on. */
function join({ feeds }: ReturnType<typeof following>) {
  let ended: unknown;
  const operation = { query: 'subscription { ticks }', caller: undefined, contract: undefined };
  const listener = { context: undefined, next: () => undefined, end: (errors: unknown) => void (ended = errors) };
  feeds.join({ key: undefined, operation, planned }, listener);
  return () => ended;
}

test('a subscription goes on where the planner was lost and is there again', async () => {
  const all = following((count) => {
    if (count === 2) throw commonError('UNAVAILABLE');
    return planned;
  });
  const ended = [join(all), join(all), join(all)];
  await all.feeds.followGraph();
  expect(all.asked).toHaveLength(4);
  expect(ended.map((each) => each())).toEqual([undefined, undefined, undefined]);
});

test('it ends where the graph cannot plan it', async () => {
  const all = following(() => {
    throw new Error('It has no such field');
  });
  const ended = join(all);
  await all.feeds.followGraph();
  await expect.poll(ended).toMatchObject([{ extensions: { code: 'GRAPH_CHANGED' } }]);
  expect(all.asked).toHaveLength(1);
});

test('others have their turn while many are planned anew', async () => {
  const all = following(() => planned);
  for (let count = 0; count < 200; count += 1) join(all);
  let turns = 0;
  const count = () => {
    turns += 1;
    next = setImmediate(count);
  };
  let next = setImmediate(count);
  await all.feeds.followGraph();
  clearImmediate(next);
  expect(all.asked).toHaveLength(200);
  expect(turns).toBeGreaterThanOrEqual(3);
});

test('who is not known keeps the drawn place when the graph changes', async () => {
  const { feeds, asked, inForce } = following(() => planned);
  const query = 'subscription { ticks }';
  const begin = createOperations({
    graph: inForce,
    feeds,
    documents: { read: async () => query, keep: async () => undefined },
    usage: { record: () => undefined },
    deadlineMs: 10_000,
    log,
  });
  const listener = { context: { headers: {}, caller: undefined }, next: () => undefined, end: () => undefined };
  const document = { query, id: undefined, hash: undefined };
  onTestFinished(begin({ document, client: undefined }, listener));
  await expect
    .poll(async () => {
      await feeds.followGraph();
      return asked.length;
    })
    .toBeGreaterThan(1);
  const [first, ...others] = asked.map(({ drawnPlace }) => drawnPlace);
  expect(first).toBeTypeOf('number');
  for (const other of others) expect(other).toBe(first);
});
