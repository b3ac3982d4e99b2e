import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import type { Clock } from '@rollcall/platform/clock.ts';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { createLimiter } from '@rollcall/platform/work/limiter.ts';
import type { Registry } from 'prom-client';
import type { AccessLog } from '../../access-log.ts';
import type { Authenticator } from '../../admission/caller.ts';
import type { Limits } from '../../admission/limits.ts';
import type { Lookups } from '../../upstream/discovery/lookups.ts';
import { BackendPool } from './backend-pool.ts';
import { createCallMetrics } from './call-metrics.ts';
import { followConnections } from './connections.ts';
import { createOwnHealth } from './health.ts';
import type { KnownCall } from './known-call.ts';
import { defaultLimits, type GrpcLimits } from './limits.ts';
import type { GrpcTargets, IdentityHeaders } from './ports.ts';
import { Refusal } from './refusal.ts';
import { ReplayBudget } from './replay-budget.ts';
import { type Serving, serveCall } from './serve-call.ts';
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

const LAST_WORDS_MS = 1000;

/**
 * The gRPC door of the gateway: HTTP/2 calls of all four kinds go to the registration that serves
 * them, message bytes unread. It answers grpc.health.v1 itself for the empty service name;
 * reflection, and the health of others, is that of the service which the caller names in the
 * metadata `rollcall-service`.
 */
export function createGrpcProxy(deps: GrpcProxyDeps): GrpcProxy {
  const { authenticator, targets, clock, log } = deps;
  const bounds: GrpcLimits = { ...defaultLimits, ...deps.limits };
  const server = createHttp2Server(bounds);
  const connections = followConnections(server, {
    options: bounds,
    clock,
    onCall: (stream, raw) => serveCall(serving, stream, raw),
  });
  const lookup = deps.lookups.within(bounds.connectTimeoutMs / 2);
  const backends = new BackendPool(bounds, { lookup, clock, log });
  const calls = new Set<KnownCall>();
  const probes = new Set<KnownCall>();
  const health = createOwnHealth(bounds, clock);
  const serving: Serving = {
    accepting: {
      admission: { authenticator, limits: deps.requestLimits },
      targets,
      identityHeaders: deps.identityHeaders,
      callsAtOnce: bounds.calls,
      health,
      calls,
      probes,
      concurrency: createLimiter({ mostPerKey: bounds.callsPerSubject }),
      seen: new Map(),
    },
    calls,
    probes,
    backends,
    replayBudget: new ReplayBudget(bounds.replayBytes),
    callMetrics: createCallMetrics({
      registry: deps.metrics,
      clock,
      isKnown: (service) => targets.find(service) !== undefined,
      sizes: {
        openCalls: () => calls.size,
        connections: () => connections.size,
        upstreamConnections: () => backends.size,
      },
    }),
    tracer: deps.tracer,
    accessLog: deps.accessLog,
    log,
    clock,
  };
  const swept = { clock, authenticator, bounds, health, calls, probes };
  const timer = setInterval(() => sweep(swept), SWEEP_INTERVAL_MS);
  timer.unref();

  return {
    name: 'gRPC proxy',
    async start() {
      server.listen({ host: deps.host ?? (await anyAddress()), port: deps.port });
      await once(server, 'listening');
      // A connection that cannot be accepted ends no other one.
      server.on('error', (error) => log.error({ err: error }, 'gRPC listener failed'));
      log.info({ address: server.address() }, 'gateway listens for gRPC');
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
