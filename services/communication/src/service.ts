import { fileURLToPath } from 'node:url';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import type { ProcessDefinition } from '@rollcall/platform/process/main.ts';
import { createRedis } from '@rollcall/platform/redis/client.ts';
import { type ServiceGround, type ServiceMade, serviceParts } from '@rollcall/platform/service/service.ts';
import { type CommunicationConfig, communicationConfig } from './config.ts';
import { createTemplates } from './domain/templates/catalogue.ts';
import { loadReadyTemplate, readyTemplates } from './ready-templates.ts';
import { templateRoutes } from './routes/templates.ts';
import { createTemplateTable } from './store/templates.ts';

const NAME = 'communication';
const MIGRATIONS = fileURLToPath(new URL('../migrations', import.meta.url));
const DATABASE_CONNECTIONS = 20;
/** Attachments are 10 MiB, in base64. */
const BODY_LIMIT_BYTES = 15 * 1024 * 1024;

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
      area: 'messages',
      build,
    }),
};

async function build({ config, pool, log }: ServiceGround<CommunicationConfig>): Promise<ServiceMade> {
  const { redisUrl: url } = config;
  const templateTable = createTemplateTable({ pool });
  const templates = createTemplates({
    store: templateTable,
    builtIn: await Promise.all(readyTemplates.map(loadReadyTemplate)),
  });
  const redis = url === undefined ? undefined : createRedis({ url, name: NAME, log });
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
    bodyLimit: BODY_LIMIT_BYTES,
    routes: [templateRoutes(templates)],
    actors: [
      { name: 'redis', start: async () => {}, stop: async () => redis?.disconnect() },
      createPruner({ name: 'templates', prune: (limit) => templateTable.prune(limit), log }),
    ],
    health: [{ name: 'store', isConnected: () => redis?.status === 'ready', isNeeded: false }],
  };
}
