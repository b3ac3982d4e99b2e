import type { Logger } from '@rollcall/platform/log.ts';
import { isDatabaseUnavailable } from '@rollcall/platform/postgres/pool.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { PgBoss } from 'pg-boss';
import type { DeliveryAttempt, Notification } from '../domain/delivery-ports.ts';
import { RegistryError } from '../domain/errors.ts';

const SCHEMA = 'registry_queue';
const QUEUE = 'notifications';
const DEAD_LETTERS = 'notifications-dead';
const DAY_SECONDS = 86_400;
const START_RETRY = { baseMs: 500, maxMs: 5000 };
const STOP_GRACE_MS = 12_000;

export interface NotificationRetries {
  /** After the first attempt. */
  readonly limit: number;
  /** Before the first retry; doubled, with jitter, before each further one. */
  readonly delaySeconds: number;
  readonly delayMaxSeconds: number;
}

export interface NotificationQueueOptions {
  readonly databaseUrl: string;
  readonly retries: NotificationRetries;
  readonly log: Logger;
  /** Makes one attempt. Called for several notifications at a time; it must end within 30 s. */
  readonly attempt: (id: string, notification: Notification) => Promise<DeliveryAttempt>;
}

/** Notifications in PostgreSQL, at least once each: what a replica dies with, another one sends. */
export interface NotificationQueue {
  /** @throws RegistryError DATABASE_UNAVAILABLE before the queue is ready; the database's errors. */
  readonly enqueue: (notification: Notification) => Promise<void>;
  /** Connects in the background, for as long as it takes, and then works. */
  start(): void;
  stop(): Promise<void>;
}

export function createNotificationQueue(options: NotificationQueueOptions): NotificationQueue {
  const stopping = new AbortController();
  let ready: { boss: PgBoss; workerId: string } | undefined;
  let starting: Promise<void> | undefined;

  async function run(): Promise<void> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const boss = newBoss(options);
      try {
        await boss.start();
        ready = { boss, workerId: await work(boss, options) };
        options.log.info({}, 'notification queue ready');
        return;
      } catch (err) {
        options.log.warn({ err }, 'the notification queue could not be started');
        await boss.stop({ graceful: false }).catch(() => undefined);
      }
      await sleep(backoffMs(failures, START_RETRY), stopping.signal);
    }
  }

  return {
    async enqueue(notification) {
      if (ready === undefined) throw new RegistryError('DATABASE_UNAVAILABLE');
      const id = await ready.boss.send(QUEUE, notification);
      if (id === null) throw new Error('The queue did not take the notification');
      ready.boss.notifyWorker(ready.workerId);
    },
    start() {
      starting ??= run();
    },
    async stop() {
      stopping.abort();
      await starting;
      await ready?.boss.stop({ timeout: STOP_GRACE_MS });
    },
  };
}

function newBoss({ databaseUrl, log }: NotificationQueueOptions): PgBoss {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    application_name: 'rollcall-registry-queue',
    schema: SCHEMA,
    max: 3,
    connectionTimeoutMillis: 3000,
    options: '-c statement_timeout=10000',
    schedule: false,
    superviseIntervalSeconds: 30,
    monitorIntervalSeconds: 30,
  });
  boss.on('error', (thrown) => {
    // Workers report plain objects with the fields of an error.
    const err = thrown instanceof Error ? thrown : Object.assign(new Error('failed'), thrown);
    log[isDatabaseUnavailable(err) ? 'debug' : 'warn']({ err }, 'the notification queue failed');
  });
  boss.on('warning', ({ message, data }) => log.warn({ warning: message, data }, 'the notification queue warns'));
  return boss;
}

/** @returns the id by which a worker is woken. */
async function work(boss: PgBoss, { retries, log, attempt }: NotificationQueueOptions): Promise<string> {
  await boss.createQueue(DEAD_LETTERS, { retentionSeconds: 90 * DAY_SECONDS });
  const queueOptions = {
    retryLimit: retries.limit,
    retryDelay: retries.delaySeconds,
    retryDelayMax: retries.delayMaxSeconds,
    retryBackoff: true,
    expireInSeconds: 30,
    deleteAfterSeconds: DAY_SECONDS,
    deadLetter: DEAD_LETTERS,
  };
  await boss.createQueue(QUEUE, queueOptions);
  // Another version of this program may have created it with other settings.
  await boss.updateQueue(QUEUE, queueOptions);
  const workOptions = {
    localConcurrency: 4,
    pollingIntervalSeconds: 2,
    perJobResults: true,
    includeMetadata: true,
  } as const;
  return boss.work<Notification, unknown, typeof workOptions>(QUEUE, workOptions, (jobs) =>
    Promise.all(
      jobs.map(async ({ id, data, retryCount }) => {
        const { result, reason } = await attempt(id, data);
        const last = result === 'refused' || (result === 'failed' && retryCount >= retries.limit);
        const outcome = { id, channel: data.channel, service: data.serviceName, reason, attempt: retryCount + 1 };
        if (last) log.warn(outcome, 'notification given up and kept as a dead letter');
        else if (result === 'failed') log.info(outcome, 'notification failed and will be sent again');
        return { id, status: statuses[result], output: { reason, attempt: retryCount + 1 } };
      }),
    ),
  );
}

const statuses = { delivered: 'completed', failed: 'failed', refused: 'deadletter' } as const;
