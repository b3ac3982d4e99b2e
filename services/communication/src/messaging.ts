import { type AddressRule, addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { createDueWork } from '@rollcall/platform/postgres/due-work.ts';
import { createPruner } from '@rollcall/platform/postgres/pruner.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { ServiceGround, ServiceMade } from '@rollcall/platform/service/service.ts';
import { createRefusedNotifications } from '@rollcall/platform/webhooks/refused-notifications.ts';
import type { CommunicationConfig } from './config.ts';
import type { AcceptanceDeps } from './domain/acceptance.ts';
import type { DeliveryDeps } from './domain/delivery.ts';
import { defaultRetryPolicy } from './domain/dispatch.ts';
import type { QuotaStore } from './domain/quotas.ts';
import { applyReport } from './domain/reports.ts';
import { messageSubgraph } from './graphql/resolvers.ts';
import { createDeliveryMetrics } from './message-metrics.ts';
import { createOutlets, type Outlets } from './providers/outlets.ts';
import { readProviders } from './providers/providers-file.ts';
import { measureQuotas } from './quota-metrics.ts';
import { messageRoutes } from './routes/messages.ts';
import { notificationRoutes } from './routes/notifications.ts';
import { sendingRoutes } from './routes/sending.ts';
import { createMessageTable } from './store/messages.ts';
import { createProviderUses } from './store/provider-uses.ts';
import { createReportedMessages } from './store/reported-messages.ts';
import { createReportTable } from './store/reports.ts';
import { createRetention } from './store/retention.ts';
import { createSendingTable } from './store/sending.ts';
import type { SubmissionDeps } from './submission.ts';
import { createSenders } from './workers/sender.ts';

const CONNECT_TIMEOUT_MS = 3000;
const REPORTS_AT_A_TIME = 10;

/** What messages need of templates, recipients and limits. */
export interface MessagingDeps extends Pick<AcceptanceDeps, 'findTemplate' | 'suppressions' | 'deviceOf'> {
  readonly unsubscribeUrl: DeliveryDeps['unsubscribeUrl'];
  readonly countCall: SubmissionDeps['countCall'];
}

/** What accepts messages and sends them. */
export interface Messaging {
  readonly routes: readonly Routes[];
  readonly actors: readonly Actor[];
  readonly subgraph: NonNullable<ServiceMade['subgraph']>;
}

/** @throws Error naming every fault of the file of providers. */
export async function createMessaging(
  ground: ServiceGround<CommunicationConfig>,
  deps: MessagingDeps,
): Promise<Messaging> {
  const { config, pool, vault, index, recordEvents, idempotency, clock, log, metrics } = ground;
  const uses = createProviderUses(pool);
  const outlets = await outletsOf(ground, uses);
  const recipients = index('recipient');
  const store = createMessageTable({ pool, vault, recipients, recordEvents });
  const sending = createSendingTable({ pool, vault, recordEvents, clock });
  const { onAttempt } = createDeliveryMetrics({ metrics, pool });
  measureQuotas(metrics, uses, outlets.quotas);
  const senders = createSenders({
    store: sending,
    routeOf: (channel, envelope) => outlets.routeOf(channel, envelope),
    find: (name) => outlets.find(name),
    suppressions: deps.suppressions,
    unsubscribeUrl: deps.unsubscribeUrl,
    onAttempt,
    policy: { ...defaultRetryPolicy, baseMs: config.retryBaseMs },
    clock,
    random: Math.random,
    log,
  });
  const wake = (channel: Parameters<typeof senders.get>[0]) => senders.get(channel)?.wake();
  const sendingDeps = {
    ...deps,
    store,
    ways: outlets.ways,
    clock,
    wake,
    idempotency,
  };
  const reporting = createReporting(ground, deps, outlets);
  return {
    subgraph: await messageSubgraph(sendingDeps),
    routes: [
      sendingRoutes(sendingDeps),
      messageRoutes({ store, wake, ways: outlets.ways, clock, idempotency, health: () => outlets.health() }),
      ...reporting.routes,
    ],
    actors: [
      { name: 'providers', start: async () => {}, stop: () => outlets.close() },
      ...senders.values(),
      ...reporting.actors,
      ...prunersOf(ground),
    ],
  };
}

/** Providers are called where the settings allow it alone. */
async function outletsOf({ config, clock }: ServiceGround<CommunicationConfig>, quotas: QuotaStore): Promise<Outlets> {
  const { providersFile, providerAddresses: addresses } = config;
  const mayConnect: AddressRule = addressRules[addresses];
  const dispatcher = createGuardedAgent({ mayConnect, connectTimeoutMs: CONNECT_TIMEOUT_MS, keepAlive: false });
  const outlets = await createOutlets(await readProviders(providersFile, { addresses }), {
    dispatcher,
    mayConnect,
    clock,
    notificationsUrl: notificationsUrlOf(config),
    quotas,
  });
  return {
    ...outlets,
    async close() {
      await Promise.all([outlets.close(), dispatcher.close()]);
    },
  };
}

/** What takes the reports of providers, and works on them. */
function createReporting(
  { config, pool, vault, index, recordEvents, clock, metrics, log }: ServiceGround<CommunicationConfig>,
  { suppressions }: Pick<MessagingDeps, 'suppressions'>,
  outlets: Outlets,
): Pick<Messaging, 'routes' | 'actors'> {
  const store = createReportTable({ pool, vault });
  const messages = createReportedMessages({ pool, vault, recipients: index('recipient'), recordEvents });
  const onRefused = createRefusedNotifications({ metrics, log, clock });
  const work = createDueWork({
    name: 'reports',
    take: (limit) => store.take(limit),
    work: (due) => applyReport({ store, messages, suppressions, onRefused, clock }, due),
    concurrency: REPORTS_AT_A_TIME,
    log,
  });
  const routes = notificationRoutes({
    store,
    read: async (name, notification) => outlets.find(name)?.readNotification(notification),
    notificationsUrl: notificationsUrlOf(config),
    onRefused,
    wake: () => work.wake(),
  });
  const sessions = {
    name: 'provider-sessions',
    start: async () =>
      outlets.onReports(async (provider, reports) => {
        if ((await store.receive(provider, Buffer.from(JSON.stringify(reports)), reports)) > 0) work.wake();
      }),
    stop: async () => {},
  };
  return { routes: [routes], actors: [work, sessions] };
}

/** Through the gateway, where providers know it. */
function notificationsUrlOf({ publicUrl }: CommunicationConfig): (provider: string) => string {
  return (provider) => `${publicUrl}/api/v1/communication/notifications/${provider}`;
}

function prunersOf({ config, pool, log }: ServiceGround<CommunicationConfig>): readonly Actor[] {
  const retention = createRetention({ pool, ...config });
  return Object.entries(retention).map(([name, prune]) => createPruner({ name, prune, log }));
}
