import { constants, type IncomingHttpHeaders, type IncomingHttpStatusHeader } from 'node:http2';
import { type GrpcStatus, grpcStatus, grpcStatusOfHttp } from '@rollcall/platform/grpc/status.ts';
import { isGrpc } from './headers.ts';
import { Refusal, type Trailers } from './refusal.ts';

/** By their numbers as text: every call has one to be read. */
const STATUSES = new Map(Object.values(grpcStatus).map((code) => [String(code), code]));

/** What a service ended a call with; UNKNOWN where it says nothing that is a status. */
export function statusOf({ 'grpc-status': status }: Trailers): GrpcStatus {
  return (typeof status === 'string' ? STATUSES.get(status.trim()) : undefined) ?? grpcStatus.UNKNOWN;
}

/** An end that does not say how the call ended; undefined: it does. */
export function faultOfEnd(trailers: Trailers): Refusal | undefined {
  if (trailers['grpc-status'] !== undefined) return undefined;
  return new Refusal(grpcStatus.INTERNAL, 'The service ended the call without a status');
}

/** An answer that is none of gRPC's; undefined: it is one. */
export function faultOfAnswer(head: IncomingHttpHeaders & IncomingHttpStatusHeader): Refusal | undefined {
  const { ':status': status, 'content-type': type = '' } = head;
  if (status !== 200) {
    return new Refusal(grpcStatusOfHttp(Number(status)), `The service answered with HTTP status ${status}`);
  }
  if (isGrpc(type)) return undefined;
  return new Refusal(grpcStatus.UNKNOWN, 'The service answered with something that is no gRPC');
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
const RESETS: ReadonlyMap<number, [status: GrpcStatus, message: string]> = new Map([
  [constants.NGHTTP2_REFUSED_STREAM, [grpcStatus.UNAVAILABLE, 'The service refused the call']],
  [constants.NGHTTP2_CANCEL, [grpcStatus.CANCELLED, 'The service cancelled the call']],
  [
    constants.NGHTTP2_ENHANCE_YOUR_CALM,
    [
      grpcStatus.RESOURCE_EXHAUSTED,
      'The service accepts no more calls at the moment, or answered with too much metadata',
    ],
  ],
  [
    constants.NGHTTP2_INADEQUATE_SECURITY,
    [grpcStatus.PERMISSION_DENIED, 'The service accepts no calls over such a connection'],
  ],
]);

export function refusalOfReset(code: number): Refusal {
  return new Refusal(...(RESETS.get(code) ?? [grpcStatus.INTERNAL, 'The service reset the call']));
}
