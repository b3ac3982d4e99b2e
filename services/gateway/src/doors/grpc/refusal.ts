import { encodeGrpcMessage, type GrpcStatus, grpcStatus, retryPushback } from '@rollcall/platform/grpc/status.ts';
import { errorCatalogue, GatewayError } from '../../errors.ts';

/** Trailers by name; an array where a name comes several times. */
export type Trailers = Record<string, string | string[]>;

interface RefusalOptions extends ErrorOptions {
  /** It passes: when to come back. */
  readonly retryAfterMs?: number;
}

/** How the gateway itself ends a call. The message is for the client. */
export class Refusal extends Error {
  readonly status: GrpcStatus;
  readonly retryAfterMs: number | undefined;

  constructor(status: GrpcStatus, message: string, options: RefusalOptions = {}) {
    super(message, options);
    this.name = 'Refusal';
    this.status = status;
    this.retryAfterMs = options.retryAfterMs;
  }

  trailers(): Trailers {
    const trailers: Trailers = {
      'grpc-status': String(this.status),
      'grpc-message': encodeGrpcMessage(this.message),
    };
    if (this.retryAfterMs !== undefined) trailers['grpc-retry-pushback-ms'] = retryPushback(this.retryAfterMs);
    return trailers;
  }
}

/**
 * What the call is answered with after an error before it was forwarded; undefined: one that nobody
 * foresaw.
 */
export function refusalOf(error: unknown): Refusal | undefined {
  if (error instanceof Refusal) return error;
  if (!(error instanceof GatewayError)) return undefined;
  const byHttp = STATUS_OF.get(errorCatalogue[error.code].status) ?? grpcStatus.INTERNAL;
  // To try it again is of no use before it is registered anew.
  const status = error.code === 'ADDRESS_REFUSED' ? grpcStatus.FAILED_PRECONDITION : byHttp;
  const retryAfter = error.headers['retry-after'];
  const passes = retryAfter === undefined ? {} : { retryAfterMs: Number(retryAfter) * 1000 };
  return new Refusal(status, error.message, { cause: error, ...passes });
}

/** By the HTTP status of our own errors. */
const STATUS_OF: ReadonlyMap<number, GrpcStatus> = new Map([
  [400, grpcStatus.INVALID_ARGUMENT],
  [401, grpcStatus.UNAUTHENTICATED],
  [403, grpcStatus.PERMISSION_DENIED],
  [404, grpcStatus.UNIMPLEMENTED],
  [429, grpcStatus.RESOURCE_EXHAUSTED],
  [502, grpcStatus.UNAVAILABLE],
  [503, grpcStatus.UNAVAILABLE],
  [504, grpcStatus.DEADLINE_EXCEEDED],
]);
