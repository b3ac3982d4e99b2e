import { type QueryPlan, QueryPlanner } from '@graphql-hive/router-query-planner';
import { readPlan, type Step } from './plan.ts';

/** The planner was stopped, as it took too long or too much memory. It would again. */
export class PlanLimitError extends Error {}

/** The process of the planner has ended before it answered, by itself or by somebody. */
export class ProcessLostError extends Error {}

/**
 * Has the planner plan.
 *
 * @throws PlanLimitError, ProcessLostError. @throws Error where the subgraphs together cannot answer the operation.
 */
export type AskPlanner = (query: string, operationName: string | undefined) => Promise<QueryPlan>;

/**
 * Makes a query plan.
 *
 * @returns undefined where there is nothing to fetch.
 * @throws as `AskPlanner`.
 */
export type MakePlan = (query: string, operationName: string | undefined) => Promise<Step | undefined>;

/**
 * A planner in this process. To make one of a large supergraph takes a second, and much memory.
 *
 * @throws Error for what is no supergraph.
 */
export function createPlanner(sdl: string): AskPlanner {
  const planner = new QueryPlanner(sdl);
  return (query, operationName) => planner.planAsync(query, operationName, new Set(), 0);
}

/** @param names of subgraphs, as in `PlannerSource`. */
export function planBy(ask: AskPlanner, names: ReadonlyMap<string, string>): MakePlan {
  return async (query, operationName) =>
    readPlan(await ask(query, operationName), (service) => names.get(service) ?? service);
}
