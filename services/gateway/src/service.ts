import { readFileSync } from 'node:fs';
import { tokenFromFile } from '@rollcall/client/token-file.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Environment } from '@rollcall/platform/config.ts';
import { adminServer } from '@rollcall/platform/http/admin.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { connect } from '@rollcall/platform/kube/connection.ts';
import { type Actor, runActors } from '@rollcall/platform/lifecycle.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { createRedis, type Redis } from '@rollcall/platform/redis/client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { TracingSettings } from '@rollcall/platform/tracing/settings.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { createTracing } from '@rollcall/platform/tracing/tracing.ts';
import { fetch } from 'undici';
import { createAccessLog } from './access-log.ts';
import type { TrustedProxies } from './admission/client-address.ts';
import { createConcurrency } from './admission/concurrency.ts';
import { createLimits } from './admission/limits.ts';
import { buildApp, type Routes } from './app.ts';
import type { GatewayConfig } from './config.ts';
import { resetLimits } from './doors/grpc/limits.ts';
import { createGrpcProxy } from './doors/grpc/proxy.ts';
import { grpcTargets, takeCall } from './doors/grpc/wiring.ts';
import { requestOrigin } from './doors/request-origin.ts';
import { createRestProxy } from './doors/rest/rest.ts';
import { proxyRoute } from './doors/rest/route.ts';
import { createWebSockets } from './doors/websocket/websockets.ts';
import { createIdentity } from './identity/identity.ts';
import { asyncApiRoute } from './routes/asyncapi.ts';
import { healthRoute } from './routes/health.ts';
import { keysRoute } from './routes/keys.ts';
import { metricsRoute } from './routes/metrics.ts';
import { logRequests } from './routes/request-log.ts';
import { tokenRoute } from './routes/token.ts';
import { defaultBreakerPolicy } from './upstream/breaker.ts';
import { endpointsBy } from './upstream/discovery/endpoints.ts';
import { createLookups } from './upstream/discovery/lookups.ts';
import { createTargets } from './upstream/discovery/targets.ts';
import { createDispatchers, type Dispatchers } from './upstream/dispatchers.ts';
import { createRouteTable } from './upstream/routing/routes-file.ts';

/** By monitoring, all the time. */
const POLLED_ROUTES = ['/api/health', '/api/metrics'];
const KUBE_TIMEOUT_MS = 5000;
const KUBE_SOCKETS = 8;
/** Under way at one address of a service. Connections have no limit of their own: none waits for one to be free. */
const ADDRESS_REQUESTS = 1024;
/** Of one caller to one service: who opens streams and leaves them open keeps nobody else out. */
const CALLER_REQUESTS = ADDRESS_REQUESTS / 2;
const STOP_GRACE_MS = 25_000;
/** Of the grace, for draining and for answers to be fetched. */
const CLOSING_GRACE_MS = 15_000;
const CLOSING_LEAST_MS = 2000;

export interface GatewayDeps {
  readonly config: GatewayConfig;
  /** Undefined: nothing is traced. */
  readonly tracing: TracingSettings | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly environment: Environment;
  /** Resolves with the reason when the process is to stop. */
  readonly stopRequested: Promise<string>;
}

/**
 * Runs one replica of the gateway until it is asked to stop. @returns the process' exit code.
 */
export async function runGateway(deps: GatewayDeps): Promise<number> {
  const { config, log, stopRequested } = deps;
  const parts = await assemble(deps);
  const { metrics, identity, limits, webSockets, tracing } = parts;
  let stopping = false;
  let started = false;
  const app = await buildApp({
    log,
    metrics,
    bodyLimit: config.bodyLimit,
    corsOrigins: config.corsOrigins,
    closingLimitMs: parts.closingLimitMs,
    isStopping: () => stopping,
    routes: listRoutes(deps, parts, () => started),
    tracing: parts.requestTracing,
  });
  app.server.on('upgrade', (request, socket, head) => webSockets.handleUpgrade(request, socket, head));
  const unready = () => {
    if (stopping) return 'stopping';
    return started ? undefined : 'starting: signing keys and clients are not read';
  };
  const actors: Actor[] = [
    ...(tracing === undefined ? [] : [tracing]),
    adminServer({ host: config.host, port: config.adminPort, metrics, unready }),
    connectionsActor(parts),
    { name: 'limits', start: () => limits.start(), stop: () => limits.stop() },
    parts.routes.actor,
    ...identity.actors,
    parts.targets.actor,
    webSockets.actor,
    doors([parts.grpc, httpServer(app, config, { log, beforeClose: () => webSockets.close() })]),
  ];
  return runActors(actors, {
    log,
    graceMs: STOP_GRACE_MS,
    stopRequested,
    onReady: () => {
      started = true;
    },
    onStopping: () => {
      stopping = true;
    },
  });
}

type Parts = Awaited<ReturnType<typeof assemble>>;

/** Makes the parts; none of them does anything yet. */
async function assemble({ config, tracing: tracingSettings, log, clock, environment }: GatewayDeps) {
  const metrics = createMetrics('gateway');
  const version = packageVersion();
  const tracing = await createTracing(tracingSettings, { version, log, clock });
  const requestTracing = tracing && tracingOfRequests(tracing.tracer, config.trustedProxies);
  const connection = await connect({ clock, environment, requestTimeoutMs: KUBE_TIMEOUT_MS, maxSockets: KUBE_SOCKETS });
  const namespace = config.namespace ?? connection.namespace;
  const { connectMs } = config.upstream;
  const lookups = createLookups();
  const dispatchers = createDispatchers({ connectTimeoutMs: connectMs, lookups }, clock);
  const { redisUrl: url, redisTimeoutMs: waitMs } = config;
  const redis = url === undefined ? undefined : createRedis({ url, name: 'gateway', waitMs, log });
  const limits = createLimits({ ...config, redis, metrics, log, clock });
  const identity = createIdentity({ ...config, connection, namespace, dispatcher: dispatchers.byName, clock, log });
  const { authenticator } = identity;
  const { urls, tokenFile, grpcOrigin } = config.registry;
  const token = tokenFile === undefined ? undefined : tokenFromFile(tokenFile);
  const registry = { servers: urls, token, fetch };
  const endpointsOf = endpointsBy({
    resolve: lookups.resolve,
    breakerPolicy: defaultBreakerPolicy,
    mostUnderWay: ADDRESS_REQUESTS,
    clock,
  });
  const targets = createTargets({ registry, endpointsOf, log, metrics });
  const accessLog = config.accessLog ? createAccessLog(log) : undefined;
  const closingLimitMs = Math.max(CLOSING_GRACE_MS - config.drainMs, CLOSING_LEAST_MS);
  return {
    metrics,
    version,
    tracing,
    requestTracing,
    connection,
    dispatchers,
    redis,
    limits,
    identity,
    targets,
    accessLog,
    closingLimitMs,
    routes: createRouteTable(config.routesFile, log),
    proxy: createRestProxy({
      dispatchers,
      concurrency: createConcurrency(CALLER_REQUESTS),
      authenticator,
      clock,
      headersTimeoutMs: config.upstream.headersMs,
      bodyTimeoutMs: config.upstream.bodyMs,
      bodyLimit: config.bodyLimit,
    }),
    webSockets: createWebSockets({
      registry,
      authenticator,
      requestLimits: limits,
      accessLog,
      tracing: requestTracing,
      version,
      clock,
      log,
      metrics,
    }),
    grpc: createGrpcProxy({
      host: config.host,
      port: config.grpcPort,
      limits: resetLimits(config.grpcResetsPerSecond),
      drainMs: config.drainMs,
      authenticator,
      take: takeCall(limits),
      lookups,
      targets: grpcTargets(targets, grpcOrigin, endpointsOf),
      identityHeaders: (caller, service) => identity.backend.headersFor(caller, service),
      log,
      metrics,
      clock,
      closingLimitMs,
      tracer: tracing?.tracer,
      accessLog,
    }),
  };
}

function tracingOfRequests(tracer: Tracer, trustedProxies: TrustedProxies): RequestTracing {
  return { tracer, untraced: POLLED_ROUTES, originOf: (request) => requestOrigin(request, trustedProxies) };
}

function listRoutes({ config, clock }: GatewayDeps, parts: Parts, hasStarted: () => boolean): readonly Routes[] {
  const { identity, limits, metrics, routes, targets, proxy, version, webSockets, accessLog } = parts;
  const { authenticator } = identity;
  const logged =
    (routes: Routes): Routes =>
    (scope) => {
      logRequests(scope, accessLog);
      routes(scope);
    };
  return [
    (scope) => healthRoute(scope, { version, clock, fault: () => (hasStarted() ? undefined : 'starting') }),
    logged((scope) => keysRoute(scope, identity.keys)),
    logged((scope) => tokenRoute(scope, { ...identity, limits })),
    logged((scope) => metricsRoute(scope, { metrics, authenticator, limits })),
    logged((scope) => asyncApiRoute(scope, { document: webSockets.document, authenticator, limits })),
    (scope) =>
      proxyRoute(scope, {
        ...config,
        authenticator,
        route: routes.route,
        identity: identity.backend,
        targets,
        limits,
        proxy,
        metrics,
        clock,
        accessLog,
      }),
  ];
}

interface Connections {
  readonly connection: { close(): Promise<void> };
  readonly dispatchers: Dispatchers;
  readonly redis: Redis | undefined;
}

function connectionsActor({ connection, dispatchers, redis }: Connections): Actor {
  return {
    name: 'connections',
    start: async () => {},
    async stop() {
      redis?.disconnect();
      await Promise.all([dispatchers.destroy(), connection.close()]);
    },
  };
}

/** What callers come in by. All close at once: each drains, and the grace is for that once. */
function doors(servers: readonly Actor[]): Actor {
  return {
    name: 'doors',
    async start() {
      for (const server of servers) await server.start();
    },
    async stop() {
      await Promise.all(servers.map((server) => server.stop()));
    },
  };
}

function httpServer(
  app: App,
  { host, port, drainMs }: GatewayConfig,
  { log, beforeClose }: { readonly log: Logger; readonly beforeClose: () => Promise<void> },
): Actor {
  return {
    name: 'HTTP server',
    async start() {
      const address = await app.listen({ host: host ?? (await anyAddress()), port });
      log.info({ address }, 'gateway listens');
    },
    async stop() {
      await sleep(drainMs);
      await Promise.all([beforeClose(), app.close()]);
    },
  };
}

function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  return manifest.version;
}
