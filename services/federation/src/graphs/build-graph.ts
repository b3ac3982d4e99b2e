import { setImmediate as nextTurn } from 'node:timers/promises';
import { commonError } from '@rollcall/platform/common-errors.ts';
import { apiSchemaSteps } from '../execution/api-schema.ts';
import { createGraph, type Graph, type GraphParts } from '../execution/graph.ts';
import type { Contracts, GraphSource } from '../execution/graph-source.ts';
import type { OperationLimits } from '../execution/limits.ts';
import { planBy } from '../execution/planner.ts';
import type { Planners } from '../planning/planners.ts';
import type { InForce } from './current.ts';

/** How the subgraphs of one graph are called. */
export type SubgraphReach<Context> = Pick<GraphParts<Context>, 'callSubgraph' | 'openSource'>;

export interface GraphBuilderDeps<Context> {
  /** Off the event loop. */
  readonly readGraph: (supergraph: string, contracts: Contracts) => Promise<GraphSource>;
  readonly contracts: Contracts;
  readonly planners: Planners;
  readonly limits: OperationLimits;
  /** @param urls of subgraphs, by name. */
  readonly reachSubgraphs: (urls: ReadonlyMap<string, string>) => SubgraphReach<Context>;
}

/** A graph, and parts of it that are shown to some: they are planned and closed with it. */
export interface GraphWithContracts<Context> extends Graph<Context> {
  readonly contracts: ReadonlyMap<string, Graph<Context>>;
}

/**
 * Builds a graph while others are queried: what takes long is done by a thread and by a process of
 * planners, and the rest in small steps (docs/decisions/0490).
 *
 * @returns what builds it of the SDL of a supergraph. It throws where that cannot be used.
 */
export function createGraphBuilder<Context>(
  deps: GraphBuilderDeps<Context>,
): (supergraph: string) => Promise<GraphWithContracts<Context>> {
  const { readGraph, contracts, planners, reachSubgraphs, limits } = deps;
  return async (sdl) => {
    const { supergraph, costRules, planner: source, ...pieces } = await readGraph(sdl, contracts);
    const schema = await inTurns(apiSchemaSteps(pieces.pieces));
    const planner = await planners.load(source.sdl);
    const parts = {
      supergraph,
      schema,
      makePlan: planBy(planner.ask, source.names),
      costRules,
      limits,
      ...reachSubgraphs(supergraph.subgraphs),
      close: () => planner.close(),
    };
    const ofContracts = new Map<string, Graph<Context>>();
    for (const [name, contract] of pieces.contracts) {
      const seen = await inTurns(apiSchemaSteps(contract));
      ofContracts.set(name, createGraph({ ...parts, schema: seen, close: () => undefined }));
    }
    return { ...createGraph(parts), contracts: ofContracts };
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

/**
 * The graph, as a contract shows it.
 *
 * @param contract undefined: all of it. @returns undefined where there is no graph, or no query in the contract.
 * @throws ServiceError NOT_FOUND where there is no such contract.
 */
export function shownBy<Context>(
  inForce: InForce<GraphWithContracts<Context>> | undefined,
  contracts: Contracts,
  contract: string | undefined,
): InForce<Graph<Context>> | undefined {
  if (contract === undefined) return inForce;
  if (!Object.hasOwn(contracts, contract)) throw commonError('NOT_FOUND');
  const graph = inForce?.graph.contracts.get(contract);
  return inForce && graph && { ...inForce, graph };
}
