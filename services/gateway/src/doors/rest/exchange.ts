import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Clock } from '@rollcall/platform/clock.ts';
import { isChunkedAlone } from '@rollcall/platform/http/request-faults.ts';
import type { Link } from '@rollcall/platform/node-internals/linked-list.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { Span } from '@rollcall/platform/tracing/tracer.ts';
import type { Dispatcher } from 'undici';
import type { Authenticator, Holder } from '../../admission/caller.ts';
import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import type { Target } from '../../upstream/discovery/targets.ts';
import type { Dispatchers } from '../../upstream/dispatchers.ts';
import { shownUpstreamPath } from '../../upstream/routing/secret-paths.ts';
import { type AnswerWatch, type Expectation, Patience } from './answer-watch.ts';
import { attemptAttributes, endAttemptSpan } from './attempt-span.ts';
import {
  acceptsTrailers,
  type ForwardedRequest,
  RESET_CONTENT,
  requestHeaders,
  responseHeaders,
  responseTrailers,
} from './headers.ts';
import { passOnInformation } from './information.ts';
import type { Upload } from './upload.ts';
import { type Attempt, AttemptError, outcomeOf, type UpstreamFailure } from './upstream-failure.ts';

export interface ExchangeDeps {
  readonly dispatchers: Dispatchers;
  readonly authenticator: Pick<Authenticator, 'stillHolds'>;
  readonly clock: Clock;
  /** Until the beginning of an answer. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly bodyTimeoutMs: number;
}

/** A request on its way to a service. */
export interface ProxiedRequest {
  readonly target: Target;
  /** Undefined: nobody had to say who it is. */
  readonly holder: Holder | undefined;
  /** Path below the target's registered URL, and query. */
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly forwarded: ForwardedRequest;
  /** Sent to the service, unless the request has a span. */
  readonly trace: TraceContext | undefined;
  /** Every attempt is a span below it; undefined: the request is not traced. */
  readonly span: Span | undefined;
  /** What the gateway adds to the answer. */
  readonly addedHeaders: Readonly<Record<string, number | string | readonly string[] | undefined>>;
  /** For the beginning of the answer, where a route has its own. */
  readonly timeoutMs: number | undefined;
  /** In bytes. */
  readonly bodyLimit: number;
}

const LOWEST_STATUS = 100;
const SWITCHING_PROTOCOLS = 101;
/** How often the caller's token is checked: a revoked one ends its answers within a second. */
const CHECKS_PER_TOKEN_CHECK = 3;
/** So much of a body a service has read, or reads, whatever it then says of it. */
const LONG_BODY_BYTES = 64 * 1024;
/**
 * Statuses by which a proxy or a server in trouble says that it is. They count against an endpoint
 * where there is another to ask; where there is none, a pause would keep from the service what it
 * can still do, as one without its database can, and gain nothing.
 */
const TROUBLE = new Set([502, 503, 504]);

interface AttemptOptions {
  readonly endpoint: Endpoint;
  /** Undefined: the request has no body. */
  readonly upload: Upload | undefined;
  readonly retries: number;
  /** The attempt before failed there, too: that counts once. */
  readonly isRepeat: boolean;
  readonly watch: AnswerWatch;
}

/**
 * Sends a request to an endpoint once, and passes its answer on. The endpoint's breaker learns of
 * the outcome.
 */
export function exchange(deps: ExchangeDeps, proxied: ProxiedRequest, options: AttemptOptions): Promise<Attempt> {
  const { target, path, request, response, forwarded } = proxied;
  const { endpoint, upload, retries } = options;
  const { promise, resolve } = Promise.withResolvers<Attempt>();
  const method = request.method ?? 'GET';
  const shownPath = shownUpstreamPath(path, request.url ?? '');
  const span = proxied.span?.startClient(
    method,
    attemptAttributes(target.service, { method, path: shownPath, retries, endpoint }),
  );
  const trace =
    span === undefined ? proxied.trace : { tracestate: proxied.trace?.tracestate, traceparent: span.traceparent };
  endpoint.underWay += 1;
  const handler = new Exchange({
    ...options,
    proxied,
    deps,
    headersTimeoutMs: proxied.timeoutMs ?? deps.headersTimeoutMs,
    onEnd(attempt) {
      endpoint.underWay -= 1;
      if (span !== undefined) endAttemptSpan(span, attempt);
      resolve(attempt);
    },
  });
  response.once('close', handler.onCallerGone);
  deps.dispatchers.of(endpoint).dispatch(
    {
      origin: endpoint.origin,
      path: `${endpoint.basePath}${path}`,
      method,
      headers: requestHeaders(request.rawHeaders, forwarded, trace),
      body: upload ?? null,
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    handler,
  );
  return promise.finally(() => response.off('close', handler.onCallerGone));
}

type OnResponseStart = NonNullable<Dispatcher.DispatchHandler['onResponseStart']>;
type OnResponseEnd = NonNullable<Dispatcher.DispatchHandler['onResponseEnd']>;

interface ExchangeOptions extends Pick<AttemptOptions, 'endpoint' | 'upload' | 'isRepeat' | 'watch'> {
  readonly deps: ExchangeDeps;
  readonly headersTimeoutMs: number;
  readonly proxied: ProxiedRequest;
  readonly onEnd: (attempt: Attempt) => void;
}

class Exchange implements Dispatcher.DispatchHandler, Expectation {
  readonly #options: ExchangeOptions;
  readonly #proxied: ProxiedRequest;
  readonly #patience = new Patience();
  #controller: Dispatcher.DispatchController | undefined;
  readonly #watched: Link<Expectation>;
  #status = 0;
  #checks = 0;
  #isEventStream = false;
  /**
   * Node sends the head of an answer with the first piece of its body, which may come hours later.
   */
  #isHeadSent = false;
  #isOver = false;
  #callerGone = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#proxied = options.proxied;
    // From now on: what waits for a connection waits for the service, too.
    this.#watched = options.watch.add(this);
  }

  readonly onCallerGone = (): void => {
    if (this.#isOver || this.#proxied.response.writableFinished) return;
    this.#callerGone = true;
    if (this.#controller === undefined) this.#end({ type: 'abandoned' });
    else this.#controller.abort(new Error('The caller disconnected'));
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isOver) controller.abort(new Error('The request is over'));
  }

  check(): void {
    const { response } = this.#proxied;
    const { headersTimeoutMs, deps, upload } = this.#options;
    const isCallersTurn = upload?.waitsForCaller === true || response.writableNeedDrain;
    const limitMs = response.headersSent ? deps.bodyTimeoutMs : headersTimeoutMs;
    const sentBytes = upload?.sentBytes ?? 0;
    if (this.#patience.check({ sentBytes, isCallersTurn }, limitMs))
      this.#giveUp(new AttemptError('UPSTREAM_TIMEOUT', 'service', `nothing came within ${limitMs} ms`));
    if (response.headersSent && !this.#isHeadSent) {
      this.#isHeadSent = true;
      response.flushHeaders();
    }
    this.#checks += 1;
    if (this.#checks % CHECKS_PER_TOKEN_CHECK === 0 && this.#hasLostToken())
      this.#giveUp(new AttemptError('INVALID_TOKEN', 'caller', 'the bearer token does not hold any more'));
  }

  #giveUp(error: Error): void {
    if (this.#controller === undefined) this.#end({ type: 'failed', failure: outcomeOf(error), begun: false });
    else this.#controller.abort(error);
  }

  /**
   * Revoked, nothing goes on. Expired, what was asked for in time may come to its end, but not live
   * events: they would go to somebody who may not ask any more.
   */
  #hasLostToken(): boolean {
    const { holder } = this.#proxied;
    if (holder === undefined) return false;
    const { authenticator, clock } = this.#options.deps;
    const isExpired = clock.now().getTime() >= holder.caller.expiresAtMs;
    return isExpired ? this.#isEventStream : !authenticator.stillHolds(holder.token);
  }

  onResponseStart(...[controller, status, headers]: Parameters<OnResponseStart>): void {
    // undici takes it for an interim answer, and then fails by an assertion of its own.
    if (status < LOWEST_STATUS || status === SWITCHING_PROTOCOLS) {
      controller.abort(invalidAnswer(`The answer has the status ${status}, which nothing asked for`));
      return;
    }
    if (status < 200) {
      passOnInformation(this.#proxied, status, headers);
      return;
    }
    const { response, addedHeaders } = this.#proxied;
    this.#status = status;
    this.#isEventStream = String(headers['content-type']).startsWith('text/event-stream');
    this.#patience.renew();
    // The answer's end, by which others decide, may come hours later.
    const { breaker } = this.#options.endpoint;
    if (!this.#isTrouble() && breaker.state() !== 'closed') breaker.succeeded();
    const coding = headers['transfer-encoding'];
    if (coding !== undefined && !isChunkedAlone(coding)) {
      controller.abort(invalidAnswer('The answer has a transfer coding other than chunked'));
      return;
    }
    response.sendDate = headers['date'] === undefined;
    try {
      // Its reason phrase stays here: it means nothing (RFC 9112, section 4), and may be what Node
      // refuses to send.
      response.writeHead(status, responseHeaders(status, headers, addedHeaders));
    } catch {
      response.sendDate = true;
      controller.abort(invalidAnswer('The answer cannot be passed on'));
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#proxied;
    this.#patience.renew();
    this.#isHeadSent = true;
    // What an answer must not have is not passed on with it (RFC 9110, section 15.3.6).
    if (this.#status === RESET_CONTENT || response.write(chunk)) return;
    controller.pause();
    response.once('drain', () => controller.resume());
  }

  onResponseEnd(...[, trailers]: Parameters<OnResponseEnd>): void {
    const { request, response, addedHeaders } = this.#proxied;
    if (acceptsTrailers(request.headers['te'])) response.addTrailers(responseTrailers(trailers, addedHeaders));
    response.end();
    this.#end({ type: 'answered', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    // What is over has been answered by somebody else.
    if (this.#isOver) return;
    if (this.#callerGone) return this.#end({ type: 'abandoned' });
    const { response } = this.#proxied;
    const begun = response.headersSent;
    // Half an answer must not pass for a whole one.
    if (begun) response.destroy();
    this.#end({ type: 'failed', failure: this.#failureOf(error), begun });
  }

  /**
   * A service that does not want a long body often says so and closes the connection, whose reset
   * may overtake what it said.
   */
  #failureOf(error: Error): UpstreamFailure {
    const failure = outcomeOf(error);
    const { upload } = this.#options;
    const isLong = upload !== undefined && (!upload.readableEnded || upload.sentBytes >= LONG_BODY_BYTES);
    if (!isLong || failure.unsent || failure.code !== 'UPSTREAM_UNREACHABLE') return failure;
    return failure.blame === 'service' ? { ...failure, blame: 'unclear' } : failure;
  }

  #end(attempt: Attempt): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#watched.unlink();
    this.#settle(attempt);
    this.#options.onEnd(attempt);
  }

  #settle(attempt: Attempt): void {
    const { endpoint, isRepeat } = this.#options;
    const { breaker } = endpoint;
    if (attempt.type === 'answered') {
      if (this.#isTrouble()) breaker.failed();
      else breaker.succeeded();
    } else if (attempt.type === 'failed' && !isRepeat && countsAgainst(attempt)) breaker.failed();
    else breaker.abandoned();
  }

  /**
   * Whether the status speaks against the endpoint. Asked when it counts: meanwhile another may
   * have become the last.
   */
  #isTrouble(): boolean {
    return TROUBLE.has(this.#status) && this.#proxied.target.endpoints.canSpare(this.#options.endpoint);
  }
}

function invalidAnswer(message: string): AttemptError {
  return new AttemptError('UPSTREAM_INVALID', 'service', message);
}

/**
 * Of an answer that has begun, silence is not the service's failure: it may be one of events, and
 * nothing happens.
 */
function countsAgainst({ failure, begun }: Attempt & { readonly type: 'failed' }): boolean {
  return failure.blame === 'service' && !(begun && failure.code === 'UPSTREAM_TIMEOUT');
}
