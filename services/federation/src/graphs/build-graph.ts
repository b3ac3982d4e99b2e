import { setImmediate as nextTurn } from 'node:timers/promises';
import { commonError } from '@rollcall/platform/common-errors.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import type { GraphQLSchema } from 'graphql/index.js';
import { apiSchemaSteps } from '../execution/api-schema.ts';
import { createGraph, type Graph, type GraphParts } from '../execution/graph.ts';
import type { Contracts, GraphSource } from '../execution/graph-source.ts';
import type { OperationLimits } from '../execution/limits.ts';
import { planBy } from '../execution/planner.ts';
import type { PlannerSource } from '../execution/planner-source.ts';
import type { Planners } from '../planning/planners.ts';
import type { InForce } from './current.ts';

/** For the planned operations of a graph and of its contracts together, as it is estimated. */
const KEPT_BYTES = 64 * 1024 * 1024;

/** How the subgraphs of one graph are called. */
export type SubgraphReach<Context> = Pick<GraphParts<Context>, 'callSubgraph' | 'openSource'>;

export interface GraphBuilderDeps<Context> {
  /** Off the event loop. */
  readonly readGraph: (supergraph: string, contracts: Contracts) => Promise<GraphSource>;
  /** Off the event loop. */
  readonly plannerSource: (supergraph: string) => Promise<PlannerSource>;
  readonly contracts: Contracts;
  readonly planners: Pick<Planners, 'prepare' | 'load'>;
  readonly limits: OperationLimits;
  readonly log: Logger;
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
  const { readGraph, plannerSource, contracts, planners, reachSubgraphs, limits, log } = deps;
  return async (sdl) => {
    // The planner takes longest, in its own process.
    const [loaded, read] = await Promise.allSettled([loadPlanner(sdl), readSchemas(sdl)]);
    if (loaded.status === 'rejected') throw loaded.reason;
    const { planner, source } = loaded.value;
    if (read.status === 'rejected') {
      planner.close();
      throw read.reason;
    }
    const { supergraph, costRules, schema, ofContracts } = read.value;
    const parts = {
      supergraph,
      schema,
      makePlan: planBy(planner.ask, source),
      costRules,
      limits,
      keptBytes: Math.floor(KEPT_BYTES / (ofContracts.size + 1)),
      ...reachSubgraphs(supergraph.subgraphs),
      close: () => planner.close(),
    };
    const graphs = [...ofContracts].map(
      ([name, shown]) => [name, createGraph({ ...parts, schema: shown, close: () => undefined })] as const,
    );
    return { ...createGraph(parts), contracts: new Map(graphs) };
  };

  async function loadPlanner(sdl: string) {
    planners.prepare(sdl.length);
    const source = await plannerSource(sdl);
    return { planner: await planners.load(source.sdl), source };
  }

  async function readSchemas(sdl: string) {
    const { supergraph, costRules, pieces, contracts: ofContracts } = await readGraph(sdl, contracts);
    const schema = await inTurns(apiSchemaSteps(pieces));
    return { supergraph, costRules, schema, ofContracts: await contractSchemas(ofContracts, log) };
  }
}

/** One that cannot be built is left out: it must not hold up the graph. */
async function contractSchemas(
  contracts: GraphSource['contracts'],
  log: Logger,
): Promise<ReadonlyMap<string, GraphQLSchema>> {
  const schemas = new Map<string, GraphQLSchema>();
  for (const [name, pieces] of contracts) {
    try {
      schemas.set(name, await inTurns(apiSchemaSteps(pieces)));
    } catch (err) {
      log.error({ err, contract: name }, 'the contract cannot be used');
    }
  }
  return schemas;
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
  if (!Object.hasOwn(contracts, contract))
    throw commonError('NOT_FOUND', { message: 'No part of the graph has this name' });
  const graph = inForce?.graph.contracts.get(contract);
  return inForce && graph && { ...inForce, graph };
}
