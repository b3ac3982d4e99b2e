import { pathOf } from '@rollcall/platform/http/server.ts';
import { closingLimitMs, httpServer } from '@rollcall/platform/process/http-server.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { ProcessContext, ProcessDefinition, ProcessParts } from '@rollcall/platform/process/main.ts';
import type { Redis } from '@rollcall/platform/redis/client.ts';
import { buildApp, type Routes } from './app.ts';
import { type GatewayConfig, gatewayConfig } from './config.ts';
import { createRequestMetrics } from './doors/rest/request-metrics.ts';
import { proxyRoute } from './doors/rest/route.ts';
import { PATH as WEBSOCKET_PATH } from './doors/websocket/upgrade.ts';
import { createParts, type Parts } from './parts.ts';
import { asyncApiRoute } from './routes/asyncapi.ts';
import { entryRoute } from './routes/entry.ts';
import { graphiqlRoute } from './routes/graphiql.ts';
import { healthRoute } from './routes/health.ts';
import { keysRoute } from './routes/keys.ts';
import { metricsRoute } from './routes/metrics.ts';
import { logRequests } from './routes/request-log.ts';
import { tokenRoute } from './routes/token.ts';
import type { Dispatchers } from './upstream/dispatchers.ts';

/** One replica of the gateway. */
export const gatewayProcess: ProcessDefinition<GatewayConfig> = {
  name: 'gateway',
  manifest: new URL('../package.json', import.meta.url),
  config: gatewayConfig,
  isTraced: true,
  parts: gatewayParts,
};

/** What one replica of the gateway is made of. */
async function gatewayParts(context: ProcessContext<GatewayConfig>): Promise<ProcessParts> {
  const { config, log, metrics, isStopping } = context;
  const parts = await createParts(context);
  const { identity, limits } = parts;
  const { grpc, passing, webSockets } = parts.doors;
  const app = await buildApp({
    log,
    metrics,
    version: context.version,
    accessLog: parts.accessLog,
    bodyLimit: config.bodyLimit,
    corsOrigins: config.corsOrigins,
    closingLimitMs: closingLimitMs(config),
    isStopping,
    routes: listRoutes(context, parts),
    tracing: parts.requestTracing,
  });
  app.server.on('upgrade', (request, socket, head) => {
    const door = pathOf(request.url) === WEBSOCKET_PATH ? webSockets : passing;
    door.handleUpgrade(request, socket, head);
  });
  const endStreams = async () => {
    passing.close();
    await webSockets.close();
  };
  return {
    actors: [
      connectionsActor(parts),
      { name: 'limits', start: () => limits.start(), stop: () => limits.stop() },
      parts.routes.actor,
      ...identity.actors,
      parts.targets.actor,
      webSockets.actor,
      passing.actor,
      doors([grpc, httpServer(app, { config, log, beforeClose: endStreams })]),
    ],
  };
}

function listRoutes(context: ProcessContext<GatewayConfig>, parts: Parts): readonly Routes[] {
  const { config, clock, metrics, version, hasStarted } = context;
  const { identity, limits, routes, targets, doors, accessLog } = parts;
  const admission = { authenticator: identity.authenticator, limits };
  const logged =
    (routes: Routes): Routes =>
    (scope) => {
      logRequests(scope, accessLog);
      routes(scope);
    };
  return [
    (scope) => healthRoute(scope, { version, clock, fault: () => (hasStarted() ? undefined : 'starting') }),
    logged(entryRoute),
    logged(graphiqlRoute),
    logged((scope) => keysRoute(scope, identity.keys)),
    logged((scope) =>
      tokenRoute(scope, {
        tokens: identity.tokens,
        clients: identity.clients,
        keys: identity.keys,
        exchange: identity.exchange,
        targets,
        limits,
      }),
    ),
    logged((scope) => metricsRoute(scope, { metrics, admission })),
    logged((scope) => asyncApiRoute(scope, { document: doors.webSockets.document, admission })),
    (scope) =>
      proxyRoute(scope, {
        admission,
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
