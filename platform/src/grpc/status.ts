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

export type GrpcStatus = (typeof grpcStatus)[keyof typeof grpcStatus];

/**
 * Status for an answer of HTTP (grpc/doc/http-grpc-status-mapping.md, and what our own error
 * catalogues mean by theirs).
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

/** By which clients know that an error passes, and when to come back. */
export interface RetryTrailers {
  /** For the retry policy of gRPC libraries (gRFC A6). */
  readonly pushbackMs: string;
  /** `google.rpc.Status` with a `google.rpc.RetryInfo`, for `grpc-status-details-bin`. */
  readonly details: Buffer;
}

/** @param retryAfterMs as long as the caller should wait. */
export function retryTrailers(code: GrpcStatus, message: string, retryAfterMs: number): RetryTrailers {
  const wholeMs = Math.max(0, Math.ceil(retryAfterMs));
  const duration = Buffer.concat([
    varintField(1, Math.floor(wholeMs / 1000)),
    varintField(2, (wholeMs % 1000) * 1_000_000),
  ]);
  const any = Buffer.concat([
    bytesField(1, Buffer.from('type.googleapis.com/google.rpc.RetryInfo')),
    bytesField(2, bytesField(1, duration)),
  ]);
  const details = Buffer.concat([varintField(1, code), bytesField(2, Buffer.from(message)), bytesField(3, any)]);
  return { pushbackMs: String(wholeMs), details };
}

function varintField(field: number, value: number): Buffer {
  return value === 0 ? Buffer.alloc(0) : Buffer.from([...varint(field * 8), ...varint(value)]);
}

function bytesField(field: number, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from([...varint(field * 8 + 2), ...varint(content.length)]), content]);
}

/** Protocol buffers' base-128 number, up to 2^53. */
function varint(value: number): number[] {
  const bytes: number[] = [];
  let rest = value;
  while (rest > 0x7f) {
    bytes.push((rest % 0x80) + 0x80);
    rest = Math.floor(rest / 0x80);
  }
  bytes.push(rest);
  return bytes;
}
