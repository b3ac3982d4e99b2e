import { parse, print } from 'graphql/index.js';
import type { EntityPath, Step } from './plan.ts';

/** A plan as people read it. */
export type ExplainedStep =
  | { readonly kind: 'sequence' | 'parallel'; readonly steps: readonly ExplainedStep[] }
  | {
      readonly kind: 'fetch';
      readonly service: string;
      readonly operation: string;
      /** Where the entities are that are sent, such as `users.@`; empty for root fields. */
      readonly entities: readonly string[];
      readonly query: string;
    };

/** Pure. A plan with queries that are laid out. */
export function explained(step: Step): ExplainedStep {
  if (step.kind !== 'fetch') return { kind: step.kind, steps: step.steps.map(explained) };
  const { subgraph: service, operation, query, lookups } = step;
  return {
    kind: 'fetch',
    service,
    operation,
    entities: lookups.flatMap(({ paths }) => paths.map(textOf)),
    query: print(parse(query, { noLocation: true })),
  };
}

function textOf(path: EntityPath): string {
  return path
    .map((step) => {
      if (step === 'items') return '@';
      return 'field' in step ? step.field : `|[${step.types.join('|')}]`;
    })
    .join('.');
}
