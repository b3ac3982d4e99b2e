import { hash } from 'node:crypto';
import { unlessLeft } from '@rollcall/platform/within-time.ts';
import { type GraphQLSchema, OperationTypeNode } from 'graphql/index.js';
import { LRUCache } from 'lru-cache';
import type { Caller } from './access-rules.ts';
import { carryOut, type Run } from './carry-out.ts';
import { complete } from './complete.ts';
import { checkedCost } from './cost.ts';
import type { CostRules } from './cost-rules.ts';
import { type Refused, refused } from './errors.ts';
import { type ExplainedStep, explained } from './explain.ts';
import { readPartlyHidden } from './hidden-types.ts';
import type { OperationLimits } from './limits.ts';
import { type Operation, prepare } from './operation.ts';
import { callOf, type Step, sourceOf } from './plan.ts';
import type { MakePlan } from './planner.ts';
import type { Selection } from './selection.ts';
import type { Supergraph } from './supergraph.ts';
import type { CallSubgraph, GraphError, JsonObject, OpenSource, SubgraphAnswer, SubgraphCall } from './types.ts';
import { coerced } from './variables.ts';

/** A request of a client. */
export interface GraphRequest<Context> {
  readonly query: string;
  readonly variables?: Readonly<JsonObject> | undefined;
  /** Which operation of the document; needed where it has several. */
  readonly operationName?: string | undefined;
  /** Mutations are refused, as for GET. */
  readonly onlyQueries?: boolean;
  /** Whether the answer is to say what the operation costs. */
  readonly reportsCost?: boolean;
  /** Whose rules of access count. Undefined: nobody knows who calls. */
  readonly caller: Caller | undefined;
  /** Where it is among all where nobody knows who calls, as of `drawPlace`; anywhere when absent. */
  readonly drawnPlace?: number | undefined;
  /** What calls of subgraphs need to know of the client. */
  readonly context: Context;
}

/** What a client asks for. */
export type GraphOperation = Pick<
  GraphRequest<unknown>,
  'query' | 'variables' | 'operationName' | 'caller' | 'drawnPlace'
>;

/** An answer of GraphQL. Without `data` the request was refused, and no subgraph was asked. */
export interface GraphAnswer {
  readonly data?: JsonObject | null;
  readonly errors?: readonly GraphError[];
  /** Where it was asked for: `cost`, as it was estimated, and the highest that may be. */
  readonly extensions?: { readonly cost: { readonly estimated: number; readonly limit: number } };
}

/** A subscription that is valid and planned. No subgraph has been asked for it. */
export interface PlannedSubscription<Context> {
  /** What its events come of. */
  readonly source: SubgraphCall;
  /** As {@link OpenSource}, of the source. */
  open(context: Context, signal: AbortSignal): AsyncIterable<SubgraphAnswer>;
  /**
   * The client's answer to an event of the source, which is changed by it.
   *
   * @throws the reason of the signal, once it is aborted.
   */
  answer(event: SubgraphAnswer, context: Context, signal: AbortSignal): Promise<GraphAnswer>;
}

/** How an operation is carried out. */
interface Explanation {
  /** As it is estimated. */
  readonly cost: number;
  /** Undefined: no subgraph is asked. */
  readonly plan: ExplainedStep | undefined;
  /** What the caller does not get. */
  readonly errors: readonly GraphError[];
}

/** One generation of the graph. It never changes. */
export interface Graph<Context> {
  /** What clients see of it. */
  readonly apiSchema: GraphQLSchema;
  /** URLs by name. */
  readonly subgraphs: ReadonlyMap<string, string>;
  /** @throws the reason of the signal, once it is aborted. */
  execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer>;
  /** How an operation would be carried out; no subgraph is asked. @returns what it is refused with where it is not valid. */
  explain(request: GraphOperation): Promise<Explanation | GraphAnswer>;
  /** @returns what it is refused with where it is not valid; undefined for another kind of operation. */
  subscription(request: GraphOperation): Promise<PlannedSubscription<Context> | GraphAnswer | undefined>;
  /** Another is in force. Who holds this one can go on with it. */
  close(): void;
}

/** What a graph is made of. */
export interface GraphParts<Context> {
  readonly supergraph: Supergraph;
  /** What clients see of it. */
  readonly schema: GraphQLSchema;
  readonly makePlan: MakePlan;
  readonly costRules: CostRules;
  readonly callSubgraph: CallSubgraph<Context>;
  readonly openSource: OpenSource<Context>;
  readonly limits: OperationLimits;
  /** What operations that are kept planned may take, as it is estimated. */
  readonly keptBytes: number;
  readonly close: () => void;
}

/** An operation with the variables of a request. */
interface PreparedRun {
  readonly operation: Operation;
  readonly variables: Readonly<JsonObject>;
  readonly plan: Step | undefined;
  readonly selection: Selection;
  readonly cost: number;
  /** What the caller does not get. */
  readonly withheld: readonly GraphError[];
}

const OTHER_TRANSPORT = 'Subscriptions need a WebSocket (graphql-transport-ws) or `accept: text/event-stream`';

/** Operations that are kept planned. */
const MOST_KEPT = 1000;

/** The document is valid, but no plan leads to all of it. */
const IMPOSSIBLE: GraphAnswer = {
  data: null,
  errors: [{ message: 'The services together cannot answer this', extensions: { code: 'NOT_ANSWERABLE' } }],
};

export function createGraph<Context>(parts: GraphParts<Context>): Graph<Context> {
  const { supergraph, schema, makePlan, callSubgraph, openSource, costRules, limits, keptBytes, close } = parts;
  const partlyHidden = readPartlyHidden(schema, supergraph);
  const ground = { schema, supergraph, partlyHidden, makePlan, costRules, limits };
  const operationOf = keepOperations(ground, keptBytes);
  const introspected = keepIntrospection();
  return { apiSchema: schema, subgraphs: supergraph.subgraphs, execute, subscription, explain, close };

  async function execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    const kind = operation.definition.operation;
    if (kind === OperationTypeNode.SUBSCRIPTION) return refused(OTHER_TRANSPORT);
    if (request.onlyQueries === true && kind !== OperationTypeNode.QUERY)
      return refused('Only queries are allowed here', 'MUTATION_BY_GET');
    const prepared = await unlessLeft(prepareRun(operation, request), signal);
    if (!('operation' in prepared)) return prepared;
    const answer = await carriedOut(prepared, (call) => callSubgraph(call, request.context, signal), signal);
    if (request.reportsCost !== true) return answer;
    return { ...answer, extensions: { cost: { estimated: prepared.cost, limit: limits.cost } } };
  }

  async function subscription(
    request: GraphOperation,
  ): Promise<PlannedSubscription<Context> | GraphAnswer | undefined> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    if (operation.definition.operation !== OperationTypeNode.SUBSCRIPTION) return undefined;
    const prepared = await prepareRun(operation, request);
    if (!('operation' in prepared)) return prepared;
    const fetch = prepared.plan && sourceOf(prepared.plan);
    if (fetch === undefined) return refused('The subscription asks for nothing');
    const source = callOf(fetch, prepared.variables);
    return {
      source,
      open: (context, signal) => openSource(source, context, signal),
      answer: (event, context, signal) =>
        carriedOut(
          prepared,
          async (call) => (call.kind === 'subscription' ? event : callSubgraph(call, context, signal)),
          signal,
        ),
    };
  }

  async function explain(request: GraphOperation): Promise<Explanation | GraphAnswer> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    const prepared = await prepareRun(operation, request);
    if (!('operation' in prepared)) return prepared;
    const { cost, plan, withheld: errors } = prepared;
    return { cost, plan: plan && explained(plan), errors };
  }

  async function prepareRun(
    operation: Operation,
    { variables: given = {}, caller, drawnPlace }: GraphOperation,
  ): Promise<PreparedRun | GraphAnswer> {
    const variables = coerced(operation.definition, given, schema);
    if ('errors' in variables) return variables;
    const variant = operation.variant(variables.values, caller, drawnPlace);
    const { selection, withheld } = variant;
    const cost = checkedCost(variant.cost, variables.values, limits.cost);
    if (typeof cost !== 'number') return cost;
    if (variant.isWithheld) return { data: null, errors: withheld };
    const plan = await variant.plan();
    if (plan === 'impossible') return IMPOSSIBLE;
    if (plan === 'too large') return refused('It takes too long to plan the operation', 'PLAN_LIMIT_EXCEEDED');
    return { operation, variables: variables.values, plan, selection, withheld, cost };
  }

  async function carriedOut(prepared: PreparedRun, send: Run['send'], signal: AbortSignal): Promise<GraphAnswer> {
    const { operation, variables, plan, selection, withheld } = prepared;
    const errors: GraphError[] = [];
    const data: JsonObject = {};
    if (plan !== undefined) await carryOut(plan, { supergraph, variables, data, errors, send, signal });
    // Last, so that nothing is merged into what is kept.
    Object.assign(data, introspected(prepared));
    const completed = complete({ data, errors, root: operation.root, selection }, { schema, supergraph });
    const all = [...withheld, ...completed.errors];
    return all.length === 0 ? { data: completed.data } : { data: completed.data, errors: all };
  }
}

/** Answers fields of introspection. Tools ask for all of the schema again and again: the last answer is kept. */
function keepIntrospection(): (prepared: PreparedRun) => JsonObject {
  let last: { readonly selection: Selection; readonly answer: JsonObject } | undefined;
  return ({ operation, selection, variables }) => {
    if (last?.selection === selection) return last.answer;
    const answer = operation.introspect(selection, variables);
    const isTheSameForAll = operation.definition.variableDefinitions?.length === 0;
    if (isTheSameForAll && Object.keys(answer).length > 0) last = { selection, answer };
    return answer;
  };
}

/** Reads operations, each once as long as it is kept. */
function keepOperations(
  ground: Parameters<typeof prepare>[1],
  keptBytes: number,
): (asked: GraphOperation) => Operation | Refused {
  const operations = new LRUCache<string, Operation>({
    max: MOST_KEPT,
    maxSize: keptBytes,
    sizeCalculation: ({ bytes }) => bytes,
  });
  return ({ query, operationName }) => {
    const key = `${hash('sha256', query)} ${operationName ?? ''}`;
    const known = operations.get(key);
    if (known !== undefined) return known;
    const operation = prepare({ query, operationName }, ground);
    if (!('errors' in operation)) operations.set(key, operation);
    return operation;
  };
}
