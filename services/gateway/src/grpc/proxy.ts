import { once } from 'node:events';
import { constants, createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Actor } from '@rollcall/platform/lifecycle.ts';
import { LinkedList } from '@rollcall/platform/linked-list.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import type { Registry } from 'prom-client';
import { type AccessLog, rounded } from '../access-log.ts';
import { type Authenticator, type Caller, hasScope } from '../policy/caller.ts';
import { requestIdOf } from '../proxy/trace-context.ts';
import { attemptsAt, deadlineExceeded, type OutgoingCall } from './attempts.ts';
import { forwardCall, type OpenCall, refuse } from './call.ts';
import { type CallMetrics, createCallMetrics, statusName } from './call-metrics.ts';
import { type CallSpan, contextIn, startCallSpan } from './call-span.ts';
import { followConnections } from './connections.ts';
import { type CallHead, isGrpc, readCallHead } from './headers.ts';
import { createOwnHealth, isOwnHealth, type OwnHealth } from './health.ts';
import { defaultLimits, type GrpcLimits } from './limits.ts';
import type { CallAllowance, GrpcTarget, GrpcTargets, IdentityHeaders, TakeCall } from './ports.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { candidateNames, parseMethodPath, routeCall } from './routing.ts';
import { ignoreError } from './streams.ts';
import { parseTimeout } from './timeout.ts';
import { createUpstreams, type Upstreams } from './upstreams.ts';

export interface GrpcProxyDeps {
  /** Undefined: any address. */
  readonly host: string | undefined;
  /** 0: any free one. */
  readonly port: number;
  readonly authenticator: Authenticator;
  readonly take: TakeCall;
  readonly targets: GrpcTargets;
  readonly identityHeaders: IdentityHeaders;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Between saying NOT_SERVING and refusing connections: as long as proxies in front take to notice. */
  readonly drainMs: number;
  /** How long calls may then go on. */
  readonly closingLimitMs: number;
  /** Undefined: calls are not traced; what a caller says of a trace goes on as it is. */
  readonly tracer?: Tracer | undefined;
  /** Undefined: it is off. */
  readonly accessLog?: AccessLog | undefined;
  readonly limits?: Partial<GrpcLimits>;
}

/** The proxy as a part of a process. */
export interface GrpcProxy extends Actor {
  /** Where it listens, once started. */
  readonly port: number;
}

/** A call that was let in. */
interface Admitted extends OutgoingCall {
  readonly downstream: ServerHttp2Stream;
  readonly token: string;
  readonly answerHeaders: Readonly<Record<string, string>>;
}

/** A call from when it came until its stream is closed, and what is known of it, the more the further it is. */
interface Known {
  readonly stream: ServerHttp2Stream;
  readonly head: CallHead;
  readonly span: CallSpan | undefined;
  readonly requestId: string | undefined;
  readonly beganAtMs: number;
  subject: string | undefined;
  /** The registration that it goes to; empty: none is found yet. */
  service: string;
  /** Once it goes on to a backend. */
  forwarded: { readonly token: string; readonly call: OpenCall } | undefined;
  /** When its answer was first seen to have ended, or when more of that was last seen to have been read. */
  answeredAtMs: number | undefined;
  /** How much of its answer was then left to be read. */
  leftBytes: number;
}

/** What the parts of a proxy share. */
interface Context extends GrpcProxyDeps {
  readonly bounds: GrpcLimits;
  readonly upstreams: Upstreams;
  readonly callMetrics: CallMetrics;
  readonly health: OwnHealth;
  readonly calls: LinkedList<Known>;
  /** Who asks for the gateway's own health does so without a token, and takes nobody's place. */
  readonly probes: LinkedList<Known>;
  /**
   * gRPC services that had a target, with the names that they may be found under; one that is dropped for others comes back when it is
   * asked for again.
   */
  readonly seen: Map<string, readonly string[]>;
}

const LOOK_INTERVAL_MS = 500;
const SEEN_MAX = 1000;
/** Node takes no longer timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const LAST_WORDS_MS = 1000;

/**
 * The gRPC door of the gateway: HTTP/2 calls of all four kinds go to the registration that serves them, message bytes unread. It
 * answers grpc.health.v1 itself for the empty service name; reflection, and the health of others, is that of the service which the
 * caller names in the metadata `rollcall-service`.
 */
export function createGrpcProxy(deps: GrpcProxyDeps): GrpcProxy {
  const bounds: GrpcLimits = { ...defaultLimits, ...deps.limits };
  const server = createHttp2Server(bounds);
  const connections = followConnections(server, {
    options: bounds,
    clock: deps.clock,
    onCall: (stream, raw) => take(context, stream, raw),
  });
  const upstreams = createUpstreams(bounds, deps.clock);
  const calls = new LinkedList<Known>();
  const probes = new LinkedList<Known>();
  const callMetrics = createCallMetrics(deps.metrics, {
    openCalls: () => calls.size,
    connections: () => connections.size,
    upstreamConnections: () => upstreams.sessions,
  });
  const health = createOwnHealth();
  const context: Context = { ...deps, bounds, upstreams, callMetrics, health, calls, probes, seen: new Map() };
  const timer = setInterval(() => look(context), LOOK_INTERVAL_MS);
  timer.unref();

  return {
    name: 'gRPC proxy',
    async start() {
      server.listen({ host: deps.host ?? (await anyAddress()), port: deps.port });
      await once(server, 'listening');
      deps.log.info({ address: server.address() }, 'gateway listens for gRPC');
    },
    async stop() {
      health.stop();
      await sleep(deps.drainMs);
      health.endWatches();
      if (!(await connections.drain(deps.closingLimitMs))) {
        const refusal = new Refusal(grpcStatus.UNAVAILABLE, 'The gateway is stopping', { retryAfterMs: 0 });
        for (const { value } of calls.links()) value.forwarded?.call.fail(refusal);
        await connections.drain(LAST_WORDS_MS);
      }
      connections.destroy();
      upstreams.close();
      clearInterval(timer);
      await new Promise((resolve) => server.close(resolve));
    },
    get port() {
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : deps.port;
    },
  };
}

function createHttp2Server(bounds: GrpcLimits): Http2Server {
  const server = createServer({
    settings: {
      enablePush: false,
      initialWindowSize: bounds.windowBytes,
      maxConcurrentStreams: bounds.callsPerConnection,
      maxHeaderListSize: bounds.maxHeaderBytes,
    },
    maxSessionMemory: bounds.connectionMemoryMiB,
    // Rapid reset (CVE-2023-44487): who cancels more calls than that is disconnected.
    streamResetBurst: bounds.resetBurst,
    streamResetRate: bounds.resetsPerSecond,
    strictSingleValueFields: false,
  });
  server.maxConnections = bounds.connections;
  // What is no HTTP/2 costs its own connection alone.
  server.on('sessionError', () => undefined);
  return server;
}

/** Takes a call that has come. @returns to be called once its stream is closed. */
function take(context: Context, stream: ServerHttp2Stream, raw: readonly string[]): () => void {
  // A caller that is gone: `close` follows.
  stream.on('error', ignoreError);
  const head = readCallHead(raw);
  const known: Known = {
    stream,
    head,
    span: context.tracer === undefined ? undefined : startCallSpan(context.tracer, head, stream),
    // Where nobody is told of it, a call without one gets none.
    requestId: context.accessLog === undefined ? head.requestId : requestIdOf(head.requestId),
    beganAtMs: context.clock.monotonicMs(),
    subject: undefined,
    service: '',
    forwarded: undefined,
    answeredAtMs: undefined,
    leftBytes: 0,
  };
  const link = (isOwnHealth(head) ? context.probes : context.calls).add(known);
  const onFailure = (error: unknown) => {
    const foreseen = refusalOf(error);
    if (foreseen === undefined) context.log.error({ err: error }, 'gRPC call failed');
    const refusal =
      foreseen ?? new Refusal(grpcStatus.INTERNAL, 'The call failed for a reason of ours', { cause: error });
    record(context, known, refusal.status);
    refuse(stream, refusal, idHeader(known.requestId));
  };
  void admit(context, known)
    .then((admitted) => (admitted === undefined ? known.span?.end(undefined) : run(context, known, admitted)))
    .catch(onFailure);
  return () => {
    link.unlink();
    known.forwarded?.call.closed();
  };
}

/** For metrics, trace and log: how a call has ended. @param status undefined: its caller gave it up. */
function record(context: Context, known: Known, status: GrpcStatus | undefined): void {
  const { head, span, requestId = '', beganAtMs, subject, service } = known;
  const ms = context.clock.monotonicMs() - beganAtMs;
  context.callMetrics.observe({ service, status, ms });
  span?.end(status);
  if (context.accessLog === undefined) return;
  const given = contextIn(head.forwarded);
  context.accessLog.write({
    reqId: requestId,
    trace_id: span?.traceId ?? (given === undefined ? undefined : traceIdOf(given.traceparent)),
    method: head.method,
    path: head.path,
    service: service === '' ? undefined : service,
    subject,
    result: status === undefined ? 'abandoned' : statusName(status),
    ms: rounded(ms),
  });
}

function idHeader(requestId: string | undefined): Readonly<Record<string, string>> {
  return requestId === undefined ? {} : { 'x-request-id': requestId };
}

/**
 * Who calls, whether it may, and where it goes.
 *
 * @returns undefined when the call was answered here or its caller has gone.
 * @throws Refusal, GatewayError.
 */
async function admit(context: Context, known: Known): Promise<Admitted | undefined> {
  const { stream, head, span, requestId } = known;
  if (answerOther(stream, head)) return undefined;
  const method = parseMethodPath(head.path);
  if (method === undefined) throw new Refusal(grpcStatus.UNIMPLEMENTED, 'The path names no gRPC method');
  if (head.repeated !== undefined) {
    throw new Refusal(grpcStatus.INVALID_ARGUMENT, `The metadata has ${head.repeated} more than once`);
  }
  if (isOwnHealth(head)) {
    if (context.probes.size > context.bounds.calls) throw busy();
    context.health.answer(stream, method.method);
    return undefined;
  }
  if (context.calls.size > context.bounds.calls) throw busy();
  const timeoutMs = timeoutOf(head);
  const { token, caller, allowance } = await identify(context, known);
  known.subject = caller.subject;
  if (!allowance.allowed) throw limited(allowance);
  const target = route(context, method.service, head.override);
  known.service = target.service;
  span?.admit(caller, target);
  const missing = target.scopesFor?.(method).find((scope) => !hasScope(caller, scope));
  if (missing !== undefined) {
    throw new Refusal(grpcStatus.PERMISSION_DENIED, `The token lacks the scope ${missing}`, {
      headers: allowance.headers,
    });
  }
  const identity = await context.identityHeaders(caller, target.service);
  await target.endpoints.refresh();
  if (stream.destroyed || stream.closed) return undefined;
  const deadlineMs = timeoutMs === undefined ? undefined : known.beganAtMs + timeoutMs;
  const answerHeaders = requestId === undefined ? allowance.headers : { ...allowance.headers, ...idHeader(requestId) };
  return { downstream: stream, head, token, target, identity, answerHeaders, requestId, span, deadlineMs };
}

function busy(): Refusal {
  return new Refusal(grpcStatus.UNAVAILABLE, 'This replica has as many calls as it can serve', { retryAfterMs: 1000 });
}

interface Identified {
  readonly token: string;
  readonly caller: Caller;
  readonly allowance: CallAllowance;
}

/** Who calls, counted against the limit. As over REST, a failure counts against the limit of the address. */
async function identify({ authenticator, take }: Context, { stream, head }: Known): Promise<Identified> {
  let token: string;
  let caller: Caller;
  try {
    token = bearerToken(head);
    caller = await authenticator.authenticate(token);
  } catch (error) {
    const { forwardedFor } = head;
    const failed = await take({ caller: undefined, remoteAddress: stream.session?.socket.remoteAddress, forwardedFor });
    throw failed.allowed ? error : limited(failed);
  }
  const allowance = await take({ caller, remoteAddress: undefined, forwardedFor: undefined });
  return { token, caller, allowance };
}

function limited({ headers, retryAfterMs }: CallAllowance): Refusal {
  return new Refusal(grpcStatus.RESOURCE_EXHAUSTED, 'The rate limit is used up', { headers, retryAfterMs });
}

/** What is HTTP and no gRPC gets an answer of HTTP (grpc/doc/PROTOCOL-HTTP2.md). */
function answerOther(stream: ServerHttp2Stream, { method, contentType }: CallHead): boolean {
  const status = method !== 'POST' ? 405 : isGrpc(contentType) ? undefined : 415;
  if (status === undefined) return false;
  stream.resume();
  stream.respond({ ':status': status, ...(status === 405 ? { allow: 'POST' } : {}) }, { endStream: true });
  return true;
}

function timeoutOf({ timeout }: CallHead): number | undefined {
  if (timeout === undefined) return undefined;
  const ms = parseTimeout(timeout);
  if (ms === undefined) throw new Refusal(grpcStatus.INVALID_ARGUMENT, 'grpc-timeout is no timeout');
  return ms;
}

function bearerToken({ authorization = '' }: CallHead): string {
  const token = /^Bearer +([\w.~+/=-]+)$/i.exec(authorization)?.[1];
  if (token === undefined) throw new Refusal(grpcStatus.UNAUTHENTICATED, 'A bearer token is required');
  return token;
}

function route({ seen, targets }: Context, grpcService: string, override: string | undefined): GrpcTarget {
  const known = seen.get(grpcService);
  const candidates = known ?? candidateNames(grpcService);
  const target = routeCall({ grpcService, candidates, override, seenBefore: known !== undefined }, targets);
  if (override === undefined && known === undefined) {
    seen.set(grpcService, candidates);
    if (seen.size > SEEN_MAX) for (const oldest of seen.keys().take(1)) seen.delete(oldest);
  }
  return target;
}

/** Passes an admitted call on, until it is over or its deadline is. */
function run(context: Context, known: Known, admitted: Admitted): void {
  const { clock, upstreams } = context;
  const { downstream, deadlineMs, token } = admitted;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const call = forwardCall({
    downstream,
    addedHeaders: admitted.answerHeaders,
    open: attemptsAt(upstreams, admitted, clock),
    onEnd(status) {
      isOver = true;
      clearTimeout(timer);
      record(context, known, status);
    },
  });
  known.forwarded = { token, call };
  if (isOver || deadlineMs === undefined || deadlineMs - clock.monotonicMs() > TIMER_MAX_MS) return;
  timer = setTimeout(() => call.fail(deadlineExceeded()), deadlineMs - clock.monotonicMs());
}

/** Ends what nobody waits for any more, and what its caller may not have any more. */
function look(context: Context): void {
  const nowMs = context.clock.monotonicMs();
  const { lingerMs } = context.bounds;
  for (const { value: known } of context.probes.links()) {
    const isOverdue = !known.stream.readableEnded && nowMs - known.beganAtMs >= lingerMs;
    if (isOverdue) known.stream.close(constants.NGHTTP2_CANCEL);
    endWhenLeft(known, nowMs, lingerMs);
  }
  for (const { value: known } of context.calls.links()) {
    endWhenLeft(known, nowMs, lingerMs);
    endWhenRevoked(context, known, nowMs);
  }
}

/** Ends a call that its caller has reset without an error, or whose answer is over and not read. */
function endWhenLeft(known: Known, nowMs: number, lingerMs: number): void {
  const { stream, forwarded } = known;
  if (stream.closed) {
    forwarded?.call.closed();
    stream.destroy();
  } else if (stream.writableEnded) {
    const leftBytes = stream.bufferSize;
    if (known.answeredAtMs === undefined || leftBytes !== known.leftBytes) known.answeredAtMs = nowMs;
    known.leftBytes = leftBytes;
    if (nowMs - known.answeredAtMs >= lingerMs) stream.close(constants.NGHTTP2_CANCEL);
  }
}

function endWhenRevoked({ authenticator }: Context, { forwarded, beganAtMs }: Known, nowMs: number): void {
  if (forwarded === undefined || nowMs - beganAtMs < LOOK_INTERVAL_MS || authenticator.stillHolds(forwarded.token))
    return;
  forwarded.call.fail(new Refusal(grpcStatus.UNAUTHENTICATED, 'The bearer token does not hold any more'));
}
