import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { type GrpcStatus, grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { createLimiter } from '@rollcall/platform/work/limiter.ts';
import type { Registry } from 'prom-client';
import { type AccessLog, rounded } from '../../access-log.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import { answerTo } from '../../errors.ts';
import type { Lookups } from '../../upstream/discovery/lookups.ts';
import { requestIdOf } from '../trace-context.ts';
import { type AcceptContext, type Accepted, accept } from './accept.ts';
import { refuse } from './answer.ts';
import { attemptsAt, deadlineExceeded } from './attempts.ts';
import { BackendPool } from './backend-pool.ts';
import { Forwarding } from './call.ts';
import { type CallMetrics, createCallMetrics, statusName } from './call-metrics.ts';
import { contextIn, startCallSpan } from './call-span.ts';
import { followConnections } from './connections.ts';
import { readCallHead } from './headers.ts';
import { createOwnHealth, isOwnHealth } from './health.ts';
import { faultOfRequest, refuseRequest } from './http-answer.ts';
import { answerHeaders, type KnownCall, knownCall } from './known-call.ts';
import { defaultLimits, type GrpcLimits } from './limits.ts';
import type { GrpcTargets, IdentityHeaders } from './ports.ts';
import { Refusal, refusalOf } from './refusal.ts';
import { ReplayBudget } from './replay-budget.ts';
import { SWEEP_INTERVAL_MS, sweep } from './sweep.ts';

export interface GrpcProxyDeps {
  /** Undefined: any address. */
  readonly host: string | undefined;
  /** 0: any free one. */
  readonly port: number;
  readonly authenticator: Authenticator;
  readonly requestLimits: Pick<Limits, 'check'>;
  readonly targets: GrpcTargets;
  readonly lookups: Lookups;
  readonly identityHeaders: IdentityHeaders;
  readonly log: Logger;
  readonly metrics: Registry;
  readonly clock: Clock;
  /**
   * Between saying NOT_SERVING and refusing connections: as long as proxies in front need to
   * notice.
   */
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

/** What the parts of a proxy share. */
interface Context extends GrpcProxyDeps, AcceptContext {
  readonly bounds: GrpcLimits;
  readonly backends: BackendPool;
  readonly callMetrics: CallMetrics;
  readonly replayBudget: ReplayBudget;
  readonly calls: Set<KnownCall>;
  readonly probes: Set<KnownCall>;
}

/** Node allows no longer timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;
const LAST_WORDS_MS = 1000;

/**
 * The gRPC door of the gateway: HTTP/2 calls of all four kinds go to the registration that serves
 * them, message bytes unread. It answers grpc.health.v1 itself for the empty service name;
 * reflection, and the health of others, is that of the service which the caller names in the
 * metadata `rollcall-service`.
 */
export function createGrpcProxy(deps: GrpcProxyDeps): GrpcProxy {
  const bounds: GrpcLimits = { ...defaultLimits, ...deps.limits };
  const server = createHttp2Server(bounds);
  const connections = followConnections(server, {
    options: bounds,
    clock: deps.clock,
    onCall: (stream, raw) => take(context, stream, raw),
  });
  const lookup = deps.lookups.within(bounds.connectTimeoutMs / 2);
  const backends = new BackendPool({ ...bounds, lookup }, deps);
  const calls = new Set<KnownCall>();
  const probes = new Set<KnownCall>();
  const callMetrics = createCallMetrics({
    registry: deps.metrics,
    clock: deps.clock,
    isKnown: (service) => deps.targets.find(service) !== undefined,
    sizes: {
      openCalls: () => calls.size,
      connections: () => connections.size,
      upstreamConnections: () => backends.size,
    },
  });
  const health = createOwnHealth(bounds, deps.clock);
  const concurrency = createLimiter({ mostPerKey: bounds.callsPerSubject });
  const seen: Context['seen'] = new Map();
  const context: Context = {
    ...deps,
    bounds,
    backends,
    callMetrics,
    health,
    calls,
    probes,
    admission: { authenticator: deps.authenticator, limits: deps.requestLimits },
    replayBudget: new ReplayBudget(bounds.replayBytes),
    concurrency,
    seen,
  };
  const timer = setInterval(() => sweep(context), SWEEP_INTERVAL_MS);
  timer.unref();

  return {
    name: 'gRPC proxy',
    async start() {
      server.listen({ host: deps.host ?? (await anyAddress()), port: deps.port });
      await once(server, 'listening');
      // A connection that cannot be accepted ends no other one.
      server.on('error', (error) => deps.log.error({ err: error }, 'gRPC listener failed'));
      deps.log.info({ address: server.address() }, 'gateway listens for gRPC');
    },
    async stop() {
      health.stop();
      await sleep(deps.drainMs);
      health.endWatches();
      if (!(await connections.drain(deps.closingLimitMs))) {
        const refusal = new Refusal(grpcStatus.UNAVAILABLE, 'The gateway is stopping', { retryAfterMs: 0 });
        for (const { forwarded } of calls) forwarded?.call.fail(refusal);
        await connections.drain(LAST_WORDS_MS);
      }
      connections.destroy();
      backends.close();
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
  // Connections that are being ended still count for a moment.
  server.maxConnections = Math.ceil(bounds.connections * 1.1);
  // What is no HTTP/2 costs its own connection alone.
  server.on('sessionError', () => undefined);
  return server;
}

/** Accepts a call. @returns to be called once its stream is closed. */
function take(context: Context, stream: ServerHttp2Stream, raw: readonly string[]): () => void {
  // A caller that is gone: `close` follows.
  stream.on('error', () => undefined);
  const head = readCallHead(raw);
  const known = knownCall({
    stream,
    head,
    span: context.tracer === undefined ? undefined : startCallSpan(context.tracer, head, stream),
    requestId: requestIdOf(head.requestId),
    beganAtMs: context.clock.monotonicMs(),
  });
  const among = isOwnHealth(head) ? context.probes : context.calls;
  among.add(known);
  void serve(context, known);
  return () => {
    among.delete(known);
    known.isClosed = true;
    known.leave?.();
    known.forwarded?.call.closed();
  };
}

async function serve(context: Context, known: KnownCall): Promise<void> {
  try {
    const admitted = await accept(context, known);
    if (typeof admitted === 'object') run(context, known, admitted);
    else if (admitted === 'given up') record(context, known, undefined);
  } catch (error) {
    if (faultOfRequest(known.head) !== undefined) {
      record(context, known, grpcStatus.UNKNOWN);
      return refuseRequest(known, answerTo(error));
    }
    const foreseen = refusalOf(error);
    if (foreseen === undefined) context.log.error({ err: error }, 'gRPC call failed');
    const refusal =
      foreseen ?? new Refusal(grpcStatus.INTERNAL, 'The call failed for a reason of ours', { cause: error });
    record(context, known, refusal.status);
    refuse(known.stream, refusal, answerHeaders(known));
  }
}

/**
 * For metrics, trace and log: how a call has ended.
 *
 * @param status undefined: its caller gave it up.
 */
function record(context: Context, known: KnownCall, status: GrpcStatus | undefined): void {
  const { head, span, requestId, beganAtMs, subject, service } = known;
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

/** Passes an admitted call on, until it is over or its deadline is. */
function run(context: Context, known: KnownCall, admitted: Accepted): void {
  const { clock, backends, replayBudget } = context;
  const { deadlineMs, token } = admitted;
  let timer: NodeJS.Timeout | undefined;
  let isOver = false;
  const call = new Forwarding({
    downstream: known.stream,
    addedHeaders: answerHeaders(known),
    replayBudget,
    open: attemptsAt(backends, admitted, clock),
    onEnd(status) {
      isOver = true;
      clearTimeout(timer);
      record(context, known, status);
    },
  });
  known.forwarded = { token, call };
  call.begin();
  if (isOver || deadlineMs === undefined) return;
  const leftMs = Math.max(0, deadlineMs - clock.monotonicMs());
  if (leftMs <= TIMER_MAX_MS) timer = setTimeout(() => call.fail(deadlineExceeded()), leftMs);
}
