import { GraphQLError } from 'graphql/index.js';
import { toServiceError } from '../common-errors.ts';

/** An error as a response of GraphQL has it. */
export interface FormattedError {
  readonly message: string;
  readonly locations?: readonly { readonly line: number; readonly column: number }[];
  readonly path?: readonly (string | number)[];
  /** The code and the details that the error has over REST. */
  readonly extensions: { readonly code: string; readonly details: Readonly<Record<string, unknown>> };
}

/**
 * What callers see of an error.
 *
 * @param onUnforeseen called with what is not for callers: they hear of it that it was.
 */
export function formatError(error: unknown, onUnforeseen: (cause: unknown) => void): FormattedError {
  if (!(error instanceof GraphQLError)) return ofCause(error, onUnforeseen);
  const { locations, path } = error;
  const place = { ...(locations === undefined ? {} : { locations }), ...(path === undefined ? {} : { path }) };
  if (isOfRequest(error)) return { message: error.message, ...place, extensions: extensionsOf('INVALID_REQUEST') };
  return { ...place, ...ofCause(error.originalError, onUnforeseen) };
}

/**
 * Whether it is GraphQL's own, about what was asked for. What a resolver throws, or gives for a type
 * that it is not of, has its field's path and a cause that has no place in the document.
 */
function isOfRequest({ path, originalError }: GraphQLError): boolean {
  if (path === undefined || originalError === undefined) return true;
  return originalError instanceof GraphQLError && originalError.nodes !== undefined;
}

function ofCause(cause: unknown, onUnforeseen: (cause: unknown) => void): FormattedError {
  const known = toServiceError(cause);
  if (known !== undefined) return { message: known.message, extensions: extensionsOf(known.code, known.details) };
  onUnforeseen(cause);
  return { message: 'The request failed for a reason of ours', extensions: extensionsOf('INTERNAL') };
}

function extensionsOf(code: string, details: Readonly<Record<string, unknown>> = {}): FormattedError['extensions'] {
  return { code, details };
}
