import type { ClientHttp2Stream } from 'node:http2';
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
  /** Undefined: it has none. */
  readonly requestId: string | undefined;
  /** Of the monotonic clock. */
  readonly deadlineMs: number | undefined;
  readonly span: CallSpan | undefined;
}

/**
 * @returns begins the call at the next endpoint of its target; called again where that did not take it, at another one if there is one.
 *   It throws a Refusal where none takes calls now, or the deadline is over.
 */
export function attemptsAt(upstreams: Upstreams, outgoing: OutgoingCall, clock: Clock): () => Attempt {
  const { target, span, head, identity, requestId } = outgoing;
  const { origin, endpoints } = target;
  let failed: Endpoint | undefined;

  return () => {
    const timeout = timeoutLeft(outgoing, clock.monotonicMs());
    const endpoint = endpoints.acquire(failed);
    if (endpoint === undefined) throw unavailable(endpoints);
    failed = endpoint;
    const forwarded = span === undefined ? head.forwarded : withTrace(head.forwarded, span.attempt(target));
    const headers = [':method', 'POST', ':path', head.path, 'te', 'trailers', ...timeout, ...forwarded, ...identity];
    if (requestId !== undefined) headers.push('x-request-id', requestId);
    try {
      return new Attempt(upstreams.open({ origin, address: endpoint.address }, headers), endpoint, endpoints);
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

/** A call under way at an endpoint. */
export class Attempt {
  readonly #call: UpstreamCall;
  readonly #endpoint: Endpoint;
  readonly #endpoints: Endpoints;
  #isAnswered = false;

  constructor(call: UpstreamCall, endpoint: Endpoint, endpoints: Endpoints) {
    this.#call = call;
    this.#endpoint = endpoint;
    this.#endpoints = endpoints;
  }

  get stream(): ClientHttp2Stream {
    return this.#call.stream;
  }

  /** As {@link UpstreamCall.wasNotTaken}. */
  wasNotTaken(): boolean {
    return this.#call.wasNotTaken();
  }

  /** As {@link UpstreamCall.wasLost}. */
  wasLost(): boolean {
    return this.#call.wasLost();
  }

  /** To be told that the head of an answer has come. Its status speaks of the service and not of the endpoint. */
  answered(): void {
    this.#isAnswered = true;
    this.#endpoint.breaker.succeeded();
  }

  /** To be told that the stream is closed: only a connection that is lost before an answer counts against an endpoint. */
  closed(): void {
    this.#call.closed();
    if (this.#isAnswered) return;
    const { breaker } = this.#endpoint;
    if (!this.#call.wasLost()) {
      breaker.abandoned();
      return;
    }
    breaker.failed();
    this.#endpoints.suspect();
  }
}
