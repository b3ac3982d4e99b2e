import { GraphQLError, type GraphQLErrorOptions } from 'graphql/index.js';
import type { ErrorCode } from '../errors.ts';
import { type AnswerPath, type GraphError, isObject, type JsonObject } from './types.ts';

/** Of the request itself: no subgraph is asked. The code is that of REST where the error has none of its own. */
export function requestError({ message, locations, extensions }: GraphQLError): GraphError {
  return {
    message,
    ...(locations === undefined ? {} : { locations }),
    extensions: { code: 'INVALID_REQUEST', ...extensions },
  };
}

/** A request that is refused as it is; its client can mend it. */
export interface Refused {
  readonly errors: readonly GraphError[];
}

interface Refusal extends Pick<GraphQLErrorOptions, 'nodes'> {
  readonly message: string;
  /** What there is to say beside the code. */
  readonly extensions: { readonly code: ErrorCode } & Readonly<JsonObject>;
}

/** Refuses a request for reasons of which each has a code of its own. */
export function refusals(reasons: readonly Refusal[]): Refused {
  return { errors: reasons.map(({ message, ...options }) => requestError(new GraphQLError(message, options))) };
}

/** Refuses a request. @param code absent: it is not valid. */
export function refused(message: string, code?: ErrorCode): Refused {
  return { errors: [requestError(new GraphQLError(message, code === undefined ? {} : { extensions: { code } }))] };
}

/** Why a subgraph brought nothing, for what it was to bring. */
export function failedCall(error: unknown, service: string): Omit<GraphError, 'path'> {
  if (error instanceof GraphQLError) {
    return { message: error.message, extensions: { code: 'SUBGRAPH_UNAVAILABLE', ...error.extensions, service } };
  }
  return { message: 'The service did not answer', extensions: { code: 'SUBGRAPH_UNAVAILABLE', service } };
}

/** What a subgraph answered is not what it was asked for. */
export function invalidAnswer(message: string, service: string): Omit<GraphError, 'path'> {
  return { message, extensions: { code: 'INVALID_SUBGRAPH_ANSWER', service } };
}

/** An error that a subgraph answered with; its path is the subgraph's own. */
export interface SubgraphError extends Omit<GraphError, 'path' | 'locations'> {
  readonly path: AnswerPath | undefined;
}

/** More are of no use to people, and one entity in many places has each of its errors in each. */
export const MOST_ERRORS = 1000;

/**
 * Reads the first errors of an answer. Their places in the document are of a document that clients do not know.
 */
export function readErrors(errors: unknown, service: string): readonly SubgraphError[] {
  if (!Array.isArray(errors)) return [];
  return errors.slice(0, MOST_ERRORS).map((error: unknown) => {
    const { message, path, extensions }: JsonObject = isObject(error) ? error : {};
    const said = isObject(extensions) ? extensions : {};
    const code = typeof said['code'] === 'string' ? said['code'] : 'SUBGRAPH_ERROR';
    return {
      message: typeof message === 'string' ? message : 'The service reports an error',
      path: isPath(path) ? path : undefined,
      extensions: { ...said, code, service },
    };
  });
}

function isPath(path: unknown): path is AnswerPath {
  return Array.isArray(path) && path.every((key) => typeof key === 'string' || typeof key === 'number');
}
