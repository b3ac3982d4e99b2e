import type { GrpcStatusName } from './grpc/status.ts';

/**
 * An error with a stable code from its package's catalogue. Domain functions throw codes; only the
 * edge (HTTP, CLI) knows what a code means there.
 */
export class CodedError<Code extends string = string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CodedError';
    this.code = code;
  }
}

/**
 * One thing that a service refuses or cannot do: a row of its error catalogue. Answers by HTTP and
 * gRPC and docs/errors.md come of it.
 */
export interface ErrorKind {
  /** Of HTTP. */
  readonly status: number;
  /** Its type in `plainErrorBody`; its code where absent. */
  readonly error?: string;
  /** What is wrong and what to do, without a full stop, where nothing more precise is known. */
  readonly message: string;
  /** Where gRPC is more exact than the status of HTTP. */
  readonly grpc?: GrpcStatusName;
  /** It passes by itself, as 429 and 503 do: Retry-After says when to come back. */
  readonly passes?: boolean;
}

/** By the code of the error, which only the source and `codedErrorBody` have. */
export type ErrorCatalogue = Readonly<Record<string, ErrorKind>>;

interface ServiceErrorOptions extends ErrorOptions {
  readonly message?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly details?: Readonly<Record<string, unknown>>;
}

/**
 * An error of a service's catalogue. The message is for the caller: it must hold neither secrets
 * nor addresses of others.
 */
export class ServiceError<Code extends string = string> extends CodedError<Code> {
  readonly kind: ErrorKind;
  readonly headers: Readonly<Record<string, string>>;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(code: Code, kind: ErrorKind, { message, headers = {}, details = {}, cause }: ServiceErrorOptions = {}) {
    super(code, message ?? kind.message, { cause });
    this.kind = kind;
    this.headers = headers;
    this.details = details;
  }
}

/** What a thrown value says, whatever was thrown. */
export function errorMessage(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Node reports a host of several addresses, all of which refused, without a message of its own.
  if (error.message === '' && error instanceof AggregateError) return error.errors.map(errorMessage).join(', ');
  return error.message;
}
