import type { RequestTracing } from '@rollcall/platform/http/request-spans.ts';
import { connect } from '@rollcall/platform/kube/connection.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { defaultBreakerPolicy } from '@rollcall/platform/outbound/breaker.ts';
import { guardedResolve } from '@rollcall/platform/outbound/guarded-resolve.ts';
import { createLookups, resolveBySystem } from '@rollcall/platform/outbound/lookups.ts';
import { closingLimitMs } from '@rollcall/platform/process/http-server.ts';
import type { ProcessContext } from '@rollcall/platform/process/main.ts';
import { createConcurrencyLimiter } from '@rollcall/platform/queues/concurrency-limiter.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import type { Tracer } from '@rollcall/platform/tracing/tracer.ts';
import { fetch } from 'undici';
import { type AccessLog, createAccessLog } from './access-log.ts';
import type { TrustedProxies } from './admission/client-address.ts';
import { createLimits, type Limits } from './admission/limits.ts';
import type { GatewayConfig } from './config.ts';
import { createGrpcProxy } from './doors/grpc/proxy.ts';
import { grpcTargets } from './doors/grpc/targets.ts';
import { createPassingWebSockets } from './doors/passing/passing-websockets.ts';
import { requestOrigin } from './doors/request-origin.ts';
import { createRestProxy } from './doors/rest/rest.ts';
import { subjectChannels } from './doors/websocket/channels/subject-channels.ts';
import { createWebSockets } from './doors/websocket/websockets.ts';
import { createIdentity, type GatewayIdentity } from './identity/identity.ts';
import { endpointsBy } from './upstream/discovery/endpoints.ts';
import { createTargets } from './upstream/discovery/targets.ts';
import { createDispatchers } from './upstream/dispatchers.ts';
import { createRouteTable } from './upstream/routing/routes-file.ts';
import { shownPath } from './upstream/routing/secret-paths.ts';
import { openServiceEvents } from './upstream/service-events.ts';

/** By monitoring, all the time. */
const POLLED_ROUTES = ['/api/health', '/api/metrics'];
const KUBE_TIMEOUT_MS = 5000;
const KUBE_SOCKETS = 8;
/**
 * Under way at one address of a service. Connections have no limit of their own: none waits for one
 * to be free.
 */
const ADDRESS_REQUESTS = 1024;
/** Of one caller to one service: who opens streams and leaves them open keeps nobody else out. */
const CALLER_REQUESTS = ADDRESS_REQUESTS / 2;

export type PartsDeps = ProcessContext<GatewayConfig>;

/** What a gateway is made of. */
export type Parts = Awaited<ReturnType<typeof createParts>>;

/** Makes the parts; none of them does anything yet. */
export async function createParts(deps: PartsDeps) {
  const { config, component, log, clock, metrics, environment, tracing } = deps;
  const requestTracing = tracing && tracingOfRequests(tracing.tracer, config.trustedProxies);
  const connection = await connect({
    clock,
    environment,
    fieldManager: component,
    requestTimeoutMs: KUBE_TIMEOUT_MS,
    maxSockets: KUBE_SOCKETS,
  });
  const namespace = config.namespace ?? connection.namespace;
  const upstream = createUpstream(deps);
  const { limits: tiers, trustedProxies, redisUrl: url, redisPrefix, redisTimeoutMs } = config;
  const redis = url === undefined ? undefined : createRedis({ url, name: 'gateway', waitMs: redisTimeoutMs, log });
  const limits = createLimits({
    limits: tiers,
    trustedProxies,
    redis,
    redisPrefix,
    redisTimeoutMs,
    metrics,
    log,
    clock,
  });
  const identity = createIdentity(deps, { connection, namespace, dispatcher: upstream.dispatchers.byName });
  const routes = createRouteTable(config.routesFile, log);
  const accessLog = config.accessLog ? createAccessLog(log) : undefined;
  return {
    requestTracing,
    connection,
    dispatchers: upstream.dispatchers,
    redis,
    limits,
    identity,
    targets: upstream.targets,
    accessLog,
    routes,
    doors: createDoors(deps, {
      requestTracing,
      upstream,
      limits,
      identity,
      accessLog,
      routes,
    }),
  };
}

type Upstream = ReturnType<typeof createUpstream>;

/** The services that there are, and the ways to them. */
function createUpstream({ config, log, clock, metrics }: PartsDeps) {
  const mayConnect = addressRules[config.serviceAddresses];
  const lookups = createLookups(guardedResolve(resolveBySystem, { mayConnect, except: configuredHosts(config) }));
  const dispatchers = createDispatchers({ connectTimeoutMs: config.upstream.connectMs, lookups });
  const registry = { servers: config.registry.urls, fetch };
  const endpoints = {
    resolve: lookups.resolve,
    breakerPolicy: defaultBreakerPolicy,
    mostUnderWay: ADDRESS_REQUESTS,
    balancing: config.balancing,
    clock,
  };
  // Calls of gRPC may be streams that stay: connections bound them.
  const grpcEndpoints = { ...endpoints, mostUnderWay: Number.POSITIVE_INFINITY };
  const targets = createTargets({
    registry,
    endpointsOf: endpointsBy({ ...endpoints, mayConnect }),
    grpcEndpointsOf: endpointsBy({ ...grpcEndpoints, mayConnect }),
    registryEndpoints: endpointsBy({ ...endpoints, mayConnect: addressRules.any }),
    clock,
    log,
    metrics,
  });
  const registryGrpcEndpoints = endpointsBy({ ...grpcEndpoints, mayConnect: addressRules.any });
  return { lookups, dispatchers, registry, registryGrpcEndpoints, targets };
}

/**
 * Hosts that no registration has chosen: those of the registry, and of the keys of other issuers.
 */
function configuredHosts({ registry, externalIssuers }: GatewayConfig): ReadonlySet<string> {
  const urls = [...registry.urls, registry.grpcOrigin ?? [], externalIssuers.map(({ jwksUrl }) => jwksUrl)].flat();
  return new Set(urls.map((url) => new URL(url).hostname));
}

interface DoorsParts {
  readonly requestTracing: RequestTracing | undefined;
  readonly upstream: Upstream;
  readonly limits: Limits;
  readonly identity: GatewayIdentity;
  readonly accessLog: AccessLog | undefined;
  readonly routes: ReturnType<typeof createRouteTable>;
}

/** By which callers come in. */
function createDoors({ config, log, clock, metrics, version, tracing }: PartsDeps, parts: DoorsParts) {
  const { requestTracing, upstream, limits, identity, accessLog } = parts;
  const { authenticator } = identity;
  return {
    passing: createPassingWebSockets({
      lookup: upstream.lookups.within(config.upstream.connectMs / 2),
      timeoutMs: config.upstream.headersMs,
      authenticator,
      requestLimits: limits,
      route: parts.routes.route,
      targets: upstream.targets,
      identity: identity.backend,
      trustedProxies: config.trustedProxies,
      accessLog,
      tracing: requestTracing,
      clock,
      log,
      metrics,
    }),
    rest: createRestProxy({
      dispatchers: upstream.dispatchers,
      concurrency: createConcurrencyLimiter({ mostPerKey: CALLER_REQUESTS }),
      authenticator,
      clock,
      headersTimeoutMs: config.upstream.headersMs,
      bodyTimeoutMs: config.upstream.bodyMs,
    }),
    webSockets: createWebSockets({
      registry: upstream.registry,
      authenticator,
      requestLimits: limits,
      accessLog,
      tracing: requestTracing,
      version,
      clock,
      log,
      metrics,
      sources: subjectChannels({
        open: openServiceEvents({
          targets: upstream.targets,
          dispatchers: upstream.dispatchers,
          identity: identity.backend,
        }),
        log,
      }),
    }),
    grpc: createGrpcProxy({
      host: config.host,
      port: config.grpcPort,
      limits: { resetsPerSecond: config.grpcResetsPerSecond },
      drainMs: config.drainMs,
      authenticator,
      requestLimits: limits,
      lookups: upstream.lookups,
      targets: grpcTargets(upstream.targets, config.registry.grpcOrigin, upstream.registryGrpcEndpoints),
      identity: identity.backend,
      log,
      metrics,
      clock,
      closingLimitMs: closingLimitMs(config),
      tracer: tracing?.tracer,
      accessLog,
    }),
  };
}

function tracingOfRequests(tracer: Tracer, trustedProxies: TrustedProxies): RequestTracing {
  return { tracer, untraced: POLLED_ROUTES, originOf: (request) => requestOrigin(request, trustedProxies), shownPath };
}
