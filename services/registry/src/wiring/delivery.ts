import { fileURLToPath } from 'node:url';
import { deliveryJobKind, deliveryPolicyKind, webhookConfigKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryPolicy, WebhookConfig } from '@rollcall/crds/types.gen.ts';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer, type Informer } from '@rollcall/platform/kube/informer.ts';
import { createDatabase } from '@rollcall/platform/postgres/database.ts';
import type { OutboxRetries } from '@rollcall/platform/postgres/outbox.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { createCallLedger } from '@rollcall/platform/webhooks/call-ledger.ts';
import { createPost } from '@rollcall/platform/webhooks/post.ts';
import type { Registry } from 'prom-client';
import { createLookupLimiter } from '../common/overload.ts';
import type { RegistryConfig } from '../config.ts';
import { createFeed } from '../feeds/feed.ts';
import { createLimitedStreams } from '../http/event-streams.ts';
import { isFinished, type Job } from '../jobs/domain/jobs.ts';
import { jobRequestRoutes } from '../jobs/routes/job-requests.ts';
import { jobRecord } from '../jobs/routes/job-schemas.ts';
import { jobRoutes, jobWatchRoute } from '../jobs/routes/jobs.ts';
import { createAutomaticDeployments } from '../jobs/store/automatic-deployments.ts';
import { createDeliveryJobs, createJobDirectory, toJob } from '../jobs/store/delivery-jobs.ts';
import { createDeliveryPolicies } from '../jobs/store/delivery-policies.ts';
import { createRecorder } from '../jobs/workers/recorder.ts';
import { eachObject, followInformer } from '../kube/feed-source.ts';
import { sendNotification } from '../notifications/domain/sending.ts';
import { notificationRoutes } from '../notifications/routes/notifications.ts';
import { createChannelDirectory } from '../notifications/store/channel-directory.ts';
import { createNotificationRecords } from '../notifications/store/notifications.ts';
import { createNotificationOutbox, notificationRetries } from '../notifications/workers/sender.ts';
import { historyRoutes } from '../releases/routes/history.ts';
import { releaseRoutes } from '../releases/routes/releases.ts';
import { createHistoryStore } from '../releases/store/history.ts';
import { createReleaseStore } from '../releases/store/releases.ts';
import { webhookConfigRoutes } from '../webhooks/routes/webhook-configs.ts';
import { createWebhookConfigs } from '../webhooks/store/webhook-configs.ts';
import type { Routes } from './app.ts';

/** The PostgreSQL schema of history and releases: the search path of the pool that is handed in. */
const databaseSchema = 'registry';

const RESYNC_MS = 60_000;
const FEED_CAPACITY = 10_000;

type DeliveryConfig = Pick<
  RegistryConfig,
  'databaseUrl' | 'webhookSecrets' | 'webhookRules' | 'webhookAddresses' | 'jobRetentionMs'
>;

export interface DeliveryDeps extends DeliveryConfig {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /** With the schema `registry` as its search path. */
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
  /** Undefined: not registered; empty: registered without a version. */
  readonly currentVersion: (serviceName: string) => string | undefined;
  readonly notificationRetries?: OutboxRetries;
}

/** What a registry needs of its delivery-facing half. */
export interface Delivery {
  readonly routes: Routes[];
  readonly actors: Actor[];
  /** Whether PostgreSQL answered when it was last asked, a few seconds ago at most. */
  readonly databaseConnected: () => boolean;
  /** Ends the open event streams, so that the HTTP server can close. */
  closeStreams(): void;
}

/**
 * Updates, deliveries, webhooks and notifications. Nothing fails when PostgreSQL or the API server
 * does not answer at the start: what needs them answers 503 until they are back.
 */
export async function createDelivery(deps: DeliveryDeps): Promise<Delivery> {
  const { connection, namespace, clock, log, metrics, currentVersion } = deps;
  const database = createDatabase({
    pool: deps.pool,
    url: deps.databaseUrl,
    schema: databaseSchema,
    migrations: [fileURLToPath(new URL('../../migrations', import.meta.url))],
    log,
  });
  const store = createStores(deps, database.pool, () => outbox.wake());
  const { informers, configs, channels, policies, jobs, directory } = store;
  const { history, releases, calls, automatic, notifications } = store;
  const post = createPost(deps.webhookAddresses);
  const outbox = createNotificationOutbox({
    databaseUrl: deps.databaseUrl,
    pool: deps.pool,
    retries: deps.notificationRetries ?? notificationRetries,
    notifications,
    attempt: (notification) => sendNotification({ configs, post, clock }, notification),
    clock,
    log,
    metrics,
  });
  // The policy may be another one by now than it was for a job that has finished.
  const describe = (job: Job) => jobRecord(job, isFinished(job) ? undefined : policies.find(job.serviceName)?.strategy);
  const feed = createFeed<Job>({
    capacity: FEED_CAPACITY,
    keyOf: ({ id }) => id,
    show: (job) => JSON.stringify(describe(job)),
  });
  const source = followInformer({
    connection,
    namespace,
    kind: deliveryJobKind,
    informer: informers.jobs,
    feed,
    items: eachObject(toJob),
  });
  const watchers = createLimitedStreams();
  const jobStreams = createLimitedStreams();
  const admission = { configs, calls, rules: deps.webhookRules, clock };
  const misses = createLookupLimiter();
  const recorder = createRecorder({
    informer: informers.jobs,
    jobs,
    history,
    channels,
    notifications,
    describe,
    retentionMs: deps.jobRetentionMs,
    clock,
    log,
    metrics,
  });
  return {
    routes: [
      (app) => historyRoutes(app, { history }),
      (app) => releaseRoutes(app, { ...admission, releases, history, policies, automatic, jobs, currentVersion }),
      (app) => jobRequestRoutes(app, { ...admission, jobs, releases }),
      (app) => webhookConfigRoutes(app, admission),
      (app) => notificationRoutes(app, { ...admission, notifications }),
      (app) => jobWatchRoute(app, { directory, describe, feed, source, streams: watchers }),
      (app) => jobRoutes(app, { ...admission, directory, jobs, history, misses, describe, feed, jobStreams }),
    ],
    actors: [database, outbox, recorder, informersActor(Object.values(informers))],
    databaseConnected: database.connected,
    closeStreams() {
      jobStreams.closeAll();
      watchers.closeAll();
    },
  };
}

/** All that is stored, in the API server and in PostgreSQL. */
function createStores(
  { connection, namespace, webhookSecrets, clock, log }: DeliveryDeps,
  pool: () => Pool,
  onNewNotification: () => void,
) {
  const options = { connection, namespace, clock, log };
  const informers = {
    jobs: createInformer({ ...options, kind: deliveryJobKind, resyncMs: RESYNC_MS }),
    policies: createInformer({ ...options, kind: deliveryPolicyKind }),
    webhookConfigs: createInformer({ ...options, kind: webhookConfigKind }),
  };
  const configs = createWebhookConfigs({
    ...options,
    secretName: webhookSecrets,
    onWrite: (config) => informers.webhookConfigs.recordWrite(config),
  });
  return {
    informers,
    configs,
    channels: createChannelDirectory({ informer: informers.webhookConfigs, namespace, configs }),
    policies: createDeliveryPolicies({ connection, namespace, informer: informers.policies }),
    jobs: createDeliveryJobs({ connection, namespace, onWrite: (object) => informers.jobs.recordWrite(object) }),
    directory: createJobDirectory(informers.jobs, namespace),
    history: createHistoryStore(pool),
    releases: createReleaseStore(pool),
    calls: createCallLedger(pool),
    automatic: createAutomaticDeployments(pool),
    notifications: createNotificationRecords(pool, onNewNotification),
  };
}

/** Started last, when everybody listens; it does not wait for the API server. */
function informersActor(
  informers: readonly Pick<Informer<DeliveryJob | DeliveryPolicy | WebhookConfig>, 'start' | 'stop'>[],
): Actor {
  return {
    name: 'informers of deliveries',
    start() {
      for (const informer of informers) informer.start();
      return Promise.resolve();
    },
    stop: async () => void (await Promise.all(informers.map((informer) => informer.stop()))),
  };
}
