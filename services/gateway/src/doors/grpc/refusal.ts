import {
  encodeGrpcMessage,
  type GrpcStatus,
  grpcStatus,
  grpcStatusNameOf,
  retryPushback,
} from '@rollcall/platform/grpc/status.ts';
import { answerOf } from '@rollcall/platform/http/errors.ts';
import { GatewayError } from '../../errors.ts';

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
  const retryAfter = answerOf(error).headers['retry-after'];
  const passes = retryAfter === undefined ? {} : { retryAfterMs: Number(retryAfter) * 1000 };
  return new Refusal(grpcStatus[grpcStatusNameOf(error.kind)], error.message, { cause: error, ...passes });
}
