import { readFileSync } from 'node:fs';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Environment } from '@rollcall/platform/config.ts';
import { adminServer } from '@rollcall/platform/http/admin.ts';
import { anyAddress } from '@rollcall/platform/http/any-address.ts';
import { createIdentityReader } from '@rollcall/platform/http/identity.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { connect, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { type Actor, runActors } from '@rollcall/platform/lifecycle.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import type { TracingSettings } from '@rollcall/platform/tracing/settings.ts';
import { createTracing } from '@rollcall/platform/tracing/tracing.ts';
import type { AuthenticationConfig, RegistryConfig } from '../config.ts';
import { createGrpcServer } from '../grpc/server.ts';
import { type Authentication, OWN_NAME } from '../http/authentication.ts';
import { authenticator } from '../http/authenticator.ts';
import { type HealthRoutesDeps, healthRoutes } from '../http/health.ts';
import { tokenReviewer } from '../kube/token-review.ts';
import { buildApp } from './app.ts';
import { createDelivery, type Delivery } from './delivery.ts';
import { createDiscovery, type Discovery } from './discovery.ts';

/** By monitoring, all the time; and streams, which end with whoever reads them. */
const UNTRACED = ['/health', '/metrics', '/services/watch', '/jobs/watch', '/jobs/:job_id/events'].map(
  (route) => `/api/v1${route}`,
);
const KUBE_TIMEOUT_MS = 5000;
const KUBE_SOCKETS = 64;
const DATABASE_SCHEMA = 'registry';
const DATABASE_CONNECTIONS = 10;
const STOP_GRACE_MS = 25_000;
/**
 * Of the grace, for draining and for answers to be fetched; the rest is for writing what is
 * pending.
 */
const CLOSING_GRACE_MS = 15_000;
const CLOSING_LEAST_MS = 2000;

export interface RegistryDeps {
  readonly config: RegistryConfig;
  /** Undefined: nothing is traced. */
  readonly tracing?: TracingSettings | undefined;
  readonly log: Logger;
  readonly clock: Clock;
  readonly environment: Environment;
  /** Resolves with the reason when the process is to stop. */
  readonly stopRequested: Promise<string>;
}

/**
 * Runs one replica of the registry until it is asked to stop. @returns the process' exit code.
 */
export async function runRegistry(deps: RegistryDeps): Promise<number> {
  const { config, log, clock, environment, stopRequested } = deps;
  const metrics = createMetrics('registry');
  const version = packageVersion();
  const tracing = await createTracing(deps.tracing, { version, log, clock });
  const connection = await connect({
    clock,
    environment,
    fieldManager: 'rollcall-registry',
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
  const common = { connection, namespace, clock, log, metrics };
  const discovery = createDiscovery({ ...common, config });
  const currentVersion = (serviceName: string) => discovery.currentVersion(serviceName);
  const delivery = await createDelivery({ ...config, ...common, pool, currentVersion });
  const health = { version, startedAt: clock.now(), metrics, state: () => healthState(discovery, delivery) };
  let stopping = false;
  const authentication = createAuthentication({ connection, clock }, config.authentication);
  const app = await buildApp({
    log,
    metrics,
    version,
    authentication,
    closingLimitMs: Math.max(CLOSING_GRACE_MS - config.drainMs, CLOSING_LEAST_MS),
    isStopping: () => stopping,
    tracing: tracing && { tracer: tracing.tracer, untraced: UNTRACED },
    routes: [...discovery.routes, ...delivery.routes, (api) => healthRoutes(api, health)],
  });

  const listening = { host: config.host, port: config.grpcPort };
  const serving = { backend: discovery.backend, authentication, tracer: tracing?.tracer };
  const grpc = createGrpcServer({ ...listening, ...serving, log, metrics });
  const closeStreams = () => {
    grpc.closeStreams();
    discovery.closeStreams();
    delivery.closeStreams();
  };
  let started = false;
  const unready = () => {
    if (stopping) return 'stopping';
    return started ? undefined : 'starting: the local copy of the registrations is not complete';
  };
  const actors: Actor[] = [
    ...(tracing === undefined ? [] : [tracing]),
    adminServer({ host: config.host, port: config.adminPort, metrics, unready }),
    {
      name: 'connections',
      start: async () => {},
      stop: async () => void (await Promise.all([pool.end(), connection.close()])),
    },
    ...discovery.actors,
    ...delivery.actors,
    // Stopped behind the HTTP server: what proxies need to notice the end is over by then.
    grpc,
    httpServer(app, config, { log, beforeClose: closeStreams }),
  ];
  return runActors(actors, {
    log,
    graceMs: STOP_GRACE_MS,
    stopRequested,
    onReady: () => {
      started = true;
      grpc.setServing(true);
    },
    onStopping: () => {
      stopping = true;
      grpc.setServing(false);
    },
  });
}

function createAuthentication(
  common: { readonly connection: KubeConnection; readonly clock: Clock },
  config: AuthenticationConfig | undefined,
): Authentication | undefined {
  if (config === undefined) return undefined;
  const { audience, reads, gateway } = config;
  const authenticate = authenticator({
    review: tokenReviewer({ ...common, audience }),
    gateway: gateway === undefined ? undefined : createIdentityReader({ ...common, ...gateway, service: OWN_NAME }),
  });
  return { authenticate, reads };
}

function healthState(discovery: Discovery, delivery: Delivery): ReturnType<HealthRoutesDeps['state']> {
  const { size, ...cache } = discovery.cache();
  return {
    ...cache,
    cacheSize: size,
    storeConnected: discovery.connected(),
    databaseConnected: delivery.databaseConnected(),
  };
}

function httpServer(
  app: App,
  { host, port, drainMs }: RegistryConfig,
  { log, beforeClose }: { readonly log: Logger; readonly beforeClose: () => void },
): Actor {
  return {
    name: 'HTTP server',
    async start() {
      const address = await app.listen({ host: host ?? (await anyAddress()), port });
      log.info({ address }, 'registry listens');
    },
    async stop() {
      await sleep(drainMs);
      beforeClose();
      await app.close();
    },
  };
}

function packageVersion(): string {
  const manifest: { version: string } = JSON.parse(
    readFileSync(new URL('../../package.json', import.meta.url), 'utf8'),
  );
  return manifest.version;
}
