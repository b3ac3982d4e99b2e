import { hash } from 'node:crypto';
import { transformSupergraphToPublicSchema } from '@theguild/federation-composition';
import { buildASTSchema, type GraphQLSchema, getVariableValues, OperationTypeNode, parse } from 'graphql/index.js';
import { LRUCache } from 'lru-cache';
import { carryOut } from './carry-out.ts';
import { complete } from './complete.ts';
import { type Refused, refused, requestError } from './errors.ts';
import { type Operation, prepare } from './operation.ts';
import { createPlanner } from './planner.ts';
import { readSupergraph } from './supergraph.ts';
import type { CallSubgraph, GraphError, JsonObject } from './types.ts';

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

/** An answer of GraphQL. Without `data` the request was refused, and no subgraph was asked. */
export interface GraphAnswer {
  readonly data?: JsonObject | null;
  readonly errors?: readonly GraphError[];
}

/** One generation of the graph. It never changes. */
export interface Graph<Context> {
  /** What clients see of it. */
  readonly apiSchema: GraphQLSchema;
  /** URLs by name. */
  readonly subgraphs: ReadonlyMap<string, string>;
  /** @throws the reason of the signal, once it is aborted. */
  execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer>;
}

export interface GraphOptions<Context> {
  /** SDL of a supergraph. */
  readonly supergraph: string;
  readonly callSubgraph: CallSubgraph<Context>;
}

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
  return { apiSchema: schema, subgraphs: supergraph.subgraphs, execute };

  async function execute(request: GraphRequest<Context>, signal: AbortSignal): Promise<GraphAnswer> {
    const operation = operationOf(request);
    if ('errors' in operation) return operation;
    const { definition, root } = operation;
    if (request.onlyQueries === true && definition.operation !== OperationTypeNode.QUERY)
      return refused('Only queries are allowed here');
    const variables = coerced(operation, request.variables ?? {});
    if ('errors' in variables) return variables;
    const { plan, selection } = await operation.variant(variables.values);
    if (plan === 'impossible') return IMPOSSIBLE;
    signal.throwIfAborted();
    const errors: GraphError[] = [];
    const data = operation.introspect(selection, variables.values);
    const send = (call: Parameters<typeof callSubgraph>[0]) => callSubgraph(call, request.context, signal);
    if (plan !== undefined)
      await carryOut(plan, { supergraph, variables: variables.values, data, errors, send, signal });
    const completed = complete({ data, errors, root, selection }, { schema, supergraph });
    return completed.errors.length === 0 ? { data: completed.data } : completed;
  }

  function operationOf({ query, operationName }: GraphRequest<Context>): Operation | Refused {
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
