import type { ErrorKind } from '../errors.ts';

/** Status codes of gRPC calls (grpc/doc/statuscodes.md). */
export const grpcStatus = {
  OK: 0,
  CANCELLED: 1,
  UNKNOWN: 2,
  INVALID_ARGUMENT: 3,
  DEADLINE_EXCEEDED: 4,
  NOT_FOUND: 5,
  ALREADY_EXISTS: 6,
  PERMISSION_DENIED: 7,
  RESOURCE_EXHAUSTED: 8,
  FAILED_PRECONDITION: 9,
  ABORTED: 10,
  OUT_OF_RANGE: 11,
  UNIMPLEMENTED: 12,
  INTERNAL: 13,
  UNAVAILABLE: 14,
  DATA_LOSS: 15,
  UNAUTHENTICATED: 16,
} as const;

export type GrpcStatusName = keyof typeof grpcStatus;
export type GrpcStatus = (typeof grpcStatus)[GrpcStatusName];

/** The end of a call that fails with an error of a catalogue. */
export function grpcStatusNameOf({ status, grpc }: Pick<ErrorKind, 'status' | 'grpc'>): GrpcStatusName {
  return grpc ?? STATUS_OF_ERROR.get(status) ?? 'INTERNAL';
}

/** By the status that the same error has in HTTP. */
const STATUS_OF_ERROR: ReadonlyMap<number, GrpcStatusName> = new Map([
  [400, 'INVALID_ARGUMENT'],
  [401, 'UNAUTHENTICATED'],
  [403, 'PERMISSION_DENIED'],
  [404, 'NOT_FOUND'],
  [409, 'ABORTED'],
  [429, 'RESOURCE_EXHAUSTED'],
  [502, 'UNAVAILABLE'],
  [503, 'UNAVAILABLE'],
  [504, 'DEADLINE_EXCEEDED'],
  [507, 'RESOURCE_EXHAUSTED'],
]);

/**
 * What a client makes of an answer of HTTP that is none of gRPC
 * (grpc/doc/http-grpc-status-mapping.md).
 */
export function grpcStatusOfHttp(httpStatus: number): GrpcStatus {
  return STATUS_OF_HTTP.get(httpStatus) ?? grpcStatus.UNKNOWN;
}

const STATUS_OF_HTTP: ReadonlyMap<number, GrpcStatus> = new Map([
  [400, grpcStatus.INTERNAL],
  [401, grpcStatus.UNAUTHENTICATED],
  [403, grpcStatus.PERMISSION_DENIED],
  [404, grpcStatus.UNIMPLEMENTED],
  [429, grpcStatus.UNAVAILABLE],
  [502, grpcStatus.UNAVAILABLE],
  [503, grpcStatus.UNAVAILABLE],
  [504, grpcStatus.UNAVAILABLE],
]);

/**
 * The value of `grpc-message`: UTF-8, percent-encoded outside of printable ASCII
 * (grpc/doc/PROTOCOL-HTTP2.md).
 */
export function encodeGrpcMessage(message: string): string {
  if (!/[^ -$&-~]/.test(message)) return message;
  let encoded = '';
  for (const byte of Buffer.from(message)) {
    const plain = byte >= 0x20 && byte <= 0x7e && byte !== 0x25;
    encoded += plain ? String.fromCharCode(byte) : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }
  return encoded;
}

/**
 * The value of `grpc-retry-pushback-ms`, by which the retry policy of gRPC libraries knows when to
 * come back (gRFC A6).
 *
 * @param retryAfterMs as long as the caller should wait.
 */
export function retryPushback(retryAfterMs: number): string {
  return String(Math.max(0, Math.ceil(retryAfterMs)));
}
