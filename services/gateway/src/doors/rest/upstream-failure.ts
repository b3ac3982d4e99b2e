import { maxHeaderSize } from 'node:http';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { AddressRefusedError } from '@rollcall/platform/outbound/address-rules.ts';
import { isOfLookup } from '@rollcall/platform/outbound/lookups.ts';
import { errors } from 'undici';
import type { ErrorCode } from '../../errors.ts';

/** Why a service gave no answer. */
export interface UpstreamFailure {
  readonly code: Extract<
    ErrorCode,
    | 'UPSTREAM_UNREACHABLE'
    | 'ADDRESS_REFUSED'
    | 'UPSTREAM_INVALID'
    | 'UPSTREAM_TIMEOUT'
    | 'BODY_TOO_LARGE'
    | 'INVALID_TOKEN'
  >;
  /**
   * Whether a request that may be repeated is worth repeating: not where it has waited for long
   * already, or the next would for the same name.
   */
  readonly retryable: boolean;
  /** Whether nothing of the request can have been sent: no connection was made. */
  readonly unsent: boolean;
  /**
   * Whom it speaks against; `unclear`: what a service is sent may be why it breaks off, and a name
   * that cannot be looked up says nothing of who would answer there.
   */
  readonly blame: 'service' | 'caller' | 'unclear';
  /** For the log: it may contain addresses. */
  readonly reason: string;
  /** For the caller; undefined: that of the code. */
  readonly message?: string;
}

/** Ends an attempt, or the upload of one, for a reason that is known here. */
export class AttemptError extends Error {
  readonly failure: Pick<UpstreamFailure, 'code' | 'blame'>;

  constructor(code: UpstreamFailure['code'], blame: UpstreamFailure['blame'], message: string) {
    super(message);
    this.name = 'AttemptError';
    this.failure = { code, blame };
  }
}

/** What became of a request that was sent to a service once. */
export type Attempt =
  | { readonly type: 'answered'; readonly status: number }
  | { readonly type: 'failed'; readonly failure: UpstreamFailure; readonly begun: boolean }
  /** The caller disconnected first. */
  | { readonly type: 'abandoned' };

const HEAD_TOO_LARGE = `The service answered with a head of more than ${maxHeaderSize} bytes; it must send shorter header fields`;

/** Pure. What an error of the HTTP client means. */
export function outcomeOf(error: unknown): UpstreamFailure {
  const reason = errorMessage(error);
  const failure = { retryable: false, unsent: false, blame: 'service', reason } as const;
  if (error instanceof AttemptError) return { ...failure, ...error.failure };
  if (error instanceof AddressRefusedError)
    return { ...failure, code: 'ADDRESS_REFUSED', unsent: true, blame: 'unclear' };
  const code = codeOf(error);
  if (code === 'UND_ERR_CONNECT_TIMEOUT')
    return { ...failure, code: 'UPSTREAM_TIMEOUT', retryable: true, unsent: true };
  // Who sends a head that is too long is there; one path of it must not keep the others from being
  // called.
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return { ...failure, code: 'UPSTREAM_INVALID', blame: 'unclear', message: HEAD_TOO_LARGE };
  if (error instanceof errors.HTTPParserError || INVALID.has(code) || isUnaskedUpgrade(error))
    return { ...failure, code: 'UPSTREAM_INVALID' };
  // The length that the caller announced, or the connection that it broke off within its body.
  if (CALLER.has(code)) return { ...failure, code: 'UPSTREAM_UNREACHABLE', blame: 'caller' };
  if (isOfLookup(error)) return { ...failure, code: 'UPSTREAM_UNREACHABLE', unsent: true, blame: 'unclear' };
  // Whatever else went wrong would go wrong again: a certificate that is not accepted, for instance.
  const retryable = isOfConnection(error, code);
  return { ...failure, code: 'UPSTREAM_UNREACHABLE', retryable, unsent: isOfConnecting(error) };
}

/** A connection was not made, or broke off. TLS and undici report the latter by codes alone. */
function isOfConnection(error: unknown, code: string): boolean {
  if (error instanceof AggregateError || code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') return true;
  return error instanceof Error && 'syscall' in error;
}

/** The answer 101 to a request that asked for no upgrade: undici has no code for it. */
function isUnaskedUpgrade(error: unknown): boolean {
  return error instanceof errors.SocketError && error.message === 'bad upgrade';
}

/** Of several addresses that were tried at once, all errors come as one. */
function isOfConnecting(error: unknown): boolean {
  if (error instanceof AggregateError) return true;
  return error instanceof Error && 'syscall' in error && error.syscall === 'connect';
}

const INVALID = new Set(['UND_ERR_RES_CONTENT_LENGTH_MISMATCH', 'UND_ERR_RES_EXCEEDED_MAX_SIZE']);
const CALLER = new Set(['UND_ERR_REQ_CONTENT_LENGTH_MISMATCH', 'UND_ERR_INVALID_ARG', 'UND_ERR_ABORTED']);

function codeOf(error: unknown): string {
  if (!(error instanceof Error) || !('code' in error)) return '';
  return typeof error.code === 'string' ? error.code : '';
}
