/** A value of JSON that has members. */
export type JsonObject = Record<string, unknown>;

/** Whether it is an object of JSON, and no list. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Where a value is in an answer: keys of objects and indexes of lists. */
export type AnswerPath = readonly (string | number)[];

/** One request to a subgraph. */
export interface SubgraphCall {
  /** The name that the subgraph was composed under. */
  readonly subgraph: string;
  readonly query: string;
  readonly variables: Readonly<JsonObject>;
  readonly operationName?: string;
  /** A mutation must not be sent twice, and a subscription has many answers. */
  readonly kind: 'query' | 'mutation' | 'subscription';
}

/** What a subgraph answers. Nothing of it is trusted. */
export interface SubgraphAnswer {
  readonly data?: unknown;
  readonly errors?: unknown;
  readonly extensions?: unknown;
}

/**
 * Sends a request to a subgraph.
 *
 * @throws GraphQLError whose message and extensions clients get; of any other error they hear only
 * that the subgraph did not answer.
 */
export type CallSubgraph<Context> = (
  call: SubgraphCall,
  context: Context,
  signal: AbortSignal,
) => Promise<SubgraphAnswer>;

/**
 * Subscribes at a subgraph: what its events bring, read no faster than they are asked for.
 *
 * @throws as {@link CallSubgraph}, and SourceErrors; the reason of the signal, once it is aborted.
 */
export type OpenSource<Context> = (
  call: SubgraphCall,
  context: Context,
  signal: AbortSignal,
) => AsyncIterable<SubgraphAnswer>;

/** A subgraph refuses a subscription, or ended it, by errors of GraphQL. Nothing of them is trusted. */
export class SourceErrors extends Error {
  readonly errors: unknown;

  constructor(errors: unknown) {
    super('The service ended the subscription by errors');
    this.name = 'SourceErrors';
    this.errors = errors;
  }
}

/** An error as clients get it. */
export interface GraphError {
  readonly message: string;
  readonly locations?: readonly { readonly line: number; readonly column: number }[];
  readonly path?: AnswerPath;
  /** `code`, for errors of a subgraph `service`, and what else the subgraph says. */
  readonly extensions: Readonly<JsonObject>;
}
