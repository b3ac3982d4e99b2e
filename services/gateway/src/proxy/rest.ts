import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Link } from '@rollcall/platform/linked-list.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import type { Span } from '@rollcall/platform/tracing/tracer.ts';
import type { Dispatcher } from 'undici';
import type { Endpoint } from '../discovery/endpoints.ts';
import type { Target } from '../discovery/targets.ts';
import { GatewayError } from '../errors.ts';
import type { Breaker } from '../policy/breaker.ts';
import type { Authenticator, Holder } from '../policy/caller.ts';
import type { RetryBudget } from '../policy/retry-budget.ts';
import { AnswerWatch, type Expectation, Patience } from './answer-watch.ts';
import { attemptAttributes, endAttemptSpan } from './attempt-span.ts';
import type { Dispatchers } from './dispatchers.ts';
import { type ForwardedRequest, requestHeaders, responseHeaders } from './headers.ts';
import {
  type Attempt,
  BodyTooLargeError,
  outcomeOf,
  TokenEndedError,
  UpstreamTimeoutError,
} from './upstream-failure.ts';

export interface RestProxyDeps {
  readonly dispatchers: Dispatchers;
  readonly budget: RetryBudget;
  readonly authenticator: Pick<Authenticator, 'stillHolds'>;
  readonly clock: Clock;
  /** Until the beginning of an answer. */
  readonly headersTimeoutMs: number;
  /** Between two pieces of an answer. */
  readonly bodyTimeoutMs: number;
  /** Of a request's body, in bytes. */
  readonly bodyLimit: number;
}

/** A request on its way to a service. */
interface ProxiedRequest {
  readonly target: Target;
  /** Undefined: nobody had to say who it is. */
  readonly holder: Holder | undefined;
  /** Path below the target's registered URL, and query. */
  readonly path: string;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly forwarded: ForwardedRequest;
  /** Told to the service, unless the request has a span. */
  readonly trace: TraceContext | undefined;
  /** Every attempt is a span below it; undefined: the request is not traced. */
  readonly span: Span | undefined;
  /** What the gateway adds to the answer. */
  readonly addedHeaders: Readonly<Record<string, number | string | readonly string[] | undefined>>;
  /** For the beginning of the answer, where a route has its own. */
  readonly timeoutMs: number | undefined;
}

/** What became of a request: the service's status, or why there is none. */
export type Outcome = Attempt & { readonly retries: number };

const MAX_RETRIES = 2;
/** RFC 9110, section 9.2.2. A request with a body is not kept, and so not sent again once any of it may have been sent. */
const REPEATABLE = new Set(['GET', 'HEAD', 'OPTIONS', 'PUT', 'DELETE']);
const RETRY_PAUSE_MS = 20;
/** Looks between two at whether the caller's token still holds: it is to lose its answers within a second. */
const LOOKS_PER_TOKEN_CHECK = 3;

/**
 * Sends requests on to services, both bodies as streams. What is repeatable is sent again when no answer has begun, and what was not
 * sent at all in any case, as long as the budget lasts: to another endpoint where there is one. The breaker of the endpoint learns of
 * every outcome.
 */
export interface RestProxy {
  /**
   * @returns once the answer has been handed over, or will not be; `failed` without `begun` leaves the answer to who called.
   * @throws GatewayError UPSTREAM_UNAVAILABLE when the breakers of all endpoints are open.
   */
  forward(proxied: ProxiedRequest): Promise<Outcome>;
}

export function createRestProxy(deps: RestProxyDeps): RestProxy {
  const { budget } = deps;
  const watch = new AnswerWatch();

  async function forward(proxied: ProxiedRequest): Promise<Outcome> {
    const { target, request, response } = proxied;
    const { endpoints } = target;
    budget.deposit();
    const body = carriesBody(request) ? limited(request, deps.bodyLimit) : null;
    let last: { readonly endpoint: Endpoint; readonly outcome: Attempt } | undefined;
    for (let retries = 0; ; retries += 1) {
      const resolving = endpoints.refresh();
      if (resolving !== undefined) await resolving;
      if (response.closed) return { type: 'abandoned', retries };
      const endpoint = endpoints.acquire(last?.endpoint);
      if (endpoint === undefined) {
        if (last === undefined) throw unavailable(target);
        return { ...last.outcome, retries: retries - 1 };
      }
      const outcome = await exchange(deps, proxied, { endpoint, body, retries, watch });
      if (outcome.type === 'failed' && outcome.failure.unsent) endpoints.suspect();
      if (!(mayRepeat(proxied, { outcome, body, retries }) && budget.tryWithdraw())) return { ...outcome, retries };
      last = { endpoint, outcome };
      await pause(RETRY_PAUSE_MS * (1 + Math.random()));
    }
  }

  return { forward };
}

function unavailable({ service, endpoints }: Target): GatewayError {
  const seconds = Math.max(1, Math.ceil(endpoints.retryAfterMs() / 1000));
  return new GatewayError('UPSTREAM_UNAVAILABLE', {
    headers: { 'retry-after': String(seconds) },
    details: { service },
  });
}

interface Tried {
  readonly outcome: Attempt;
  readonly body: Readable | null;
  readonly retries: number;
}

function mayRepeat({ request }: ProxiedRequest, { outcome, body, retries }: Tried): boolean {
  if (outcome.type !== 'failed' || outcome.begun || retries >= MAX_RETRIES) return false;
  const { unsent, retryable } = outcome.failure;
  return unsent || (retryable && body === null && REPEATABLE.has(request.method ?? ''));
}

/** Statuses by which a proxy or a server in trouble says that it is: they count against the endpoint. */
const TROUBLE = new Set([502, 503, 504]);

function settle(breaker: Breaker, attempt: Attempt): void {
  if (attempt.type === 'abandoned') breaker.abandoned();
  else if (attempt.type === 'failed' && attempt.failure.blame === 'caller') breaker.abandoned();
  else if (attempt.type === 'failed' || TROUBLE.has(attempt.status)) breaker.failed();
  else breaker.succeeded();
}

function carriesBody({ headers }: IncomingMessage): boolean {
  const { 'content-length': length = '0', 'transfer-encoding': encoding } = headers;
  return length !== '0' || encoding !== undefined;
}

interface AttemptOptions {
  readonly endpoint: Endpoint;
  readonly body: Readable | null;
  readonly retries: number;
  readonly watch: AnswerWatch;
}

/** One attempt. */
function exchange(deps: RestProxyDeps, proxied: ProxiedRequest, options: AttemptOptions): Promise<Attempt> {
  const { target, path, request, response, forwarded } = proxied;
  const { endpoint, body, retries, watch } = options;
  const { promise, resolve } = Promise.withResolvers<Attempt>();
  const method = request.method ?? 'GET';
  const span = proxied.span?.startClient(
    method,
    attemptAttributes(target, { method, path, retries, address: endpoint.address }),
  );
  const trace =
    span === undefined ? proxied.trace : { tracestate: proxied.trace?.tracestate, traceparent: span.traceparent };
  const handler = new Exchange({
    proxied,
    breaker: endpoint.breaker,
    watch,
    deps,
    headersTimeoutMs: proxied.timeoutMs ?? deps.headersTimeoutMs,
    onEnd(attempt) {
      if (span !== undefined) endAttemptSpan(span, attempt);
      resolve(attempt);
    },
  });
  response.once('close', handler.onCallerGone);
  deps.dispatchers.of(target.origin, endpoint.address).dispatch(
    {
      origin: target.origin,
      path: `${target.basePath}${path}`,
      method,
      headers: requestHeaders(request.rawHeaders, forwarded, trace),
      body,
      headersTimeout: 0,
      bodyTimeout: 0,
    },
    handler,
  );
  return promise.finally(() => response.off('close', handler.onCallerGone));
}

type OnResponseStart = NonNullable<Dispatcher.DispatchHandler['onResponseStart']>;

interface ExchangeOptions {
  readonly deps: RestProxyDeps;
  readonly headersTimeoutMs: number;
  readonly proxied: ProxiedRequest;
  readonly breaker: Breaker;
  readonly watch: AnswerWatch;
  readonly onEnd: (attempt: Attempt) => void;
}

class Exchange implements Dispatcher.DispatchHandler, Expectation {
  readonly #options: ExchangeOptions;
  readonly #proxied: ProxiedRequest;
  readonly #patience = new Patience();
  #controller: Dispatcher.DispatchController | undefined;
  #watched: Link<Expectation> | undefined;
  #status = 0;
  #looks = 0;
  #isEventStream = false;
  #isOver = false;
  #callerGone = false;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.#proxied = options.proxied;
  }

  readonly onCallerGone = (): void => {
    if (this.#isOver || this.#proxied.response.writableFinished) return;
    this.#callerGone = true;
    if (this.#controller === undefined) this.#end({ type: 'abandoned' });
    else this.#controller.abort(new Error('The caller went away'));
  };

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#callerGone) controller.abort(new Error('The caller went away'));
    else this.#watched ??= this.#options.watch.add(this);
  }

  look(): void {
    const { request, response } = this.#proxied;
    const { headersTimeoutMs, deps } = this.#options;
    const waitsForRequest = !request.complete && request.readableLength === 0;
    const isCallersTurn = waitsForRequest || response.writableNeedDrain;
    const limitMs = response.headersSent ? deps.bodyTimeoutMs : headersTimeoutMs;
    // undici takes it away from a body that it is done with.
    const socket: Socket | null = request.socket;
    const taken = socket === null ? -1 : socket.bytesRead - request.readableLength;
    if (this.#patience.look({ taken, isCallersTurn }, limitMs)) {
      this.#controller?.abort(new UpstreamTimeoutError(limitMs));
    }
    this.#looks += 1;
    if (this.#looks % LOOKS_PER_TOKEN_CHECK === 0 && this.#hasLostToken())
      this.#controller?.abort(new TokenEndedError());
  }

  /**
   * Revoked, nothing goes on. Expired, what was asked for in time may come to its end, which live events have not: they would be told to
   * somebody who may not ask any more.
   */
  #hasLostToken(): boolean {
    const { holder } = this.#proxied;
    if (holder === undefined) return false;
    const { authenticator, clock } = this.#options.deps;
    const isExpired = clock.now().getTime() >= holder.caller.expiresAtMs;
    return isExpired ? this.#isEventStream : !authenticator.stillHolds(holder.token);
  }

  onResponseStart(...[, status, headers, statusMessage]: Parameters<OnResponseStart>): void {
    // Informational answers are the upstream connection's business.
    if (status < 200) return;
    const { response, addedHeaders } = this.#proxied;
    this.#status = status;
    this.#isEventStream = String(headers['content-type']).startsWith('text/event-stream');
    this.#patience.renew();
    // The answer's end, by which others decide, may be hours away.
    const { breaker } = this.#options;
    if (!TROUBLE.has(status) && breaker.state() !== 'closed') breaker.succeeded();
    response.sendDate = headers['date'] === undefined;
    response.writeHead(status, statusMessage, responseHeaders(headers, addedHeaders));
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const { response } = this.#proxied;
    this.#patience.renew();
    if (response.write(chunk)) return;
    controller.pause();
    response.once('drain', () => controller.resume());
  }

  onResponseEnd(): void {
    this.#proxied.response.end();
    this.#end({ type: 'answered', status: this.#status });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#callerGone) {
      this.#end({ type: 'abandoned' });
      return;
    }
    const { response } = this.#proxied;
    const begun = response.headersSent;
    // Half an answer must not pass for a whole one.
    if (begun) response.destroy();
    this.#end({ type: 'failed', failure: outcomeOf(error), begun });
  }

  #end(attempt: Attempt): void {
    if (this.#isOver) return;
    this.#isOver = true;
    const { breaker, onEnd } = this.#options;
    this.#watched?.unlink();
    settle(breaker, attempt);
    onEnd(attempt);
  }
}

/** The length that is announced has been checked before; what comes in chunks is counted as it comes. */
function limited(request: IncomingMessage, limit: number): Readable {
  if (request.headers['transfer-encoding'] === undefined) return request;
  return Readable.from(counted(request, limit), { objectMode: false });
}

async function* counted(request: IncomingMessage, limit: number): AsyncGenerator<Buffer> {
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > limit) throw new BodyTooLargeError('The body has too many bytes');
    yield chunk;
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}
