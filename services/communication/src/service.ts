import { fileURLToPath } from 'node:url';
import { MAIL_BODY_BYTES } from '@rollcall/platform/http/operations/communication.ts';
import { createLimiterStore } from '@rollcall/platform/limits/limiter-store.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import type { ProcessDefinition } from '@rollcall/platform/process/main.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import { type ServiceGround, type ServiceMade, serviceParts } from '@rollcall/platform/service/service.ts';
import { type CommunicationConfig, communicationConfig } from './config.ts';
import { possibleTargets } from './domain/devices.ts';
import { messageStates } from './domain/states.ts';
import { createTemplates } from './domain/templates/catalogue.ts';
import { createUnreachable } from './domain/unreachable.ts';
import { createUnsubscribeLinks } from './domain/unsubscribe.ts';
import { createMessaging } from './messaging.ts';
import { loadReadyTemplate, readyTemplates } from './ready-templates.ts';
import { createCallLimits } from './routes/call-limits.ts';
import { deviceRoutes } from './routes/devices.ts';
import { suppressionRoutes } from './routes/suppressions.ts';
import { templateRoutes } from './routes/templates.ts';
import { unsubscribePages } from './routes/unsubscribe.ts';
import { createDeviceTable } from './store/devices.ts';
import { sealedTables } from './store/sealed-tables.ts';
import { createSuppressionTable } from './store/suppressions.ts';
import { createTemplateTable } from './store/templates.ts';

const NAME = 'communication';
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const DATABASE_CONNECTIONS = 20;
/** A request waits no longer for its count. */
const REDIS_TIMEOUT_MS = 250;

/** One replica of the communication service. */
export const communicationProcess: ProcessDefinition<CommunicationConfig> = {
  name: NAME,
  manifest: new URL('../package.json', import.meta.url),
  config: communicationConfig,
  isTraced: true,
  parts: (context) =>
    serviceParts(context, {
      name: NAME,
      migrations: MIGRATIONS,
      databaseConnections: DATABASE_CONNECTIONS,
      accessTokenAudience: undefined,
      events: { area: 'messages', types: messageStates.map((state) => `message.${state}`) },
      build,
    }),
};

async function build(ground: ServiceGround<CommunicationConfig>): Promise<ServiceMade> {
  const { config, pool, vault, index, clock, metrics, log } = ground;
  const { redisUrl: url, redisPrefix } = config;
  const templateTable = createTemplateTable({ pool });
  const suppressions = createSuppressionTable({ pool, vault, index: index('recipient') });
  const devices = createDeviceTable({ pool, vault, index: index('device'), users: index('device user') });
  const links = createUnsubscribeLinks(vault, config.publicUrl);
  const templates = createTemplates({
    store: templateTable,
    builtIn: await Promise.all(readyTemplates.map(loadReadyTemplate)),
  });
  const redis = url === undefined ? undefined : createRedis({ url, name: NAME, waitMs: REDIS_TIMEOUT_MS, log });
  const limiter = createLimiterStore({
    redis,
    redisPrefix,
    redisTimeoutMs: REDIS_TIMEOUT_MS,
    metricsPrefix: 'rollcall_communication',
    metrics,
    log,
    clock,
  });
  const countCall = createCallLimits(limiter);
  const messaging = await createMessaging(ground, {
    findTemplate: (subject, name) => templates.find({ subject, name }),
    suppressions: createUnreachable({ suppressions, devices, clock }),
    deviceOf: (subject, token) => devices.find(subject, possibleTargets(token)),
    unsubscribeUrl: ({ id, subject }, recipient) => links.urlOf({ subject, recipient, messageId: id }),
    countCall,
  });
  return {
    title: 'Rollcall communication',
    description: 'Mail, SMS and push messages, and what became of them.',
    tags: [
      { name: 'messages', description: 'Sending, and what became of it' },
      { name: 'templates', description: 'What messages say' },
      { name: 'recipients', description: 'Devices, and who gets nothing' },
      { name: 'providers', description: 'By whom messages go' },
      { name: 'webhooks', description: 'Telling of messages' },
      { name: 'health', description: 'The service itself' },
    ],
    bodyLimit: MAIL_BODY_BYTES,
    sealedTables: sealedTables({
      recipients: index('recipient'),
      devices: index('device'),
      users: index('device user'),
    }),
    subgraph: messaging.subgraph,
    routes: [
      ...messaging.routes,
      templateRoutes({ templates, countCall, exampleUrl: links.exampleUrl }),
      suppressionRoutes(suppressions),
      deviceRoutes(devices),
    ],
    pages: [unsubscribePages({ links, suppressions })],
    actors: [
      { name: 'redis', start: async () => {}, stop: async () => redis?.disconnect() },
      { name: 'limits', start: () => limiter.start(), stop: () => limiter.stop() },
      ...messaging.actors,
      createPruner({ name: 'templates', prune: (limit) => templateTable.prune(limit), log }),
      createPruner({ name: 'devices', prune: (limit) => devices.prune(limit), log }),
    ],
    health: [{ name: 'store', isConnected: () => redis?.status === 'ready', isNeeded: false }],
  };
}
