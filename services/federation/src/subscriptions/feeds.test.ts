import { systemClock } from '@rollcall/platform/clock.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { GraphQLError } from 'graphql/index.js';
import { Registry } from 'prom-client';
import { expect, test, vi } from 'vitest';
import type { Graph, PlannedSubscription } from '../execution/graph.ts';
import { SourceErrors, type SubgraphAnswer } from '../execution/types.ts';
import { federate } from '../testing/federate.ts';
import { createFeeds } from './feeds.ts';

const operation = {
  query: 'subscription { ticks }',
  variables: {},
  operationName: undefined,
  caller: undefined,
  contract: undefined,
};

interface Heard<Context = string> {
  readonly context: Context;
  readonly answers: string[];
  ended?: unknown;
  next(answer: string): void;
  end(errors?: readonly object[]): void;
}

function listener<Context>(context: Context): Heard<Context> {
  const heard: Heard<Context> = {
    context,
    answers: [],
    next: (answer) => void heard.answers.push(answer),
    end: (errors) => void (heard.ended = errors ?? 'complete'),
  };
  return heard;
}

/** A subscription whose events a test brings. */
function source() {
  const events: (() => SubgraphAnswer)[] = [];
  let wake = Promise.withResolvers<void>();
  let taken = 0;
  let signal: AbortSignal | undefined;
  return {
    bring: (...brought: (() => SubgraphAnswer)[]) => {
      events.push(...brought);
      wake.resolve();
    },
    taken: () => taken,
    isOver: () => signal?.aborted,
    async *open(_context: unknown, over: AbortSignal): AsyncGenerator<SubgraphAnswer> {
      signal = over;
      over.addEventListener('abort', () => wake.resolve());
      for (;;) {
        if (over.aborted) return;
        const event = events.shift();
        if (event === undefined) {
          await wake.promise;
          wake = Promise.withResolvers();
          continue;
        }
        taken += 1;
        yield event();
      }
    },
  };
}

const SOURCE = { subgraph: 'clock', query: 'subscription{ticks}', variables: {}, kind: 'subscription' } as const;

function feedsOf<Context>(
  graph: () => Graph<Context> | undefined,
  { deadlineMs = 10_000, metrics = new Registry() }: { readonly deadlineMs?: number; readonly metrics?: Registry } = {},
) {
  return createFeeds<Context>({
    graph,
    deadlineMs,
    endingMs: 0,
    clock: systemClock,
    log: createLogger('test', 'silent'),
    metrics,
  });
}

function begun(answer: PlannedSubscription<string>['answer'], deadlineMs = 10_000) {
  const metrics = new Registry();
  const events = source();
  const planned: PlannedSubscription<string> = {
    source: SOURCE,
    open: (context, signal) => events.open(context, signal),
    answer,
  };
  const feeds = feedsOf<string>(() => undefined, { deadlineMs, metrics });
  return { ...events, metrics, join: (heard: Heard) => feeds.join({ key: 'same', operation, planned }, heard) };
}

const until = (check: () => void) => vi.waitFor(check, { timeout: 30_000 });

test('events are answered in the name of who came last, and of who is left', async () => {
  const feed = begun(async (event, context) => ({ data: { ...event, context } }));
  const [first, second] = [listener('first'), listener('second')];
  feed.join(first);
  const leave = feed.join(second);
  feed.bring(() => ({ data: 1 }));
  await until(() => expect(first.answers).toEqual(['{"data":{"data":1,"context":"second"}}']));
  expect(second.answers).toEqual(first.answers);
  leave();
  feed.bring(() => ({ data: 2 }));
  await until(() => expect(first.answers.at(-1)).toBe('{"data":{"data":2,"context":"first"}}'));
  expect(second.answers).toHaveLength(1);
});

test('events are counted, and subscriptions that are over by why', async () => {
  const feed = begun(async () => ({ data: {} }));
  const [first, second, third] = [listener('a'), listener('b'), listener('c')];
  feed.join(first)();
  feed.join(second);
  feed.bring(
    () => ({ data: 1 }),
    () => {
      throw new Error('The service is gone');
    },
  );
  await until(() => expect(second.ended).toBeDefined());
  feed.join(third);
  feed.bring(() => ({ data: 2 }));
  await until(() => expect(third.answers).toHaveLength(1));
  const counted = (await feed.metrics.metrics()).split('\n').filter((line) => /^[a-z_]+[{ ]/.test(line));
  expect(counted.toSorted((a, b) => a.localeCompare(b))).toEqual([
    'rollcall_federation_events_total{service="clock"} 2',
    'rollcall_federation_subscriptions 1',
    'rollcall_federation_subscriptions_ended_total{service="clock",reason="failed"} 1',
    'rollcall_federation_subscriptions_ended_total{service="clock",reason="left"} 1',
  ]);
});

test('the next event is taken once the last one is answered', async () => {
  const answered = Promise.withResolvers<void>();
  const feed = begun(async () => {
    await answered.promise;
    return { data: {} };
  });
  const heard = listener('a');
  feed.join(heard);
  feed.bring(
    () => ({ data: 1 }),
    () => ({ data: 2 }),
  );
  await until(() => expect(feed.taken()).toBe(1));
  expect(heard.answers).toEqual([]);
  answered.resolve();
  await until(() => expect([feed.taken(), heard.answers.length]).toEqual([2, 2]));
});

test('an event that is not answered in time is told as such, and the next one is answered', async () => {
  let isFirst = true;
  const feed = begun(async (_event, _context, signal) => {
    if (!isFirst) return { data: {} };
    isFirst = false;
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  }, 50);
  const heard = listener('a');
  feed.join(heard);
  feed.bring(
    () => ({ data: 1 }),
    () => ({ data: 2 }),
  );
  await until(() => expect(heard.answers).toHaveLength(2));
  expect(heard.answers[0]).toContain('DEADLINE_EXCEEDED');
  expect(heard.answers[1]).toBe('{"data":{}}');
});

test.each([
  [
    'that a service sends',
    new SourceErrors([{ message: 'no', path: ['x'], extensions: { code: 'GONE' } }]),
    [{ message: 'no', extensions: { code: 'GONE', service: 'clock' } }],
  ],
  ['that are none', new SourceErrors('x'), [{ extensions: { code: 'SUBGRAPH_UNAVAILABLE', service: 'clock' } }]],
  [
    'of ours',
    new GraphQLError('It is away', { extensions: { code: 'SUBGRAPH_UNAVAILABLE' } }),
    [{ message: 'It is away', extensions: { service: 'clock' } }],
  ],
  ['of the network', new Error('connect 10.0.0.1'), [{ message: 'The service did not answer' }]],
])('errors %s end it for all', async (_, error, ended) => {
  const feed = begun(async () => ({ data: {} }));
  const all = [listener('a'), listener('b')];
  for (const heard of all) feed.join(heard);
  feed.bring(() => {
    throw error;
  });
  for (const heard of all) await until(() => expect(heard.ended).toMatchObject(ended));
  expect(feed.isOver()).toBe(true);
});

test('with its last listener a subscription ends, and who comes then begins another', async () => {
  const feed = begun(async () => ({ data: {} }));
  const leave = feed.join(listener('a'));
  await until(() => expect(feed.isOver()).toBe(false));
  leave();
  expect(feed.isOver()).toBe(true);
  const heard = listener('b');
  feed.join(heard);
  feed.bring(() => ({ data: 1 }));
  await until(() => expect(heard.answers).toEqual(['{"data":{}}']));
});

test('it goes on by the graph that is in force, as long as there is one that has it', async () => {
  const SDL = 'type Query { now: Int } type Subscription { ticks: Int }';
  let inForce: Graph<undefined> | undefined = federate({ clock: { sdl: SDL } }).graph;
  const feeds = feedsOf(() => inForce);
  const planned = await inForce.subscription(operation);
  if (planned === undefined || !('source' in planned)) throw new Error('It is refused');
  const clock = source();
  const heard = listener(undefined);
  feeds.join(
    { key: 'same', operation, planned: { ...planned, open: (context, signal) => clock.open(context, signal) } },
    heard,
  );
  inForce = federate({ clock: { sdl: `${SDL} type Added { id: ID }` } }).graph;
  await feeds.followGraph();
  clock.bring(() => ({ data: { ticks: 1 } }));
  await until(() => expect(heard.answers).toEqual(['{"data":{"ticks":1}}']));
  inForce = undefined;
  await feeds.followGraph();
  await until(() => expect(heard.ended).toMatchObject([{ extensions: { code: 'GRAPH_CHANGED' } }]));
});
