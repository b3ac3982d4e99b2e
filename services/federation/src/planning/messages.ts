import type { QueryPlan } from '@graphql-hive/router-query-planner';
import type { PlanQuestion } from '../execution/planner.ts';

/** What a process of planners is told. Planners and plans have numbers. */
export type Order =
  | { readonly kind: 'load'; readonly planner: number; readonly sdl: string }
  | {
      readonly kind: 'plan';
      readonly planner: number;
      readonly plan: number;
      readonly question: PlanQuestion;
    }
  | { readonly kind: 'drop'; readonly planner: number };

/** What it answers: of the order to load a planner, or of the one to plan. */
export type Report =
  | { readonly kind: 'loaded'; readonly planner: number; readonly failure?: string }
  | { readonly kind: 'planned'; readonly plan: number; readonly made: QueryPlan }
  | { readonly kind: 'failed'; readonly plan: number; readonly failure: string; readonly isBeyondLimit: boolean };
