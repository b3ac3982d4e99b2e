import { GraphQLError } from 'graphql/index.js';
import { type AnswerPath, type GraphError, isObject, type JsonObject } from './types.ts';

/** Of the request itself: no subgraph is asked. Codes are those of REST. */
export function requestError({ message, locations }: GraphQLError): GraphError {
  return { message, ...(locations === undefined ? {} : { locations }), extensions: { code: 'INVALID_REQUEST' } };
}

/** A request that is refused as it is; its client can mend it. */
export interface Refused {
  readonly errors: readonly GraphError[];
}

export function refused(message: string): Refused {
  return { errors: [requestError(new GraphQLError(message))] };
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

/** Reads the errors of an answer. Their places in the document are of a document that clients do not know. */
export function readErrors(errors: unknown, service: string): readonly SubgraphError[] {
  if (!Array.isArray(errors)) return [];
  return errors.map((error: unknown) => {
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
