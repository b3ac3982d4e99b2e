import { once } from 'node:events';
import { createServer, type Http2Server } from 'node:http2';
import { grpcStatus } from '@rollcall/platform/grpc/status.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/work/concurrency-limiter.ts';
import { BackendPool } from './backend-pool.ts';
import { createCallMetrics } from './call-metrics.ts';
import { followConnections } from './connections.ts';
import { createOwnHealth } from './health.ts';
import { defaultLimits, type GrpcLimits } from './limits.ts';
import { Refusal } from './refusal.ts';
import { serveCall } from './serve-call.ts';
import type { GrpcProxyDeps, KnownCall, Serving } from './serving.ts';
import { SWEEP_INTERVAL_MS, sweep } from './sweep.ts';

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
  const limits: GrpcLimits = { ...defaultLimits, ...deps.limits };
  const server = createHttp2Server(limits);
  const connections = followConnections(server, {
    limits,
    clock,
    onCall: (stream, raw) => serveCall(serving, stream, raw),
  });
  const lookup = deps.lookups.within(limits.connectTimeoutMs / 2);
  const backends = new BackendPool({ limits, lookup, log });
  const calls = new Set<KnownCall>();
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
  const concurrency = createConcurrencyLimiter({ mostPerKey: limits.callsPerSubject });
  const serving: Serving = { deps, limits, calls, concurrency, seen: new Set(), health, backends, callMetrics };
  const timer = setInterval(() => {
    for (const known of calls) sweep(known, limits, authenticator);
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
      for (const { forwarded } of calls) forwarded?.call.fail(refusal);
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
    strictSingleValueFields: false,
  });
  server.maxConnections = limits.connections;
  // What is no HTTP/2 costs its own connection alone.
  server.on('sessionError', () => undefined);
  return server;
}
