import { fileURLToPath } from 'node:url';
import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import type { Actor } from '@rollcall/platform/lifecycle.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Registry } from 'prom-client';
import type { Routes } from './app.ts';
import { sendNotification } from './domain/notifications.ts';
import { updateRoutes } from './routes/updates.ts';
import { webhookRoutes } from './routes/webhooks.ts';
import { createDeliveryJobs } from './store/delivery-jobs.ts';
import { createHistoryStore } from './store/history.ts';
import { createNotificationQueue, type NotificationRetries } from './store/notification-queue.ts';
import { createReleaseStore } from './store/releases.ts';
import { createWebhookConfigs } from './store/webhook-configs.ts';
import { createDatabase } from './workers/database.ts';
import { createPost, notificationWorker, type WebhookAddresses } from './workers/notifications.ts';
import { createRecorder } from './workers/recorder.ts';

/** The PostgreSQL schema of history and releases: the search path of the pool that is handed in. */
const databaseSchema = 'registry';

const RESYNC_MS = 60_000;
/** Thirteen attempts within two to three hours. */
const RETRIES: NotificationRetries = { limit: 12, delaySeconds: 5, delayMaxSeconds: 1800 };

export interface DeliveryDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** With the schema `registry` as its search path. */
  readonly pool: Pool;
  /** Of the same database, for the queue's own connections. */
  readonly databaseUrl: string;
  /** Where notifications may go. */
  readonly webhookAddresses: WebhookAddresses;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
  /** Undefined: not registered; empty: registered without having told its version. */
  readonly currentVersion: (serviceName: string) => string | undefined;
  readonly notificationRetries?: NotificationRetries;
}

/** What a registry needs of its delivery-facing half. */
export interface Delivery {
  readonly routes: Routes[];
  readonly actors: Actor[];
  /** Whether PostgreSQL answered when it was last asked, a few seconds ago at most. */
  readonly databaseConnected: () => boolean;
}

/**
 * Updates, deliveries, webhooks and notifications. Nothing fails when PostgreSQL or the API server is away at the start: what
 * needs them answers 503 until they are back.
 */
export async function createDelivery(deps: DeliveryDeps): Promise<Delivery> {
  const { connection, namespace, clock, log, metrics, currentVersion } = deps;
  const database = createDatabase({
    pool: deps.pool,
    schema: databaseSchema,
    migrations: fileURLToPath(new URL('../migrations', import.meta.url)),
    log,
  });
  const history = createHistoryStore(database.pool);
  const releases = createReleaseStore(database.pool);
  const jobs = createDeliveryJobs(connection, namespace);
  const configs = createWebhookConfigs({ connection, namespace, clock });
  const post = createPost(deps.webhookAddresses);
  const queue = createNotificationQueue({
    databaseUrl: deps.databaseUrl,
    retries: deps.notificationRetries ?? RETRIES,
    log,
    attempt: (id, notification) => sendNotification({ configs, post, clock }, id, notification),
  });
  const informer = createInformer({ connection, kind: deliveryJobKind, namespace, clock, log, resyncMs: RESYNC_MS });
  const recorder = createRecorder({ informer, jobs, history, clock, log, metrics });
  const webhooks = { configs, releases, history, jobs, clock, currentVersion, enqueue: queue.enqueue };
  return {
    routes: [(app) => updateRoutes(app, { history }), (app) => webhookRoutes(app, webhooks)],
    actors: [database, notificationWorker(queue), recorder],
    databaseConnected: database.connected,
  };
}
