import { type ErrorCatalogue, type ErrorKind, ServiceError } from '@rollcall/platform/errors.ts';

/** What the federation service refuses or cannot do, beside what it has in common with others. */
export const errorCatalogue = {
  CSRF_GUARD: {
    status: 400,
    message: 'GET needs a header that no browser sends by itself, such as graphql-require-preflight',
  },
  TOKEN_LIMIT_EXCEEDED: { status: 400, message: 'The document has too many tokens' },
  DEPTH_LIMIT_EXCEEDED: { status: 400, message: 'The operation has too many fields one in another' },
  ALIAS_LIMIT_EXCEEDED: { status: 400, message: 'The operation has too many aliases' },
  ROOT_FIELD_LIMIT_EXCEEDED: { status: 400, message: 'The operation asks for too many fields of its root' },
  DIRECTIVE_LIMIT_EXCEEDED: { status: 400, message: 'The operation has too many directives' },
  SELECTION_LIMIT_EXCEEDED: {
    status: 400,
    message:
      'The operation has more than 10,000 fields and fragments, or 100 levels of them, once its fragments are put in',
  },
  REPETITION_LIMIT_EXCEEDED: { status: 400, message: 'The operation asks for fields of one name too often' },
  VARIABLE_LIMIT_EXCEEDED: { status: 400, message: 'A variable has more than 32 levels of lists and objects' },
  PLAN_LIMIT_EXCEEDED: { status: 400, message: 'It takes too long to plan the operation' },
  COST_LIMIT_EXCEEDED: {
    status: 400,
    message: 'The operation would cost too much; ask for shorter lists, or for less',
  },
  SLICING_ARGUMENT_REQUIRED: {
    status: 400,
    message: 'A field needs just one of the arguments that say how long its list is',
  },
  INTROSPECTION_LIMIT_EXCEEDED: {
    status: 400,
    message: 'The schema is asked for in too many places of one operation; ask for it once, in a request of its own',
  },
  INTROSPECTION_DISABLED: { status: 400, message: 'The schema cannot be asked for here' },
  BATCH_LIMIT_EXCEEDED: { status: 400, message: 'A request must not have so many operations' },
  PERSISTED_QUERY_NOT_FOUND: { status: 400, message: 'No document has this hash; send it with its hash' },
  PERSISTED_QUERY_NOT_SUPPORTED: { status: 400, message: 'Documents are not kept here; send them' },
  PERSISTED_QUERY_HASH_MISMATCH: { status: 400, message: 'sha256Hash is not the hash of the query' },
  DOCUMENT_NOT_FOUND: { status: 400, message: 'No document was published under this id' },
  DOCUMENT_NOT_TRUSTED: { status: 400, message: 'Only documents that were published are executed here' },
  MUTATION_BY_GET: { status: 405, message: 'A mutation has to be sent by POST' },
  DOCUMENT_CONFLICT: { status: 409, message: 'Other documents have these ids' },
  TOO_MANY_SUBSCRIPTIONS: {
    status: 429,
    message: 'As many connections or operations of the caller are open as may be; end some of them first',
  },
  URL_NOT_ALLOWED: { status: 422, message: 'The URL leads to an address that this service must not call' },
  INTROSPECTION_FAILED: {
    status: 502,
    message: 'The service did not answer as GraphQL, not in time or with too large a schema',
  },
  NO_GRAPH: { status: 503, message: 'There is no graph yet: no schema of a service has been composed' },
  DEADLINE_EXCEEDED: { status: 504, message: 'The operation was not answered within 30 s' },
} as const satisfies ErrorCatalogue;

/** Of what the federation service refuses or cannot do. */
export type ErrorCode = keyof typeof errorCatalogue;

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
