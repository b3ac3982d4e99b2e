import { HttpError } from '@rollcall/platform/http/errors.ts';
import { isQuotaExceeded, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import { type ErrorCode, RegistryError } from '../common/errors.ts';

interface Answer {
  readonly status: number;
  /** Error type of the contract's error body. */
  readonly error: string;
}

/** Contract 1, "Errors"; where that is silent, what HTTP says. */
export const answers: Record<ErrorCode, Answer> = {
  INVALID_REQUEST: { status: 400, error: 'Invalid request' },
  INVALID_SERVICE_NAME: { status: 400, error: 'Invalid service name' },
  INVALID_SERVICE_URL: { status: 400, error: 'Invalid service URL' },
  SERVICE_NOT_FOUND: { status: 404, error: 'Service not found' },
  MANAGED_ELSEWHERE: { status: 400, error: 'Service is managed elsewhere' },
  UNAUTHENTICATED: { status: 401, error: 'Unauthenticated' },
  LET_IN_FOR_ANOTHER: { status: 403, error: 'Forbidden' },
  INSUFFICIENT_SCOPE: { status: 403, error: 'Forbidden' },
  NAME_OWNED_BY_ANOTHER: { status: 403, error: 'Forbidden' },
  STORE_UNAVAILABLE: { status: 503, error: 'Store is not available' },
  STORE_FULL: { status: 507, error: 'Store is full' },
  TOO_MANY_REGISTRATIONS: { status: 403, error: 'Too many registrations' },
  CONTENTION: { status: 409, error: 'Contention' },
  OVERLOADED: { status: 503, error: 'Overloaded' },
  STOPPING: { status: 503, error: 'Stopping' },
  GATEWAY_KEYS_UNAVAILABLE: { status: 503, error: "Gateway's keys are not available" },
  TOO_MANY_STREAMS: { status: 503, error: 'Too many streams' },
  STREAM_SHARE_TAKEN: { status: 429, error: 'Too many streams' },
  DATABASE_UNAVAILABLE: { status: 503, error: 'Store is not available' },
  SIGNATURE_REQUIRED: { status: 401, error: 'Signature required' },
  SECRET_MISSING: { status: 503, error: 'Secret is missing' },
  INVALID_SIGNATURE: { status: 401, error: 'Invalid signature' },
  RELEASE_NOT_FOUND: { status: 404, error: 'Release not found' },
  CHANNEL_NOT_FOUND: { status: 404, error: 'Channel not found' },
  CHANNEL_FULL: { status: 503, error: 'Channel is full' },
  CONFIG_NOT_FOUND: { status: 404, error: 'Configuration not found' },
  JOB_CONFLICT: { status: 409, error: 'Job conflict' },
  JOB_NOT_FOUND: { status: 404, error: 'Job not found' },
  JOB_FINISHED: { status: 409, error: 'Job has finished' },
  JOB_NOT_PAUSED: { status: 409, error: 'Job is not paused' },
  DELIVERY_NOT_FOUND: { status: 404, error: 'Delivery not found' },
};

/** The error of the domain that an error is, or that a store which does not answer means; undefined for anything else. */
export function domainError(error: unknown): RegistryError | undefined {
  if (error instanceof RegistryError) return error;
  if (isQuotaExceeded(error)) return new RegistryError('STORE_FULL');
  if (isUnavailable(error)) return new RegistryError('STORE_UNAVAILABLE');
  return isDatabaseUnavailable(error) ? new RegistryError('DATABASE_UNAVAILABLE') : undefined;
}

const PASSING = new Set([429, 503]);
/** Conflicts that pass, too. */
const PASSING_CODES: ReadonlySet<ErrorCode> = new Set(['CONTENTION']);

/** The HTTP answer to a {@link domainError}; undefined for anything else. */
export function mapError(failure: unknown): HttpError | undefined {
  const known = domainError(failure);
  if (known === undefined) return undefined;
  const { code, message } = known;
  const { status, error } = answers[code];
  const headers: Record<string, string> = PASSING.has(status) || PASSING_CODES.has(code) ? { 'retry-after': '1' } : {};
  if (status === 401) headers['www-authenticate'] = 'Bearer';
  return new HttpError(status, error, { message, headers });
}

/**
 * As the contract has it for heartbeats: a service that is not there is the caller's fault, 400 and
 * not 404.
 */
export function notFoundAsBadRequest(error: unknown): unknown {
  if (!(error instanceof RegistryError) || error.code !== 'SERVICE_NOT_FOUND') return error;
  return new HttpError(400, answers.SERVICE_NOT_FOUND.error, { message: error.message });
}
