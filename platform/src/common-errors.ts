import { type ErrorCatalogue, ServiceError } from './errors.ts';
import { isDatabaseUnavailable } from './postgres/pool.ts';

/** What communication and payment refuse alike. */
const commonErrors = {
  INVALID_REQUEST: { status: 400, message: 'The request is not valid; details.fields has each fault' },
  UNAUTHENTICATED: { status: 401, message: 'No credentials were shown, or they do not hold; call by the gateway' },
  FORBIDDEN: { status: 403, message: 'The token lacks the scope of the operation; docs/scopes.md has the table' },
  NOT_FOUND: { status: 404, message: 'There is none, or it belongs to another subject' },
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

/**
 * The error of a catalogue that an error is for callers: UNAVAILABLE where the database is;
 * undefined: nobody foresaw it.
 */
export function toServiceError(error: unknown): ServiceError | undefined {
  if (error instanceof ServiceError) return error;
  return isDatabaseUnavailable(error) ? commonError('UNAVAILABLE', { cause: error }) : undefined;
}
