import { fileURLToPath } from 'node:url';
import { createCallerReader, type ReadCaller } from '@rollcall/platform/http/callers.ts';
import { createGatewayKeys, keysLoader } from '@rollcall/platform/http/gateway-keys.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { createDatabase, type Database } from '@rollcall/platform/postgres/database.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import { closingLimitMs, httpServer } from '@rollcall/platform/process/http-server.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { ProcessContext, ProcessDefinition, ProcessParts } from '@rollcall/platform/process/main.ts';
import { buildServiceApp } from '@rollcall/platform/service/app.ts';
import { tokenEndpoint } from '@rollcall/platform/service/gateway-client.ts';
import { selfRegistration } from '@rollcall/platform/service/self-registration.ts';
import { isWebSocketUpgrade } from '@rollcall/platform/websocket/upgrade.ts';
import { Agent, type Dispatcher } from 'undici';
import { createComposer } from './composition/composer.ts';
import { type FederationConfig, federationConfig } from './config.ts';
import { createPolling } from './discovery/polling.ts';
import { createSchemaReader } from './discovery/read-schema.ts';
import { createRegistryActors } from './discovery/registry-actors.ts';
import { createDocuments, type Documents } from './documents/documents.ts';
import { createPersistedQueries } from './documents/persisted-queries.ts';
import { createTrustedDocuments, type TrustedDocumentStore } from './documents/trusted-documents.ts';
import { createChanges } from './domain/changes.ts';
import { createSchemas } from './domain/schemas.ts';
import { createGraphBuilder, shownBy } from './graphs/build-graph.ts';
import { createCurrent } from './graphs/current.ts';
import { createGraphFile } from './graphs/graph-file.ts';
import { createTrials } from './graphs/trials.ts';
import { createPlannerMetrics } from './planning/planner-metrics.ts';
import { createPlanners } from './planning/planners.ts';
import { documentRoutes } from './routes/documents.ts';
import { explainRoutes } from './routes/explain.ts';
import { graphqlRoutes } from './routes/graphql.ts';
import { createGraphqlEvents, type GraphqlEvents } from './routes/graphql-events.ts';
import { healthRoute } from './routes/health.ts';
import { schemaRoutes } from './routes/schemas.ts';
import { supergraphRoutes } from './routes/supergraph.ts';
import { usageRoutes } from './routes/usage.ts';
import { createGraphqlWebSockets } from './routes/websocket/websockets.ts';
import { createGraphStore, pruneGenerations } from './store/graph-store.ts';
import { createPersistedQueryStore, prunePersistedQueries } from './store/persisted-query-store.ts';
import { createTrustedDocumentStore } from './store/trusted-document-store.ts';
import { createUsageStore, pruneOperations } from './store/usage-store.ts';
import { createPassedHeaders } from './subgraphs/headers/passed-headers.ts';
import { createSubgraphIdentities, type SubgraphIdentities } from './subgraphs/identities.ts';
import { createReach } from './subgraphs/reach.ts';
import { createFeeds } from './subscriptions/feeds.ts';
import { createOperations } from './subscriptions/operations.ts';
import { createUsage } from './usage/usage.ts';

const NAME = 'federation';
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const DATABASE_CONNECTIONS = 10;
/** Anybody may have documents kept. */
const PRUNE_QUERIES_MS = 60_000;
const CONNECT_TIMEOUT_MS = 3000;
/** For a whole request, or for an event of a subscription, whatever it asks for. */
const DEADLINE_MS = 30_000;
/** A schema to be checked has up to 1 MiB, and JSON escapes what is in it. */
const BODY_LIMIT_BYTES = 2 * 1024 * 1024;
/** By monitoring, all the time. */
const UNTRACED = ['/api/health'];

/** One replica of the federation service. */
export const federationProcess: ProcessDefinition<FederationConfig> = {
  name: NAME,
  manifest: new URL('../package.json', import.meta.url),
  config: federationConfig,
  isTraced: true,
  parts,
};

async function parts(context: ProcessContext<FederationConfig>): Promise<ProcessParts> {
  const { config, version, clock, log } = context;
  const connections = createPool({
    url: config.databaseUrl,
    schema: NAME,
    maxConnections: DATABASE_CONNECTIONS,
    log,
  });
  const database = createDatabase({
    pool: connections,
    url: config.databaseUrl,
    schema: NAME,
    migrations: [MIGRATIONS],
    log,
  });
  const toGateway = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS } });
  const federation = createFederation(context, database, await identitiesOf(context, toGateway));
  const { jwksUrl, issuer } = config.gateway;
  const keys = createGatewayKeys(jwksUrl, clock);
  const readCaller = createCallerReader({
    issuer,
    keys,
    clock,
    service: NAME,
    accessTokenAudience: config.tokenAudience,
  });
  const { begin, shown, passed } = federation;
  const webSockets = createGraphqlWebSockets({
    begin,
    requireContract: (contract) => void shown(contract),
    readCaller,
    carried: passed.carried,
    clock,
    log,
    metrics: context.metrics,
  });
  const events = createGraphqlEvents({ begin, readCaller, carried: passed.carried, clock });
  const app = await buildApp(context, { federation, database, readCaller, events });
  app.server.on('upgrade', (request, socket, head) => webSockets.handleUpgrade(request, socket, head));
  const endStreams = () => {
    webSockets.close();
    events.close();
  };
  return {
    actors: [
      { name: 'connections', start: async () => {}, stop: () => connections.end() },
      { name: 'gateway', start: async () => {}, stop: () => toGateway.destroy() },
      database,
      createPruner({
        name: 'operations',
        prune: (limit) => pruneOperations(database.pool(), config.usageDays, limit),
        log,
      }),
      createPruner({ name: 'generations', prune: (limit) => pruneGenerations(database.pool(), limit), log }),
      createPruner({
        name: 'persisted queries',
        prune: (limit) => prunePersistedQueries(database.pool(), limit),
        intervalMs: PRUNE_QUERIES_MS,
        log,
      }),
      ...federation.actors,
      keysLoader(keys),
      webSockets.actor,
      httpServer(app, { config, log, beforeClose: endStreams }),
      ...registrationOf(),
    ],
  };

  function registrationOf(): readonly Actor[] {
    if (config.registration === undefined) return [];
    const healthParts = [{ name: 'graph', isNeeded: true, isConnected: federation.isServing }];
    return [
      selfRegistration({ ...config.registration, name: NAME, capabilities: ['rest'], version, healthParts, log }),
    ];
  }
}

/** Undefined where federation is no client of the gateway: no service is told who calls. */
async function identitiesOf(
  { config: { client, gateway }, clock, log }: ProcessContext<FederationConfig>,
  dispatcher: Dispatcher,
): Promise<SubgraphIdentities | undefined> {
  if (client === undefined) return undefined;
  return createSubgraphIdentities({
    askForToken: await tokenEndpoint(client, gateway.jwksUrl, dispatcher),
    clock,
    log,
  });
}

type Federation = ReturnType<typeof createFederation>;

/** What follows, composes and answers, without a door. */
function createFederation(
  context: ProcessContext<FederationConfig>,
  database: Database,
  identities: SubgraphIdentities | undefined,
) {
  const { config, clock, log, metrics } = context;
  const { pollMs, graceMs } = config;
  const times = { pollMs, graceMs };
  const mayConnect = addressRules[config.serviceAddresses];
  const dispatcher = createGuardedAgent({
    mayConnect,
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  });
  const store = createGraphStore(database.pool, times);
  const composer = createComposer();
  const planners = createPlanners(createPlannerMetrics(metrics));
  const { limits, contracts } = config;
  const passed = createPassedHeaders(config.headerRules);
  const reachSubgraphs = createReach(context, {
    dispatcher,
    mayConnect,
    identities,
    headersFor: passed.forService,
    sighting: (service) => sighting(service),
    isInGraph: (service) => current.graph()?.graph.subgraphs.has(service) === true,
  });
  const file = config.graphFile === undefined ? undefined : createGraphFile(config.graphFile, log);
  const { compose, build } = createTrials({
    compose: composer.compose,
    build: createGraphBuilder({ ...composer, contracts, planners, reachSubgraphs, limits, log }),
    isStopped: () => planners.isStopped(),
  });
  const current = createCurrent({ store, build, file, onSwap, clock, log, metrics });
  const shown = (contract?: string) => shownBy(current.graph(), contracts, contract);
  const graph = (contract?: string) => shown(contract)?.graph;
  const feeds = createFeeds({ graph, deadlineMs: DEADLINE_MS, clock, log, metrics });
  const usageStore = createUsageStore(database.pool);
  const usage = createUsage({ addUses: (uses) => usageStore.add(uses), log });
  const changes = createChanges({ store, compose, clock, adopt: current.adopt });
  const readSchema = createSchemaReader({ dispatcher, sdlOf: composer.sdlOf });
  const polling = createPolling({ pool: database.pool, readSchema, changes, times, log });
  const { sighting, actors: ofRegistry } = createRegistryActors({
    registries: config.registration?.registries,
    store,
    changes,
    onChange: () => polling.wake(),
    clock,
    log,
  });
  const calls: Actor = { name: 'calls', start: async () => {}, stop: () => dispatcher.destroy() };

  function onSwap(): void {
    feeds.followGraph().catch((err: unknown) => log.error({ err }, 'subscriptions cannot follow the graph'));
  }

  const trustedDocuments = createTrustedDocumentStore(database.pool);
  const documents = documentsOf(context, database, trustedDocuments);

  return {
    store,
    current,
    shown,
    passed,
    documents,
    trustedDocuments,
    begin: createOperations({ graph, feeds, documents, usage, deadlineMs: DEADLINE_MS, log }),
    usage,
    usageStore,
    schemas: createSchemas({ store, usage: usageStore, breaks: composer.breaks, changes, readSchema, compose }),
    isServing: () => database.connected() || current.graph() !== undefined,
    actors: [calls, composer, planners, usage, current, polling, ...ofRegistry],
  };
}

/** What clients may name instead of sending it. */
function documentsOf(
  { config, clock, log, metrics }: ProcessContext<FederationConfig>,
  database: Database,
  trusted: TrustedDocumentStore,
): Documents {
  const store = config.keepsQueries ? createPersistedQueryStore(database.pool) : undefined;
  return createDocuments({
    persisted: createPersistedQueries({ store, clock, log }),
    trusted: createTrustedDocuments(trusted),
    trust: config.trust,
    log,
    metrics,
  });
}

interface AppDeps {
  readonly federation: Federation;
  readonly database: Database;
  readonly readCaller: ReadCaller;
  readonly events: GraphqlEvents;
}

function buildApp(
  { config, version, log, metrics, tracing, isStopping }: ProcessContext<FederationConfig>,
  { federation, database, readCaller, events }: AppDeps,
) {
  const { current, shown, store, documents, trustedDocuments, usage, usageStore, schemas, isServing } = federation;
  return buildServiceApp({
    title: 'Rollcall federation',
    description: 'One graph out of the GraphQL of the services that are registered.',
    tags: [
      { name: 'graphql', description: 'The graph' },
      { name: 'schemas', description: 'What it is made of' },
      { name: 'documents', description: 'What clients may ask for' },
      { name: 'health', description: 'The service itself' },
    ],
    base: '/api',
    areKeyed: false,
    bodyLimit: BODY_LIMIT_BYTES,
    routes: [
      graphqlRoutes({
        graph: shown,
        readCaller,
        passed: federation.passed,
        usage,
        documents,
        events,
        deadlineMs: DEADLINE_MS,
        batchSize: config.batchSize,
      }),
      schemaRoutes(schemas),
      supergraphRoutes({ store, adopt: current.adopt }),
      usageRoutes(usageStore),
      documentRoutes({ store: trustedDocuments, maxTokens: config.limits.tokens }),
      explainRoutes(current.graph),
      healthRoute({ version, isConnected: database.connected, isServing, statuses: current.statuses }),
    ],
    service: NAME,
    version,
    log,
    metrics,
    readCaller,
    closingLimitMs: closingLimitMs(config),
    isStopping,
    acceptsUpgrade: isWebSocketUpgrade,
    tracing: tracing && { tracer: tracing.tracer, untraced: UNTRACED },
  });
}
