import { Metadata, type StatusObject, status } from '@grpc/grpc-js';
import { grpcStatusNameOf, retryPushback } from '@rollcall/platform/grpc/status.ts';
import { type ErrorCode, errorCatalogue } from '../common/errors.ts';
import { domainError } from '../http/errors.ts';

/** How a call ends that failed. */
export type CallFailure = Pick<StatusObject, 'code' | 'details'> & Partial<Pick<StatusObject, 'metadata'>>;

const RETRY_AFTER_MS = 1000;

/** The end of a call that failed; undefined: an error that is none of the domain's. */
export function statusOfError(error: unknown): CallFailure | undefined {
  const known = domainError(error);
  return known && failure(known.code, known.message);
}

/** The end of a call that fails with this error. */
export function failure(errorCode: ErrorCode, details: string): CallFailure {
  const code = status[grpcStatusNameOf(errorCatalogue[errorCode])];
  const metadata = new Metadata();
  metadata.set('rollcall-error', errorCode);
  return code === status.UNAVAILABLE ? unavailable(details, metadata) : { code, details, metadata };
}

/** It passes: the caller should come back. */
export function unavailable(details: string, metadata = new Metadata()): CallFailure {
  metadata.set('grpc-retry-pushback-ms', retryPushback(RETRY_AFTER_MS));
  return { code: status.UNAVAILABLE, details, metadata };
}
