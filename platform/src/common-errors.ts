import { type ErrorCatalogue, type ErrorKind, ServiceError } from './errors.ts';
import type { FieldFault } from './http/schema-faults.ts';
import { isDatabaseUnavailable } from './postgres/pool.ts';

export type { FieldFault } from './http/schema-faults.ts';

/** What communication and payment refuse alike. */
export const commonErrors = {
  INVALID_REQUEST: { status: 400, message: 'The request is not valid; details.fields has each fault' },
  UNAUTHENTICATED: { status: 401, message: 'No credentials were shown, or they do not hold; call by the gateway' },
  FORBIDDEN: { status: 403, message: 'The token lacks the scope of the operation; docs/scopes.md has the table' },
  NOT_FOUND: { status: 404, message: 'There is none, or it belongs to another subject' },
  IDEMPOTENCY_IN_PROGRESS: {
    status: 409,
    message: 'A call with this Idempotency-Key is under way; try again after the time in Retry-After',
    passes: true,
  },
  IDEMPOTENCY_KEY_REUSED: {
    status: 422,
    message: 'Another request was sent with this Idempotency-Key; send a new request with a new key',
  },
  UNAVAILABLE: { status: 503, message: 'The service cannot do that now; try again after the time in Retry-After' },
} as const satisfies ErrorCatalogue;

type CommonErrorCode = keyof typeof commonErrors;

/** An error that communication and payment have in common. */
export function commonError(
  code: CommonErrorCode,
  options?: ConstructorParameters<typeof ServiceError>[2],
): ServiceError<CommonErrorCode> {
  return new ServiceError(code, commonErrors[code], options);
}

interface Refusing {
  readonly needsCaller: boolean;
  /** Whether its path has a parameter. */
  readonly isOfOne: boolean;
  /** Whether it takes an Idempotency-Key. */
  readonly isKeyed: boolean;
}

/** What routes refuse by themselves, for the OpenAPI document. */
export function commonRefusals({ needsCaller, isOfOne, isKeyed }: Refusing): readonly ErrorKind[] {
  const { INVALID_REQUEST, UNAUTHENTICATED, FORBIDDEN, NOT_FOUND, UNAVAILABLE, ...keyed } = commonErrors;
  return [
    INVALID_REQUEST,
    UNAVAILABLE,
    ...(needsCaller ? [UNAUTHENTICATED, FORBIDDEN] : []),
    ...(needsCaller || isOfOne ? [NOT_FOUND] : []),
    ...(isKeyed ? Object.values(keyed) : []),
  ];
}

/** What no schema says: a request that is well-formed, and has faults. */
export function invalidRequest(fields: readonly FieldFault[]): ServiceError<CommonErrorCode> {
  const message = fields.map((field) => `${field.path} ${field.message}`).join(', ');
  return commonError('INVALID_REQUEST', { message, details: { fields } });
}

/**
 * The error of a catalogue that an error is for callers: UNAVAILABLE where the database is;
 * undefined: nobody foresaw it.
 */
export function toServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  return isDatabaseUnavailable(error) ? commonError('UNAVAILABLE', { cause: error }) : undefined;
}
