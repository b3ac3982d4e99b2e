import type { Clock } from '@rollcall/platform/clock.ts';
import { createGatewayKeys, keysLoader } from '@rollcall/platform/http/gateway-keys.ts';
import { createIdentityReader } from '@rollcall/platform/http/identity.ts';
import type { KeySet } from '@rollcall/platform/http/key-sets.ts';
import { connect, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { closingLimitMs, httpServer } from '@rollcall/platform/process/http-server.ts';
import type { ProcessContext, ProcessDefinition, ProcessParts } from '@rollcall/platform/process/main.ts';
import { type RegistryConfig, registryConfig } from '../config.ts';
import { createGrpcServer } from '../grpc/server.ts';
import { type Authentication, OWN_NAME } from '../http/authentication.ts';
import { authenticator } from '../http/authenticator.ts';
import { healthRoutes } from '../http/health.ts';
import { tokenReviewer } from '../kube/token-review.ts';
import { buildApp } from './app.ts';
import { createDelivery } from './delivery.ts';
import { createDiscovery } from './discovery.ts';

/** By monitoring, all the time; and streams, which end with whoever reads them. */
const UNTRACED = ['/health', '/metrics', '/services/watch', '/jobs/watch', '/jobs/:job_id/events'].map(
  (route) => `/api/v1${route}`,
);
const KUBE_TIMEOUT_MS = 5000;
const KUBE_SOCKETS = 64;
const DATABASE_SCHEMA = 'registry';
const DATABASE_CONNECTIONS = 10;

/** One replica of the registry. */
export const registryProcess: ProcessDefinition<RegistryConfig> = {
  name: 'registry',
  manifest: new URL('../../package.json', import.meta.url),
  config: registryConfig,
  isTraced: true,
  parts: registryParts,
};

/** What one replica of the registry is made of. */
async function registryParts(context: ProcessContext<RegistryConfig>): Promise<ProcessParts> {
  const { config, component, version, environment, clock, log, metrics, tracing, isStopping } = context;
  const connection = await connect({
    clock,
    environment,
    fieldManager: component,
    requestTimeoutMs: KUBE_TIMEOUT_MS,
    maxSockets: KUBE_SOCKETS,
  });
  const namespace = config.namespace ?? connection.namespace;
  const pool = createPool({
    url: config.databaseUrl,
    schema: DATABASE_SCHEMA,
    maxConnections: DATABASE_CONNECTIONS,
    log,
  });
  const discovery = createDiscovery({ connection, namespace, config, clock, log, metrics });
  const currentVersion = (serviceName: string) => discovery.currentVersion(serviceName);
  const { databaseUrl, webhookSecrets, webhookRules, webhookAddresses, jobRetentionMs } = config;
  const delivery = await createDelivery({
    connection,
    namespace,
    databaseUrl,
    webhookSecrets,
    webhookRules,
    webhookAddresses,
    jobRetentionMs,
    pool,
    currentVersion,
    clock,
    log,
    metrics,
  });
  const health = {
    version,
    startedAt: clock.now(),
    metrics,
    storeConnected: discovery.connected,
    databaseConnected: delivery.databaseConnected,
    cache: discovery.cache,
  };
  const gateway = config.authentication?.gateway;
  const gatewayKeys = gateway && createGatewayKeys(gateway.jwksUrl, clock);
  const authentication = createAuthentication({ connection, clock, gatewayKeys }, config.authentication);
  const app = await buildApp({
    log,
    metrics,
    version,
    authentication,
    closingLimitMs: closingLimitMs(config),
    isStopping,
    tracing: tracing && { tracer: tracing.tracer, untraced: UNTRACED },
    routes: [...discovery.routes, ...delivery.routes, (api) => healthRoutes(api, health)],
  });
  const { host, grpcPort: port } = config;
  const { backend } = discovery;
  const grpc = createGrpcServer({ host, port, backend, authentication, tracer: tracing?.tracer, log, metrics });
  const beforeClose = () => {
    grpc.closeStreams();
    discovery.closeStreams();
    delivery.closeStreams();
  };
  return {
    actors: [
      {
        name: 'connections',
        start: async () => {},
        stop: async () => void (await Promise.all([pool.end(), connection.close()])),
      },
      ...discovery.actors,
      ...delivery.actors,
      ...(gatewayKeys === undefined ? [] : [keysLoader(gatewayKeys)]),
      // Stopped behind the HTTP server: what proxies need to notice the end is over by then.
      grpc,
      httpServer(app, { config, log, beforeClose }),
    ],
    onReady: () => grpc.setServing(true),
    onStopping: () => grpc.setServing(false),
  };
}

interface AuthenticationDeps {
  readonly connection: KubeConnection;
  readonly clock: Clock;
  /** Undefined: who comes by a gateway is nobody. */
  readonly gatewayKeys: KeySet | undefined;
}

function createAuthentication(
  { connection, clock, gatewayKeys }: AuthenticationDeps,
  config: RegistryConfig['authentication'],
): Authentication | undefined {
  if (config === undefined) return undefined;
  const { audience, reads, gateway } = config;
  const authenticate = authenticator({
    review: tokenReviewer({ connection, clock, audience }),
    gateway:
      gateway &&
      gatewayKeys &&
      createIdentityReader({ keys: gatewayKeys, issuer: gateway.issuer, clock, service: OWN_NAME }),
  });
  return { authenticate, reads };
}
