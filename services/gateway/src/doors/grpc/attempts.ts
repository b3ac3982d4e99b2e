import { type ClientHttp2Stream, constants } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Endpoints } from '../../upstream/discovery/endpoints.ts';
import type { BackendConnection } from './backend-connection.ts';
import type { CallSpan } from './call-span.ts';
import type { CallHead } from './headers.ts';
import { Refusal } from './refusal.ts';
import type { Serving } from './serving.ts';
import type { GrpcTarget } from './targets.ts';
import { formatTimeout } from './timeout.ts';

/** A call that was admitted and has somewhere to go. */
export interface ForwardedCall {
  readonly head: CallHead;
  readonly span: CallSpan | undefined;
  readonly requestId: string;
  readonly target: GrpcTarget;
  /** By which the backend knows who calls: names and values in turn. */
  readonly identity: readonly string[];
  /** Of the monotonic clock; undefined: it may take as long as it wants. */
  readonly deadlineMs: number | undefined;
}

/**
 * @returns begins the call at the next endpoint of its target; called again where that did not
 * accept it, at another one if there is one. It throws a Refusal where none accepts calls now, or
 * the deadline is over.
 */
export function attemptsAt({ backends, clock }: Serving, forwarded: ForwardedCall): () => Attempt {
  const { head, span, requestId, target, identity, deadlineMs } = forwarded;
  const { service, endpoints } = target;
  let failed: Endpoint | undefined;

  return () => {
    const timeout = timeoutLeft(deadlineMs, clock.monotonicMs());
    const endpoint = endpoints.acquire(failed);
    if (endpoint === undefined) throw unavailable(endpoints);
    failed = endpoint;
    const trace = span === undefined ? head.trace : span.attempt(service, endpoint);
    const headers = [':method', 'POST', ':path', head.path, 'te', 'trailers', 'x-request-id', requestId];
    headers.push(...timeout, ...head.forwarded, ...identity);
    if (trace !== undefined) headers.push('traceparent', trace.traceparent);
    if (trace?.tracestate !== undefined) headers.push('tracestate', trace.tracestate);
    return new Attempt(backends.connectionTo({ endpoint, endpoints }), headers);
  };
}

export function deadlineExceeded(): Refusal {
  return new Refusal(grpcStatus.DEADLINE_EXCEEDED, 'The deadline of the call is over');
}

function timeoutLeft(deadlineMs: number | undefined, nowMs: number): readonly string[] {
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

const { NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM } = constants;
/** Node's codes for a stream that never was on a connection. */
const NEVER_SENT: ReadonlySet<string> = new Set(['ERR_HTTP2_GOAWAY_SESSION', 'ERR_HTTP2_INVALID_SESSION']);

/**
 * A call at an endpoint: waiting for the connection, or under way. The endpoint's breaker learns of
 * the outcome: an answer's status speaks of the service and not of the endpoint, and only a
 * connection that is lost before an answer counts against it.
 */
export class Attempt {
  readonly #connection: BackendConnection;
  readonly #endpoint: Endpoint;
  readonly #headers: readonly string[];
  #stream: ClientHttp2Stream | undefined;
  #isOver = false;
  #isAnswered = false;

  constructor(connection: BackendConnection, headers: readonly string[]) {
    this.#connection = connection;
    this.#headers = headers;
    connection.calls += 1;
    this.#endpoint = connection.endpoint;
    this.#endpoint.underWay += 1;
  }

  /** Whether it can be begun without waiting for a connection. */
  isReady(): boolean {
    return this.#connection.isReady();
  }

  /**
   * Sends its head once the connection is made.
   *
   * @returns undefined: it was given up meanwhile, or there is no connection, and nothing was sent.
   * @throws Refusal, which ends the attempt.
   */
  async begin(): Promise<ClientHttp2Stream | undefined> {
    const connection = this.#connection;
    if (!connection.isReady()) await connection.made;
    if (this.#isOver || !connection.isReady()) {
      this.#over(true);
      return undefined;
    }
    try {
      this.#stream = connection.session.request(this.#headers, { endStream: false });
    } catch (error) {
      this.#over(false);
      throw new Refusal(grpcStatus.INVALID_ARGUMENT, 'The metadata cannot be passed on', { cause: error });
    }
    this.#stream.once('response', () => {
      this.#isAnswered = true;
      connection.answered();
    });
    this.#stream.once('close', () => this.#over(this.wasLost()));
    // `close` says all that matters.
    return this.#stream.on('error', () => undefined);
  }

  /** Gives it up: nobody waits for it. That says nothing of the endpoint. */
  abandon(): void {
    this.#over(false);
    this.#stream?.close(NGHTTP2_CANCEL);
    // With what was answered and nobody will read: a stream that has that is never closed by
    // itself.
    this.#stream?.destroy();
  }

  /** Whether the backend may have processed it: who repeats it may have it done twice. */
  mayBeAccepted(): boolean {
    const stream = this.#stream;
    if (stream?.id === undefined) return false;
    const failure: NodeJS.ErrnoException | null = stream.errored;
    return stream.rstCode !== NGHTTP2_REFUSED_STREAM && !NEVER_SENT.has(failure?.code ?? '');
  }

  /** Whether the connection to the backend is gone, or never was. */
  wasLost(): boolean {
    return this.#stream === undefined || this.#connection.isLost(this.#stream);
  }

  #over(isLost: boolean): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#connection.calls -= 1;
    this.#endpoint.underWay -= 1;
    if (this.#isAnswered) return;
    if (isLost) this.#connection.blame();
    else this.#connection.abandoned();
  }
}
