import { constants } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { GrpcLimits } from './limits.ts';
import { Refusal } from './refusal.ts';
import type { KnownCall } from './serving.ts';

type SweepLimits = Pick<GrpcLimits, 'lingerMs' | 'readingGraceMs'>;

export const SWEEP_INTERVAL_MS = 500;
const { NGHTTP2_CANCEL } = constants;

/** Ends a call that nobody waits for any more, or that its caller may not have any more. */
export function sweep(
  known: KnownCall,
  { lingerMs, readingGraceMs }: SweepLimits,
  authenticator: Pick<Authenticator, 'stillHolds'>,
): void {
  const { stream, forwarded } = known;
  // That its caller has reset without an error.
  if (stream.closed) {
    forwarded?.call.closed();
    stream.destroy();
    return;
  }
  if (forwarded !== undefined && !authenticator.stillHolds(forwarded.token))
    forwarded.call.fail(new Refusal(grpcStatus.UNAUTHENTICATED, 'The bearer token does not hold any more'));
  const leftBytes = stream.bufferSize;
  // What is left says nothing: where it is read steadily, that is the same at each sweep.
  const readBytes = (forwarded?.call.answeredBytes ?? 0) - leftBytes;
  const isStuck = (leftBytes > 0 || stream.writableEnded) && readBytes === known.readBytes;
  known.readBytes = readBytes;
  known.stuckMs = isStuck ? known.stuckMs + SWEEP_INTERVAL_MS : 0;
  const isEndedHere = stream.writableEnded && forwarded?.call.isAnswered !== true;
  if (known.stuckMs < (isEndedHere ? lingerMs : readingGraceMs)) return;
  if (forwarded === undefined || stream.writableEnded) stream.close(NGHTTP2_CANCEL);
  else forwarded.call.cutOff();
}
