import { type QueryPlan, QueryPlanner } from '@graphql-hive/router-query-planner';
import { readPlan, type Step } from './plan.ts';
import type { PlannerSource } from './planner-source.ts';
import { withoutStandIns } from './stand-in-calls.ts';

/** The planner was stopped, as it took too long or too much memory. It would again. */
export class PlanLimitError extends Error {}

/** The process of the planner has ended before it answered, by itself or by somebody. */
export class ProcessLostError extends Error {}

/** What a planner is asked. */
export interface PlanQuestion {
  readonly query: string;
  readonly operationName: string | undefined;
  /** Where the request is among all, in per cent, as `placeOf` has it. */
  readonly place: number;
}

/**
 * Has the planner plan.
 *
 * @throws PlanLimitError, ProcessLostError. @throws Error where the subgraphs together cannot answer the operation.
 */
export type AskPlanner = (question: PlanQuestion) => Promise<QueryPlan>;

/**
 * Makes a query plan.
 *
 * @returns undefined where there is nothing to fetch.
 * @throws as `AskPlanner`.
 */
export type MakePlan = (question: PlanQuestion) => Promise<Step | undefined>;

/** Labels of `@override` other than `percent(…)` are off: nobody is asked which are on. */
const NO_LABELS = new Set<string>();

/**
 * A planner in this process. To make one of a large supergraph takes a second, and much memory.
 *
 * @throws Error for what is no supergraph.
 */
export function createPlanner(sdl: string): AskPlanner {
  const planner = new QueryPlanner(sdl);
  return ({ query, operationName, place }) => planner.planAsync(query, operationName, NO_LABELS, place);
}

/** @param source what the planner was made of. */
export function planBy(ask: AskPlanner, { names, standIns }: Omit<PlannerSource, 'sdl'>): MakePlan {
  return async (question) => {
    const plan = readPlan(await ask(question), (service) => names.get(service) ?? service);
    return plan && withoutStandIns(plan, standIns);
  };
}
