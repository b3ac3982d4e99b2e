import { constants } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { LinkedList } from '@rollcall/platform/linked-list.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { OwnHealth } from './health.ts';
import type { KnownCall } from './known-call.ts';
import { Refusal } from './refusal.ts';

export interface LookLimits {
  /** How long a caller that reads nothing may keep an answer waiting that the gateway has ended... */
  readonly lingerMs: number;
  /** ...and how long what its backend has answered, of which it takes some 50 KiB at a time, as Node tells. */
  readonly readingGraceMs: number;
  /** What may be kept of all calls because one of their sides does not take it. */
  readonly unreadBytes: number;
}

interface Looked {
  readonly clock: Clock;
  readonly authenticator: Pick<Authenticator, 'stillHolds'>;
  readonly bounds: LookLimits;
  readonly health: Pick<OwnHealth, 'endOld'>;
  readonly calls: LinkedList<KnownCall>;
  readonly probes: LinkedList<KnownCall>;
}

export const LOOK_INTERVAL_MS = 500;
const { NGHTTP2_CANCEL } = constants;

/** Looks at all calls: ends what nobody waits for any more, what its caller may not have any more, and what would be too much to keep. */
export function look(context: Looked): void {
  const { bounds, health } = context;
  const nowMs = context.clock.monotonicMs();
  health.endOld();
  for (const { value: known } of context.probes.links()) {
    const isOverdue = !known.stream.readableEnded && nowMs - known.beganAtMs >= bounds.lingerMs;
    if (isOverdue) known.stream.close(NGHTTP2_CANCEL);
    endWhenLeft(known, bounds);
  }
  let unreadBytes = 0;
  for (const { value: known } of context.calls.links()) {
    endWhenLeft(known, bounds);
    endWhenRevoked(context, known, nowMs);
    unreadBytes += unreadOf(known);
  }
  if (unreadBytes > bounds.unreadBytes) endLargest(context.calls, unreadBytes - bounds.unreadBytes);
}

/** Ends a call that its caller has reset without an error, or whose answer is not read. */
function endWhenLeft(known: KnownCall, { lingerMs, readingGraceMs }: LookLimits): void {
  const { stream, forwarded } = known;
  if (stream.closed) {
    forwarded?.call.closed();
    stream.destroy();
    return;
  }
  const leftBytes = stream.bufferSize;
  // What is left says nothing: where it is taken steadily, that is the same at each look.
  const takenBytes = (forwarded?.call.answeredBytes ?? 0) - leftBytes;
  const isStuck = (leftBytes > 0 || stream.writableEnded) && takenBytes === known.takenBytes;
  known.takenBytes = takenBytes;
  known.stuckMs = isStuck ? known.stuckMs + LOOK_INTERVAL_MS : 0;
  const isEndedHere = stream.writableEnded && forwarded?.call.isAnswered !== true;
  if (known.stuckMs >= (isEndedHere ? lingerMs : readingGraceMs)) cutOff(known);
}

function endWhenRevoked(
  { authenticator }: Pick<Looked, 'authenticator'>,
  { forwarded, beganAtMs }: KnownCall,
  nowMs: number,
): void {
  if (forwarded === undefined || nowMs - beganAtMs < LOOK_INTERVAL_MS || authenticator.stillHolds(forwarded.token))
    return;
  forwarded.call.fail(new Refusal(grpcStatus.UNAUTHENTICATED, 'The bearer token does not hold any more'));
}

function unreadOf({ stream, forwarded }: KnownCall): number {
  return stream.readableLength + stream.writableLength + (forwarded?.call.unreadBytes() ?? 0);
}

/** Ends calls until so many bytes less are kept: those first of which nothing was taken for longest, then those that keep most. */
function endLargest(calls: LinkedList<KnownCall>, bytes: number): void {
  const found = calls
    .links()
    .map(({ value }) => ({ known: value, unread: unreadOf(value) }))
    .filter(({ unread }) => unread > 0)
    .toSorted((one, other) => other.known.stuckMs - one.known.stuckMs || other.unread - one.unread);
  let left = bytes;
  for (const { known, unread } of found) {
    if (left <= 0) return;
    left -= unread;
    cutOff(known);
  }
}

function cutOff({ stream, forwarded }: KnownCall): void {
  if (forwarded === undefined || stream.writableEnded) stream.close(NGHTTP2_CANCEL);
  else forwarded.call.cutOff();
}
