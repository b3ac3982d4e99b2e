import { eventContext, type RecordEvents } from '../events/events.ts';
import { createSubjectEvents } from '../events/subject-events.ts';
import { endpointContext } from '../events/webhooks/store.ts';
import { createCallerReader } from '../http/callers.ts';
import { createGatewayKeys, keysLoader } from '../http/gateway-keys.ts';
import type { Area } from '../http/operations/operation.ts';
import { createDatabase } from '../postgres/database.ts';
import { createIdempotency, type Idempotency } from '../postgres/idempotency.ts';
import { platformMigrations } from '../postgres/migrate.ts';
import { createPool, type Pool } from '../postgres/pool.ts';
import { createPruner } from '../postgres/pruner.ts';
import { createResealing, type SealedTable } from '../postgres/resealing.ts';
import { closingLimitMs, httpServer } from '../process/http-server.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { ProcessContext, ProcessParts } from '../process/main.ts';
import { type BlindIndex, createBlindIndex, createVault, readVaultKeys, type Vault } from '../vault.ts';
import { buildServiceApp, type ServiceApi } from './app.ts';
import { type HealthPart, healthRoutes } from './health.ts';
import { selfRegistration } from './self-registration.ts';
import type { ServiceConfig } from './settings.ts';

/** What is one service's own. */
export interface ServiceOptions<Config extends ServiceConfig> {
  /** Its registered name, and its schema in the database. */
  readonly name: string;
  /** Directory of the migrations of its own tables. */
  readonly migrations: string;
  readonly databaseConnections: number;
  /** `aud` of access tokens that are credentials here; undefined: none are. */
  readonly accessTokenAudience: string | undefined;
  readonly events: {
    /** Whose `:admin` sees the webhooks of all. */
    readonly area: Area;
    /** All that there are, such as `message.sent`. */
    readonly types: readonly string[];
  };
  /** Makes what the service is, on its ground. */
  readonly build: (ground: ServiceGround<Config>) => Promise<ServiceMade>;
}

/** What every service of subjects stands on. */
export interface ServiceGround<Config extends ServiceConfig> extends ProcessContext<Config> {
  /** Throws until the schema is up to date. */
  readonly pool: () => Pool;
  readonly vault: Vault;
  /** @param purpose see {@link createBlindIndex}. */
  readonly index: (purpose: string) => BlindIndex;
  readonly idempotency: Idempotency;
  readonly recordEvents: RecordEvents;
}

export interface ServiceMade extends ServiceApi {
  /** Where the vault's seals are, but for those of the platform. */
  readonly sealedTables: readonly SealedTable[];
  /** Started after the database and before the API. */
  readonly actors: readonly Actor[];
  /** In the health report, beside the database. */
  readonly health?: readonly HealthPart[];
}

/** Replicas of before an upgrade may go on sealing with an older key for a while. */
const RESEALING_MS = 600_000;
const RESEALING_RETRY_MS = 2000;
/** Kept answers have no part in it: they are forgotten after a day. */
const platformSealedTables: readonly SealedTable[] = [
  { table: 'events', sealed: { data: eventContext } },
  { table: 'webhook_endpoints', sealed: { settings: endpointContext } },
];

/** By monitoring, all the time. */
const UNTRACED = ['/api/v1/health'];
/** Paths hold addresses and tokens of links; spans have the route besides. */
const HIDDEN_PATH = '/*';

/**
 * What one replica of a service of subjects is made of (docs/decisions/0310): connections, database,
 * its own actors, its API, and its registration.
 *
 * @throws Error where the keys of the vault cannot be read.
 */
export async function serviceParts<Config extends ServiceConfig>(
  context: ProcessContext<Config>,
  options: ServiceOptions<Config>,
): Promise<ProcessParts> {
  const { config, version, clock, log, metrics, tracing, isStopping } = context;
  const { name, migrations, databaseConnections, accessTokenAudience, build } = options;
  const keys = await readVaultKeys(config.vaultKeysFile);
  const connections = createPool({ url: config.databaseUrl, schema: name, maxConnections: databaseConnections, log });
  const database = createDatabase({
    pool: connections,
    url: config.databaseUrl,
    schema: name,
    migrations: [platformMigrations, migrations],
    log,
  });
  const vault = createVault(keys);
  const index = (purpose: string) => createBlindIndex(keys, purpose);
  const idempotency = createIdempotency({ pool: database.pool, vault, index: index('request'), clock, log });
  const ground = { pool: database.pool, vault, index, idempotency };
  const events = createSubjectEvents({ ...context, ...ground, ...options.events, addresses: config.webhookAddresses });
  const made = await build({ ...context, ...ground, recordEvents: events.recordEvents });
  const { actors, sealedTables, health = [], ...api } = made;
  const parts = [{ name: 'database', isConnected: database.connected, isNeeded: true }, ...health];
  const { jwksUrl, issuer } = config.gateway;
  const gatewayKeys = createGatewayKeys(jwksUrl, clock);
  const app = await buildServiceApp({
    ...api,
    routes: [...api.routes, ...events.routes, healthRoutes({ service: name, version, parts })],
    service: name,
    version,
    log,
    metrics,
    readCaller: createCallerReader({ issuer, keys: gatewayKeys, clock, service: name, accessTokenAudience }),
    closingLimitMs: closingLimitMs(config),
    isStopping,
    tracing: tracing && { tracer: tracing.tracer, untraced: UNTRACED, shownPath: () => HIDDEN_PATH },
  });
  return {
    actors: [
      { name: 'connections', start: async () => {}, stop: () => connections.end() },
      database,
      createPruner({ name: 'idempotency', prune: (limit) => idempotency.prune(limit), log }),
      ...(keys.length > 1 ? [resealer()] : []),
      ...events.actors,
      ...actors,
      keysLoader(gatewayKeys),
      httpServer(app, { config, log, beforeClose: () => events.closeStreams() }),
      ...registrationOf(),
    ],
  };

  /** While there are older keys, so that they can be taken out of the file. */
  function resealer(): Actor {
    const tables = [...platformSealedTables, ...sealedTables];
    const prune = createResealing({ pool: database.pool, vault, tables, log });
    return createPruner({ name: 'seals', prune, log, intervalMs: RESEALING_MS, retryMs: RESEALING_RETRY_MS });
  }

  function registrationOf(): readonly Actor[] {
    if (config.registration === undefined) return [];
    const { registries, url } = config.registration;
    const capabilities = made.subgraph === undefined ? (['rest'] as const) : (['rest', 'graphql'] as const);
    return [selfRegistration({ registries, name, url, capabilities, version, healthParts: parts, log })];
  }
}
