import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { compose } from '../composition/compose.ts';
import { type GraphSource, readGraph } from '../execution/graph-source.ts';
import { createPlanner } from '../execution/planner.ts';
import { plannerSource } from '../execution/planner-source.ts';
import { WIDE_LIMITS } from '../testing/federate.ts';
import { createGraphBuilder } from './build-graph.ts';

const users = { name: 'users', url: 'http://users/graphql', sdl: 'type Query { user: String }' };
const { supergraph = '' } = compose([users]);

/** @param read what becomes of reading it. */
function builder(read: () => Promise<GraphSource>) {
  const planners = { loaded: 0, closed: 0 };
  const build = createGraphBuilder({
    readGraph: read,
    plannerSource: async (sdl) => plannerSource(sdl),
    contracts: {},
    planners: {
      prepare: () => undefined,
      async load(sdl) {
        planners.loaded += 1;
        return { ask: createPlanner(sdl), close: () => void (planners.closed += 1) };
      },
    },
    limits: WIDE_LIMITS,
    log: createLogger('federation', 'silent'),
    reachSubgraphs: () => ({
      callSubgraph: async () => ({ data: { user: 'Ann' } }),
      openSource: () => ReadableStream.from([]),
    }),
  });
  return { build, planners };
}

test('a graph has a planner, until it is closed', async () => {
  const { build, planners } = builder(async () => readGraph(supergraph, {}));
  const graph = await build(supergraph);
  const request = { query: '{ user }', caller: undefined, context: undefined };
  expect(await graph.execute(request, new AbortController().signal)).toEqual({ data: { user: 'Ann' } });
  expect(planners).toEqual({ loaded: 1, closed: 0 });
  graph.close();
  expect(planners).toEqual({ loaded: 1, closed: 1 });
});

test('a graph that cannot be read leaves no planner behind', async () => {
  const { build, planners } = builder(() => Promise.reject(new Error('it takes too long')));
  await expect(build(supergraph)).rejects.toThrow('it takes too long');
  expect(planners).toEqual({ loaded: 1, closed: 1 });
});
