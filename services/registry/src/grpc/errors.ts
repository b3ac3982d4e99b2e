import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { type GrpcStatus, retryTrailers } from '@rollcall/platform/grpc/status.ts';
import { isQuotaExceeded, isUnavailable } from '@rollcall/platform/kube/errors.ts';
import { type ErrorCode, errorCatalogue, RegistryError } from '../common/errors.ts';

/** How a call ends that failed. */
export type CallFailure = Pick<StatusObject, 'code' | 'details'> & Partial<Pick<StatusObject, 'metadata'>>;

const RETRY_AFTER_MS = 1000;

/** Every error of the domain as a gRPC status. */
const statuses = {
  INVALID_REQUEST: status.INVALID_ARGUMENT,
  INVALID_SERVICE_NAME: status.INVALID_ARGUMENT,
  INVALID_SERVICE_URL: status.INVALID_ARGUMENT,
  SERVICE_NOT_FOUND: status.NOT_FOUND,
  MANAGED_ELSEWHERE: status.FAILED_PRECONDITION,
  UNAUTHENTICATED: status.UNAUTHENTICATED,
  LET_IN_FOR_ANOTHER: status.PERMISSION_DENIED,
  INSUFFICIENT_SCOPE: status.PERMISSION_DENIED,
  NAME_OWNED_BY_ANOTHER: status.PERMISSION_DENIED,
  STORE_UNAVAILABLE: status.UNAVAILABLE,
  STORE_FULL: status.RESOURCE_EXHAUSTED,
  TOO_MANY_REGISTRATIONS: status.RESOURCE_EXHAUSTED,
  CONTENTION: status.ABORTED,
  OVERLOADED: status.UNAVAILABLE,
  STOPPING: status.UNAVAILABLE,
  GATEWAY_KEYS_UNAVAILABLE: status.UNAVAILABLE,
  TOO_MANY_STREAMS: status.UNAVAILABLE,
  STREAM_SHARE_TAKEN: status.RESOURCE_EXHAUSTED,
  DATABASE_UNAVAILABLE: status.UNAVAILABLE,
  SIGNATURE_REQUIRED: status.UNAUTHENTICATED,
  SECRET_MISSING: status.UNAVAILABLE,
  INVALID_SIGNATURE: status.UNAUTHENTICATED,
  RELEASE_NOT_FOUND: status.NOT_FOUND,
  CHANNEL_NOT_FOUND: status.NOT_FOUND,
  CHANNEL_FULL: status.UNAVAILABLE,
  CONFIG_NOT_FOUND: status.NOT_FOUND,
  JOB_CONFLICT: status.ALREADY_EXISTS,
  JOB_NOT_FOUND: status.NOT_FOUND,
  JOB_FINISHED: status.FAILED_PRECONDITION,
  JOB_NOT_PAUSED: status.FAILED_PRECONDITION,
  DELIVERY_NOT_FOUND: status.NOT_FOUND,
} as const satisfies Record<ErrorCode, GrpcStatus>;

/** The end of a call that failed; undefined: an error that is none of the domain's. */
export function statusOfError(error: unknown): CallFailure | undefined {
  if (error instanceof RegistryError) return failure(error.code, error.message);
  if (isQuotaExceeded(error)) return failure('STORE_FULL', errorCatalogue.STORE_FULL);
  if (isUnavailable(error)) return failure('STORE_UNAVAILABLE', errorCatalogue.STORE_UNAVAILABLE);
  return undefined;
}

/** The end of a call that fails with this error. */
export function failure(errorCode: ErrorCode, details: string): CallFailure {
  const code = statuses[errorCode];
  const metadata = new Metadata();
  metadata.set('rollcall-error', errorCode);
  return code === status.UNAVAILABLE ? unavailable(details, metadata) : { code, details, metadata };
}

/** It passes: the caller should come back. */
export function unavailable(details: string, metadata = new Metadata()): CallFailure {
  const retry = retryTrailers(status.UNAVAILABLE, details, RETRY_AFTER_MS);
  metadata.set('grpc-retry-pushback-ms', retry.pushbackMs);
  metadata.set('grpc-status-details-bin', retry.details);
  return { code: status.UNAVAILABLE, details, metadata };
}
