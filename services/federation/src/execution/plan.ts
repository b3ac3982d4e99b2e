import type {
  BatchFetchNode,
  FetchNode,
  FlattenNodePathSegment,
  PlanNode,
  QueryPlan,
  RequiresSelection,
} from '@graphql-hive/router-query-planner';
import { type Rewrite, readRewrites } from './rewrites.ts';
import type { JsonObject, SubgraphCall } from './types.ts';

/** What to do for an operation: a query plan in the form that is executed. */
export type Step = { readonly kind: 'sequence' | 'parallel'; readonly steps: readonly Step[] } | Fetch;

/**
 * One call of a subgraph: of root fields, or of entities that are known already. A subscription has
 * one that is answered by each event.
 */
export interface Fetch {
  readonly kind: 'fetch';
  readonly subgraph: string;
  readonly query: string;
  readonly operation: SubgraphCall['kind'];
  readonly operationName: string | undefined;
  /** The client's variables that it uses. */
  readonly variables: readonly string[];
  /** Empty for a fetch of root fields. */
  readonly lookups: readonly Lookup[];
  /** Changes of root fields. */
  readonly rewrites: readonly Rewrite[];
}

/** A field of a fetch that gets representations of entities and answers with what is asked of them. */
export interface Lookup {
  /** `_entities`, or its alias. */
  readonly field: string;
  /** Of the representations. Two fields may share one. */
  readonly variable: string;
  /** Where the entities are in the answer. */
  readonly paths: readonly EntityPath[];
  readonly requires: readonly RequiresSelection[];
  readonly before: readonly Rewrite[];
  readonly after: readonly Rewrite[];
}

export type EntityPath = readonly EntityPathStep[];

/** Into a field, into each item of a list, or on only with objects of these types. */
type EntityPathStep = { readonly field: string } | 'items' | { readonly types: readonly string[] };

/**
 * @param nameOf the subgraph that the planner has under a name.
 * @returns undefined where there is nothing to fetch.
 * @throws Error for what is no plan of an operation.
 */
export function readPlan({ node }: QueryPlan, nameOf: NameOf): Step | undefined {
  return node === undefined ? undefined : readNode(node, nameOf);
}

type NameOf = (service: string) => string;

function readNode(node: PlanNode, nameOf: NameOf): Step {
  const readAll = (nodes: readonly PlanNode[]) => nodes.map((one) => readNode(one, nameOf));
  switch (node.kind) {
    case 'Sequence':
      return { kind: 'sequence', steps: readAll(node.nodes) };
    case 'Parallel':
      return { kind: 'parallel', steps: readAll(node.nodes) };
    case 'Fetch':
      return readRootFetch(node, nameOf);
    case 'Subscription':
      return readRootFetch(node.primary, nameOf);
    case 'Flatten': {
      if (node.node.kind !== 'Fetch') break;
      const { requires = [], inputRewrites, outputRewrites } = node.node;
      const lookup: Lookup = {
        field: '_entities',
        variable: 'representations',
        paths: [node.path.map(readStep)],
        requires,
        before: readRewrites(inputRewrites),
        after: readRewrites(outputRewrites),
      };
      return { ...readCall(node.node, nameOf), lookups: [lookup], rewrites: [] };
    }
    case 'BatchFetch': {
      const lookups = node.entityBatch.aliases.map((alias) => ({
        field: alias.alias,
        variable: alias.representationsVariableName,
        paths: alias.paths.map((path) => path.map(readStep)),
        requires: alias.requires,
        before: readRewrites(alias.inputRewrites),
        after: readRewrites(alias.outputRewrites),
      }));
      return { ...readCall(node, nameOf), lookups, rewrites: [] };
    }
    case 'Condition':
    case 'Defer':
  }
  throw new Error(`A query plan has a ${node.kind} where it cannot be carried out`);
}

function readRootFetch(node: FetchNode, nameOf: NameOf): Fetch {
  return { ...readCall(node, nameOf), lookups: [], rewrites: readRewrites(node.outputRewrites) };
}

function readCall(node: FetchNode | BatchFetchNode, nameOf: NameOf): Omit<Fetch, 'lookups' | 'rewrites'> {
  return {
    kind: 'fetch',
    subgraph: nameOf(node.serviceName),
    query: node.operation,
    operation: node.operationKind ?? 'query',
    operationName: node.operationName,
    variables: node.variableUsages ?? [],
  };
}

/** The call by which a subscription begins; undefined: the plan is of no subscription. */
export function sourceOf(step: Step): Fetch | undefined {
  if (step.kind === 'fetch') return step.operation === 'subscription' ? step : undefined;
  for (const next of step.steps) {
    const source = sourceOf(next);
    if (source !== undefined) return source;
  }
  return undefined;
}

/** The call of a fetch. @param representations of entities, by variable. */
export function callOf(
  { subgraph, query, operation, operationName, variables: names }: Fetch,
  known: Readonly<JsonObject>,
  representations: ReadonlyMap<string, unknown> = new Map(),
): SubgraphCall {
  const variables: JsonObject = {};
  for (const name of names) if (Object.hasOwn(known, name)) variables[name] = known[name];
  for (const [name, value] of representations) variables[name] = value;
  return { subgraph, query, variables, kind: operation, ...(operationName === undefined ? {} : { operationName }) };
}

function readStep(segment: FlattenNodePathSegment): EntityPathStep {
  if (segment === '@') return 'items';
  return 'Field' in segment ? { field: segment.Field } : { types: segment.TypeCondition };
}
