import { setImmediate as nextTurn } from 'node:timers/promises';
import { apiSchemaSteps } from '../execution/api-schema.ts';
import { createGraph, type Graph } from '../execution/graph.ts';
import type { GraphSource } from '../execution/graph-source.ts';
import type { OperationLimits } from '../execution/limits.ts';
import { planBy } from '../execution/planner.ts';
import type { CallSubgraph } from '../execution/types.ts';
import type { Planners } from '../planning/planners.ts';

export interface GraphBuilderDeps<Context> {
  /** Off the event loop. */
  readonly readGraph: (supergraph: string) => Promise<GraphSource>;
  readonly planners: Planners;
  readonly limits: OperationLimits;
  /** @param urls of subgraphs, by name. */
  readonly callSubgraphs: (urls: ReadonlyMap<string, string>) => CallSubgraph<Context>;
}

/**
 * Builds a graph while others are queried: what takes long is done by a thread and by a process of
 * planners, and the rest in small steps (docs/decisions/0490).
 *
 * @returns what builds it of the SDL of a supergraph. It throws where that cannot be used.
 */
export function createGraphBuilder<Context>(
  deps: GraphBuilderDeps<Context>,
): (supergraph: string) => Promise<Graph<Context>> {
  const { readGraph, planners, callSubgraphs, limits } = deps;
  return async (sdl) => {
    const { supergraph, pieces, costRules, planner: source } = await readGraph(sdl);
    const schema = await inTurns(apiSchemaSteps(pieces));
    const planner = await planners.load(source.sdl);
    return createGraph({
      supergraph,
      schema,
      makePlan: planBy(planner.ask, source.names),
      costRules,
      limits,
      callSubgraph: callSubgraphs(supergraph.subgraphs),
      close: () => planner.close(),
    });
  };
}

/** One step in each turn of the event loop. */
async function inTurns<Result>(steps: Generator<undefined, Result>): Promise<Result> {
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await nextTurn();
  }
}
