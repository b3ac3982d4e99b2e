import { type ErrorCatalogue, type ErrorKind, ServiceError } from '@rollcall/platform/errors.ts';

/** What the federation service refuses or cannot do, beside what it has in common with others. */
export const errorCatalogue = {
  CSRF_GUARD: {
    status: 400,
    message: 'GET needs a header that no browser sends by itself, such as graphql-require-preflight',
  },
  MUTATION_BY_GET: { status: 405, message: 'A mutation has to be sent by POST' },
  URL_NOT_ALLOWED: { status: 422, message: 'The URL leads to an address that this service must not call' },
  INTROSPECTION_FAILED: {
    status: 502,
    message: 'The service did not answer as GraphQL, not in time or with too large a schema',
  },
  NO_GRAPH: { status: 503, message: 'There is no graph yet: no schema of a service has been composed' },
  DEADLINE_EXCEEDED: { status: 504, message: 'The operation was not answered within 30 s' },
} as const satisfies ErrorCatalogue;

type ErrorCode = keyof typeof errorCatalogue;

/** An error of federation's own. */
export function federationError(
  code: ErrorCode,
  options?: ConstructorParameters<typeof ServiceError>[2],
): ServiceError<ErrorCode> {
  return new ServiceError(code, errorCatalogue[code], options);
}

/** What a route refuses, for the OpenAPI document. */
export function refusals(...codes: readonly ErrorCode[]): readonly ErrorKind[] {
  return codes.map((code) => errorCatalogue[code]);
}
