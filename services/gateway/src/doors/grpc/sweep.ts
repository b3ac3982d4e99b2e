import { constants } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { GrpcLimits } from './limits.ts';
import { Refusal } from './refusal.ts';
import type { KnownCall } from './serving.ts';

type SweepLimits = Pick<GrpcLimits, 'lingerMs' | 'readingGraceMs' | 'unreadBytes'>;

export const SWEEP_INTERVAL_MS = 500;
const { NGHTTP2_CANCEL } = constants;

/**
 * Ends calls that nobody waits for any more, that their callers may not have any more, and those
 * that would be too much to keep.
 */
export function sweep(
  calls: ReadonlySet<KnownCall>,
  limits: SweepLimits,
  authenticator: Pick<Authenticator, 'stillHolds'>,
): void {
  let unreadBytes = 0;
  for (const known of calls) {
    endWhenLeft(known, limits);
    const { forwarded } = known;
    if (forwarded !== undefined && !authenticator.stillHolds(forwarded.token))
      forwarded.call.fail(new Refusal(grpcStatus.UNAUTHENTICATED, 'The bearer token does not hold any more'));
    unreadBytes += unreadOf(known);
  }
  if (unreadBytes > limits.unreadBytes) endStuck(calls, unreadBytes - limits.unreadBytes);
}

/** Ends a call that its caller has reset without an error, or whose answer is not read. */
function endWhenLeft(known: KnownCall, { lingerMs, readingGraceMs }: SweepLimits): void {
  const { stream, forwarded } = known;
  if (stream.closed) {
    forwarded?.call.closed();
    stream.destroy();
    return;
  }
  const leftBytes = stream.bufferSize;
  // What is left says nothing: where it is read steadily, that is the same at each sweep.
  const readBytes = (forwarded?.call.answeredBytes ?? 0) - leftBytes;
  const isStuck = (leftBytes > 0 || stream.writableEnded) && readBytes === known.readBytes;
  known.readBytes = readBytes;
  known.stuckMs = isStuck ? known.stuckMs + SWEEP_INTERVAL_MS : 0;
  const isEndedHere = stream.writableEnded && forwarded?.call.isAnswered !== true;
  if (known.stuckMs >= (isEndedHere ? lingerMs : readingGraceMs)) cutOff(known);
}

function unreadOf({ stream, forwarded }: KnownCall): number {
  return stream.readableLength + stream.writableLength + (forwarded?.call.unreadBytes ?? 0);
}

/**
 * Ends calls until so many bytes less are kept: first those of the subject for which most is kept,
 * and of these the ones of which nothing was read for longest. Of calls that began since the last
 * sweep, the first are those of which least was read.
 */
function endStuck(calls: ReadonlySet<KnownCall>, bytes: number): void {
  const unread = [...calls].map((known) => ({ known, subject: known.subject, bytes: unreadOf(known) }));
  const bySubject = new Map<string | undefined, number>();
  for (const { subject, bytes } of unread) bySubject.set(subject, (bySubject.get(subject) ?? 0) + bytes);
  const keptFor = ({ subject }: { subject: string | undefined }): number => bySubject.get(subject) ?? 0;
  unread.sort(
    (one, other) =>
      keptFor(other) - keptFor(one) ||
      other.known.stuckMs - one.known.stuckMs ||
      one.known.readBytes - other.known.readBytes,
  );
  let left = bytes;
  for (const { known, bytes } of unread) {
    if (left <= 0) return;
    if (bytes === 0) continue;
    left -= bytes;
    cutOff(known);
  }
}

function cutOff({ stream, forwarded }: KnownCall): void {
  if (forwarded === undefined || stream.writableEnded) stream.close(NGHTTP2_CANCEL);
  else forwarded.call.cutOff();
}
