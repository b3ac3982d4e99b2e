import { once } from 'node:events';
import { createServer, type Http2Server, type ServerHttp2Stream } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Lookups } from '@rollcall/platform/outbound/lookups.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { Registry } from 'prom-client';
import { faultOfRequest } from './answer.ts';
import { BackendPool } from './backend-pool.ts';
import { Call, SWEEP_INTERVAL_MS } from './call.ts';
import { createCallMetrics } from './call-metrics.ts';
import { followConnections } from './connections.ts';
import { lenientFields, readCallHead } from './headers.ts';
import { createOwnHealth, isOwnHealth, type OwnHealth } from './health.ts';
import { defaultLimits, type GrpcLimits } from './limits.ts';
import { Refusal } from './refusal.ts';
import { parseMethodPath } from './routing.ts';
import type { Serving, ServingDeps } from './serving.ts';

export interface GrpcProxyDeps extends ServingDeps {
  /** Undefined: any address. */
  readonly host: string | undefined;
  /** 0: any free one. */
  readonly port: number;
  readonly lookups: Lookups;
  readonly metrics: Registry;
  /**
   * Between saying NOT_SERVING and refusing connections: as long as proxies in front need to
   * notice.
   */
  readonly drainMs: number;
  /** How long calls may then go on. */
  readonly closingLimitMs: number;
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
  const { targets, clock, log } = deps;
  const limits: GrpcLimits = { ...defaultLimits, ...deps.limits };
  const server = createHttp2Server(limits);
  const connections = followConnections(server, {
    limits,
    clock,
    onCall: (stream, raw) => serveCall({ serving, calls, health }, stream, raw),
  });
  const lookup = deps.lookups.within(limits.connectTimeoutMs / 2);
  const backends = new BackendPool({ limits, lookup, log });
  const calls = new Set<Call>();
  const health = createOwnHealth(limits);
  const callMetrics = createCallMetrics({
    registry: deps.metrics,
    clock,
    isKnown: (service) => targets.find(service) !== undefined,
    sizes: {
      openCalls: () => calls.size,
      connections: () => connections.size,
      upstreamConnections: () => backends.size,
    },
  });
  const serving: Serving = {
    authenticator: deps.authenticator,
    requestLimits: deps.requestLimits,
    targets,
    identity: deps.identity,
    log,
    clock,
    tracer: deps.tracer,
    accessLog: deps.accessLog,
    limits,
    calls,
    concurrency: createConcurrencyLimiter({ mostPerKey: limits.callsPerSubject }),
    seen: new Set(),
    backends,
    callMetrics,
  };
  const timer = setInterval(() => {
    for (const call of calls) call.sweep();
  }, SWEEP_INTERVAL_MS).unref();

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
      // With GOAWAY to all callers; those of their calls that are not accepted any more are made
      // again by their libraries.
      const closed = new Promise((resolve) => server.close(resolve));
      await Promise.race([closed, sleep(deps.closingLimitMs)]);
      const refusal = new Refusal(grpcStatus.UNAVAILABLE, 'The gateway is stopping', { retryAfterMs: 0 });
      for (const call of calls) call.stop(refusal);
      await Promise.race([closed, sleep(LAST_WORDS_MS)]);
      connections.destroy();
      backends.close();
      clearInterval(timer);
      await closed;
    },
    get port() {
      const address = server.address();
      return typeof address === 'object' && address !== null ? address.port : deps.port;
    },
  };
}

interface CallServer {
  readonly serving: Serving;
  readonly calls: Set<Call>;
  readonly health: OwnHealth;
}

/** @returns to be called once the stream is closed. */
function serveCall(
  { serving, calls, health }: CallServer,
  stream: ServerHttp2Stream,
  raw: readonly string[],
): () => void {
  // A caller that is gone: `close` follows.
  stream.on('error', () => undefined);
  const head = readCallHead(raw);
  if (isOwnHealth(head) && faultOfRequest(head) === undefined) {
    health.answer(stream, parseMethodPath(head.path)?.method ?? '');
    return () => undefined;
  }
  const call = new Call(serving, stream, head);
  calls.add(call);
  void call.serve();
  return () => {
    calls.delete(call);
    call.closed();
  };
}

function createHttp2Server(limits: GrpcLimits): Http2Server {
  const server = createServer({
    settings: {
      enablePush: false,
      maxConcurrentStreams: limits.callsPerConnection,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
    maxSessionMemory: limits.connectionMemoryMiB,
    // Rapid reset (CVE-2023-44487): who cancels more calls than that is disconnected.
    streamResetBurst: 20 * limits.resetsPerSecond,
    streamResetRate: limits.resetsPerSecond,
    ...lenientFields,
  });
  server.maxConnections = limits.connections;
  // What is no HTTP/2 costs its own connection alone.
  server.on('sessionError', () => undefined);
  return server;
}
