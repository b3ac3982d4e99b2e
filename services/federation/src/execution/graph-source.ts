import { parse } from 'graphql/index.js';
import { apiPieces } from './api-schema.ts';
import { type CostRules, readCostRules } from './cost-rules.ts';
import { type PlannerSource, plannerSource } from './planner-source.ts';
import { readSupergraph, type Supergraph } from './supergraph.ts';

/** A supergraph, read. Plain data: it is made in one thread and used in another. */
export interface GraphSource {
  readonly supergraph: Supergraph;
  /** What clients see: SDL, as `apiSchemaSteps` takes it. */
  readonly pieces: readonly string[];
  readonly planner: PlannerSource;
  readonly costRules: CostRules;
}

/** Pure. @param sdl of a supergraph. @throws Error for what is no SDL. */
export function readGraph(sdl: string): GraphSource {
  const document = parse(sdl, { noLocation: true });
  return {
    supergraph: readSupergraph(document),
    pieces: apiPieces(document),
    planner: plannerSource(sdl, document),
    costRules: readCostRules(document),
  };
}
