import type { Clock } from '@rollcall/platform/clock.ts';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Endpoint, Endpoints } from '../discovery/endpoints.ts';
import { type CallSpan, withTrace } from './call-span.ts';
import type { CallHead } from './headers.ts';
import type { GrpcTarget } from './ports.ts';
import { Refusal } from './refusal.ts';
import { formatTimeout } from './timeout.ts';
import type { UpstreamCall, Upstreams } from './upstreams.ts';

/** What a backend is to get. */
export interface OutgoingCall {
  readonly head: CallHead;
  readonly target: GrpcTarget;
  /** Names and values in turn. */
  readonly identity: readonly string[];
  /** Of the monotonic clock. */
  readonly deadlineMs: number | undefined;
  readonly span: CallSpan | undefined;
}

/**
 * @returns begins the call at the next endpoint of its target; called again where that did not take it, at another one if there is one.
 *   It throws a Refusal where none takes calls now, or the deadline is over.
 */
export function attemptsAt(upstreams: Upstreams, outgoing: OutgoingCall, clock: Clock): () => UpstreamCall {
  const { target, span, head, identity } = outgoing;
  const { origin, endpoints } = target;
  let failed: Endpoint | undefined;

  return () => {
    const timeout = timeoutLeft(outgoing, clock.monotonicMs());
    const endpoint = endpoints.acquire(failed);
    if (endpoint === undefined) throw unavailable(endpoints);
    failed = endpoint;
    const forwarded = span === undefined ? head.forwarded : withTrace(head.forwarded, span.attempt(target));
    const headers = [':method', 'POST', ':path', head.path, 'te', 'trailers', ...timeout, ...forwarded, ...identity];
    try {
      const call = upstreams.open({ origin, address: endpoint.address }, headers);
      settle(call, endpoint, endpoints);
      return call;
    } catch (error) {
      endpoint.breaker.abandoned();
      throw new Refusal(grpcStatus.INVALID_ARGUMENT, 'The metadata cannot be passed on', { cause: error });
    }
  };
}

export function deadlineExceeded(): Refusal {
  return new Refusal(grpcStatus.DEADLINE_EXCEEDED, 'The deadline of the call is over');
}

function timeoutLeft({ deadlineMs }: OutgoingCall, nowMs: number): readonly string[] {
  if (deadlineMs === undefined) return [];
  if (deadlineMs <= nowMs) throw deadlineExceeded();
  return ['grpc-timeout', formatTimeout(deadlineMs - nowMs)];
}

function unavailable(endpoints: Endpoints): Refusal {
  const retryAfterMs = Math.max(1000, endpoints.retryAfterMs());
  return new Refusal(grpcStatus.UNAVAILABLE, 'The service could not be reached several times in a row', {
    retryAfterMs,
  });
}

/** Statuses speak of services and not of their endpoints: only a connection that is lost before an answer counts against one. */
function settle(call: UpstreamCall, { breaker }: Endpoint, endpoints: Endpoints): void {
  let isAnswered = false;
  call.stream.once('response', () => {
    isAnswered = true;
    breaker.succeeded();
  });
  call.stream.once('close', () => {
    if (isAnswered) return;
    if (!call.wasLost()) {
      breaker.abandoned();
      return;
    }
    breaker.failed();
    endpoints.suspect();
  });
}
