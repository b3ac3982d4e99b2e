import { adminServer } from '@rollcall/platform/http/admin.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { type Actor, runActors } from '@rollcall/platform/lifecycle.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import type { Redis } from '@rollcall/platform/redis/client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { buildApp, type Routes } from './app.ts';
import type { GatewayConfig } from './config.ts';
import { createRequestMetrics } from './doors/rest/request-metrics.ts';
import { proxyRoute } from './doors/rest/route.ts';
import { createParts, type Parts, type PartsDeps } from './parts.ts';
import { asyncApiRoute } from './routes/asyncapi.ts';
import { entryRoute } from './routes/entry.ts';
import { healthRoute } from './routes/health.ts';
import { keysRoute } from './routes/keys.ts';
import { metricsRoute } from './routes/metrics.ts';
import { logRequests } from './routes/request-log.ts';
import { tokenRoute } from './routes/token.ts';
import type { Dispatchers } from './upstream/dispatchers.ts';

const STOP_GRACE_MS = 25_000;
export interface RunGatewayDeps extends PartsDeps {
  /** Resolves with the reason when the process is to stop. */
  readonly stopRequested: Promise<string>;
}

/**
 * Runs one replica of the gateway until it is asked to stop. @returns the process' exit code.
 */
export async function runGateway(deps: RunGatewayDeps): Promise<number> {
  const { config, log, stopRequested } = deps;
  const parts = await createParts(deps);
  const { metrics, identity, limits, tracing } = parts;
  const { grpc, webSockets } = parts.doors;
  let stopping = false;
  let started = false;
  const app = await buildApp({
    log,
    metrics,
    accessLog: parts.accessLog,
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
    doors([grpc, httpServer(app, config, { log, beforeClose: () => webSockets.close() })]),
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

function listRoutes({ config, clock }: PartsDeps, parts: Parts, hasStarted: () => boolean): readonly Routes[] {
  const { identity, limits, metrics, routes, targets, doors, version, accessLog } = parts;
  const { authenticator } = identity;
  const logged =
    (routes: Routes): Routes =>
    (scope) => {
      logRequests(scope, accessLog);
      routes(scope);
    };
  return [
    (scope) => healthRoute(scope, { version, clock, fault: () => (hasStarted() ? undefined : 'starting') }),
    logged(entryRoute),
    logged((scope) => keysRoute(scope, identity.keys)),
    logged((scope) =>
      tokenRoute(scope, { tokens: identity.tokens, clients: identity.clients, keys: identity.keys, limits }),
    ),
    logged((scope) => metricsRoute(scope, { metrics, authenticator, limits })),
    logged((scope) => asyncApiRoute(scope, { document: doors.webSockets.document, authenticator, limits })),
    (scope) =>
      proxyRoute(scope, {
        admission: { authenticator, limits },
        route: routes.route,
        identity: identity.backend,
        targets,
        proxy: doors.rest,
        trustedProxies: config.trustedProxies,
        requestMetrics: createRequestMetrics({ metrics, targets, clock }),
        bodyLimit: config.bodyLimit,
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
