import type { Clock } from '@rollcall/platform/clock.ts';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Link } from '@rollcall/platform/linked-list.ts';
import type { ClientStream, StreamEnd, StreamHandler } from '../../http2/client-stream.ts';
import { errorCode } from '../../http2/protocol.ts';
import type { Endpoint, Endpoints } from '../../upstream/discovery/endpoints.ts';
import { type CallSpan, withTrace } from './call-span.ts';
import type { CallHead } from './headers.ts';
import type { Place, PooledConnection, Waiter } from './pooled-connection.ts';
import type { GrpcTarget } from './ports.ts';
import { Refusal } from './refusal.ts';
import { formatTimeout } from './timeout.ts';
import type { Upstreams } from './upstreams.ts';

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
    const place = { origin, endpoint, endpoints };
    const connection = upstreams.connectionTo(place);
    const headers = [':method', 'POST', ...connection.originHeaders, ':path', head.path, 'te', 'trailers'];
    headers.push(...timeout, ...forwarded, ...identity);
    if (requestId !== undefined) headers.push('x-request-id', requestId);
    return new Attempt(place, headers, connection);
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

/** A call at an endpoint: waiting for the connection, or under way. */
export class Attempt {
  readonly #place: Place;
  readonly #headers: readonly string[];
  readonly #connection: PooledConnection;
  #stream: ClientStream | undefined;
  #waiting: Link<Waiter> | undefined;
  #isAnswered = false;
  #isAbandoned = false;

  constructor(place: Place, headers: readonly string[], connection: PooledConnection) {
    this.#place = place;
    this.#headers = headers;
    this.#connection = connection;
    connection.calls += 1;
  }

  /** Whether it can be begun. */
  isReady(): boolean {
    return this.#connection.isReady();
  }

  /** @param waiter told whether it can be begun; where not, nothing of it was sent, and the attempt is over. */
  whenReady(waiter: Waiter): void {
    this.#waiting = this.#connection.wait((isMade) => {
      if (!isMade) this.#over(true);
      waiter(isMade);
    });
  }

  /** Sends its head. @param handler told what comes of it; {@link Attempt.closed} is to be called when it is closed. */
  begin(handler: StreamHandler): ClientStream {
    try {
      this.#stream = this.#connection.begin(this.#headers, handler);
      return this.#stream;
    } catch (error) {
      this.#over(false);
      throw error;
    }
  }

  /** Gives it up: nobody waits for it. That says nothing of the endpoint. */
  abandon(): void {
    const stream = this.#stream;
    this.#isAbandoned = true;
    if (stream === undefined) {
      if (this.#waiting?.isLinked !== true) return;
      this.#waiting.unlink();
      this.#over(false);
      return;
    }
    stream.reset(errorCode.CANCEL);
  }

  /** To be told that the head of an answer has come. Its status speaks of the service and not of the endpoint. */
  answered(): void {
    this.#isAnswered = true;
    this.#place.endpoint.breaker.succeeded();
  }

  /** To be told that the stream is closed: only a connection that is lost before an answer counts against an endpoint. */
  closed({ cause }: StreamEnd): void {
    this.#over(!this.#isAbandoned && cause === 'lost');
  }

  #over(isLost: boolean): void {
    this.#connection.closed(this.#isAnswered);
    if (this.#isAnswered) return;
    if (isLost) this.#connection.blame(this.#place);
    else this.#place.endpoint.breaker.abandoned();
  }
}
