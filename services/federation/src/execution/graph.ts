import { hash } from 'node:crypto';
import { transformSupergraphToPublicSchema } from '@theguild/federation-composition';
import { buildASTSchema, type GraphQLSchema, getVariableValues, OperationTypeNode, parse } from 'graphql/index.js';
import { LRUCache } from 'lru-cache';
import { carryOut, type Run } from './carry-out.ts';
import { complete } from './complete.ts';
import { type Refused, refused, requestError } from './errors.ts';
import { type Operation, prepare } from './operation.ts';
import { callOf, type Step, sourceOf } from './plan.ts';
import { createPlanner } from './planner.ts';
import type { Selection } from './selection.ts';
import { readSupergraph } from './supergraph.ts';
import type { CallSubgraph, GraphError, JsonObject, SubgraphAnswer, SubgraphCall } from './types.ts';

/** A request of a client. */
export interface GraphRequest<Context> {
  readonly query: string;
  readonly variables?: Readonly<JsonObject> | undefined;
  /** Which operation of the document; needed where it has several. */
  readonly operationName?: string | undefined;
  /** Mutations are refused, as for GET. */
  readonly onlyQueries?: boolean;
  /** What calls of subgraphs need to know of the client. */
  readonly context: Context;
}

/** What a client asks for, whoever it is. */
type GraphOperation = Pick<GraphRequest<unknown>, 'query' | 'variables' | 'operationName'>;

/** An answer of GraphQL. Without `data` the request was refused, and no subgraph was asked. */
export interface GraphAnswer {
  readonly data?: JsonObject | null;
  readonly errors?: readonly GraphError[];
}

/** A subscription that is valid and planned. No subgraph has been asked for it. */
export interface PlannedSubscription<Context> {
  /** What its events come of. */
  readonly source: SubgraphCall;
  /**
   * The client's answer to an event of the source, which is changed by it.
   *
   * @throws the reason of the signal, once it is aborted.
   */
  answer(event: SubgraphAnswer, context: Context, signal: AbortSignal): Promise<GraphAnswer>;
}

/** One generation of the graph. It never changes. */
export interface Graph<Context> {
  /** What clients see of it. */
  readonly apiSchema: GraphQLSchema;
  /** URLs by name. */
  readonly subgraphs: ReadonlyMap<string, string>;
  /** @throws the reason of the signal, once it is aborted. */
  execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer>;
  /** @returns what it is refused with where it is not valid; undefined for another kind of operation. */
  subscription(request: GraphOperation): Promise<PlannedSubscription<Context> | GraphAnswer | undefined>;
}

export interface GraphOptions<Context> {
  /** SDL of a supergraph. */
  readonly supergraph: string;
  readonly callSubgraph: CallSubgraph<Context>;
}

/** An operation with the variables of a request. */
interface PreparedRun {
  readonly operation: Operation;
  readonly variables: Readonly<JsonObject>;
  readonly plan: Step | undefined;
  readonly selection: Selection;
}

const OTHER_TRANSPORT = 'Subscriptions need a WebSocket (graphql-transport-ws) or `accept: text/event-stream`';

/** Operations that are kept planned. */
const MOST_OPERATIONS = 1000;

/** The document is valid, but no plan leads to all of it. */
const IMPOSSIBLE: GraphAnswer = {
  data: null,
  errors: [{ message: 'The services together cannot answer this', extensions: { code: 'NOT_ANSWERABLE' } }],
};

/** @throws Error for what is no supergraph. */
export function createGraph<Context>({ supergraph: sdl, callSubgraph }: GraphOptions<Context>): Graph<Context> {
  const document = parse(sdl, { noLocation: true });
  const makePlan = createPlanner(sdl, document);
  const supergraph = readSupergraph(document);
  const schema = buildASTSchema(transformSupergraphToPublicSchema(document), { assumeValid: true });
  const operations = new LRUCache<string, Operation>({ max: MOST_OPERATIONS });
  return { apiSchema: schema, subgraphs: supergraph.subgraphs, execute, subscription };

  async function execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    const kind = operation.definition.operation;
    if (kind === OperationTypeNode.SUBSCRIPTION) return refused(OTHER_TRANSPORT);
    if (request.onlyQueries === true && kind !== OperationTypeNode.QUERY)
      return refused('Only queries are allowed here');
    const prepared = await prepareRun(operation, request);
    if (!('operation' in prepared)) return prepared;
    signal.throwIfAborted();
    return carriedOut(prepared, (call) => callSubgraph(call, request.context, signal), signal);
  }

  async function subscription(
    request: GraphOperation,
  ): Promise<PlannedSubscription<Context> | GraphAnswer | undefined> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    if (operation.definition.operation !== OperationTypeNode.SUBSCRIPTION) return undefined;
    const prepared = await prepareRun(operation, request);
    if (!('operation' in prepared)) return prepared;
    const source = prepared.plan && sourceOf(prepared.plan);
    if (source === undefined) return refused('The subscription asks for nothing');
    return {
      source: callOf(source, prepared.variables),
      answer(event, context, signal) {
        const send = async (call: SubgraphCall) =>
          call.kind === 'subscription' ? event : callSubgraph(call, context, signal);
        return carriedOut(prepared, send, signal);
      },
    };
  }

  async function prepareRun(
    operation: Operation,
    { variables: given = {} }: GraphOperation,
  ): Promise<PreparedRun | GraphAnswer> {
    const variables = coerced(operation, given);
    if ('errors' in variables) return variables;
    const { plan, selection } = await operation.variant(variables.values);
    return plan === 'impossible' ? IMPOSSIBLE : { operation, variables: variables.values, plan, selection };
  }

  async function carriedOut(prepared: PreparedRun, send: Run['send'], signal: AbortSignal): Promise<GraphAnswer> {
    const { operation, variables, plan, selection } = prepared;
    const errors: GraphError[] = [];
    const data = operation.introspect(selection, variables);
    if (plan !== undefined) await carryOut(plan, { supergraph, variables, data, errors, send, signal });
    const completed = complete({ data, errors, root: operation.root, selection }, { schema, supergraph });
    return completed.errors.length === 0 ? { data: completed.data } : completed;
  }

  function operationOf({ query, operationName }: GraphOperation): Operation | Refused {
    const key = `${hash('sha256', query)} ${operationName ?? ''}`;
    const known = operations.get(key);
    if (known !== undefined) return known;
    const operation = prepare({ query, operationName }, { schema, makePlan });
    if (!('errors' in operation)) operations.set(key, operation);
    return operation;
  }

  function coerced(
    { definition }: Operation,
    given: Readonly<JsonObject>,
  ): Refused | { readonly values: Readonly<JsonObject> } {
    const { errors, coerced: values } = getVariableValues(schema, definition.variableDefinitions ?? [], given);
    return errors === undefined ? { values } : { errors: errors.map(requestError) };
  }
}
