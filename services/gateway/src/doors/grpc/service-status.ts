import { constants } from 'node:http2';
import { type GrpcStatus, grpcStatus, grpcStatusOfHttp } from '@rollcall/platform/grpc/status.ts';
import { isGrpc } from './headers.ts';
import { Refusal, type Trailers } from './refusal.ts';

const STATUSES: ReadonlyMap<string, GrpcStatus> = new Map(
  Object.values(grpcStatus).map((code) => [String(code), code]),
);

/** What a service ended a call with; UNKNOWN where it says nothing that is a status. */
export function statusOf(trailers: Trailers): GrpcStatus {
  const status = trailers['grpc-status'];
  return (typeof status === 'string' ? STATUSES.get(status) : undefined) ?? grpcStatus.UNKNOWN;
}

/** An answer that is none of gRPC's; undefined: it is one. @param raw names and values in turn. */
export function faultOfAnswer(raw: readonly string[]): Refusal | undefined {
  const status = valueOf(raw, ':status');
  if (status !== '200') {
    return new Refusal(grpcStatusOfHttp(Number(status)), `The service answered with HTTP status ${status}`);
  }
  if (isGrpc(valueOf(raw, 'content-type'))) return undefined;
  return new Refusal(grpcStatus.UNKNOWN, 'The service answered with something that is no gRPC');
}

function valueOf(raw: readonly string[], name: string): string {
  for (let index = 0; index < raw.length; index += 2) if (raw[index] === name) return raw[index + 1] ?? '';
  return '';
}

/**
 * @param mayBeAccepted whether the backend may have processed the call: who repeats it may have it
 * done twice.
 */
export function lost(mayBeAccepted: boolean): Refusal {
  const message = mayBeAccepted ? 'The connection to the service was lost' : 'The service could not be reached';
  return new Refusal(grpcStatus.UNAVAILABLE, message);
}

/** By the code of RST_STREAM (grpc/doc/PROTOCOL-HTTP2.md, "Errors"). */
export function refusalOfReset(code: number): Refusal {
  switch (code) {
    case constants.NGHTTP2_REFUSED_STREAM:
      return new Refusal(grpcStatus.UNAVAILABLE, 'The service refused the call');
    case constants.NGHTTP2_CANCEL:
      return new Refusal(grpcStatus.CANCELLED, 'The service cancelled the call');
    case constants.NGHTTP2_ENHANCE_YOUR_CALM:
      return new Refusal(
        grpcStatus.RESOURCE_EXHAUSTED,
        'The service accepts no more calls at the moment, or answered with too much metadata',
      );
    case constants.NGHTTP2_INADEQUATE_SECURITY:
      return new Refusal(grpcStatus.PERMISSION_DENIED, 'The service accepts no calls over such a connection');
    default:
      return new Refusal(grpcStatus.INTERNAL, 'The service reset the call');
  }
}
