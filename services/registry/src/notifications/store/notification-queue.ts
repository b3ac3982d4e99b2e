import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { ensureSchema } from '@rollcall/platform/postgres/migrate.ts';
import { isDatabaseUnavailable, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs, sleep } from '@rollcall/platform/retry.ts';
import { type JobWithMetadata, PgBoss } from 'pg-boss';
import { Counter, type Registry } from 'prom-client';
import { hasCode } from '../../common/errors.ts';
import type { Notification, NotificationAttempt } from '../domain/notifications.ts';
import type { NotificationRecords, StrandedNotification } from './notifications.ts';

const SCHEMA = 'registry_queue';
const QUEUE = 'notifications';
const DAY_SECONDS = 86_400;
const START_RETRY = { baseMs: 500, maxMs: 5000 };
const STOP_GRACE_MS = 12_000;
/**
 * Attempts to one host at a time. Of twelve in all: six hosts have to hang before others wait, and
 * then for the time of an attempt.
 */
const SENDERS_PER_HOST = 2;
/**
 * pg-boss wants no fewer senders in a group than may send to one host, and wakes the first of a
 * group only.
 */
const SENDER_GROUPS = 6;
const RELAY_INTERVAL_MS = 15_000;
const RELAY_BATCH = 200;
const PRUNE_INTERVAL_MS = 3_600_000;
/** Deleted within some milliseconds, so that what is new does not wait for it. */
const PRUNE_BATCH = 1000;
const KEPT = [
  { state: 'delivered', days: 7 },
  { state: 'dead', days: 90 },
] as const;

export interface NotificationRetries {
  /** After the first attempt. */
  readonly limit: number;
  /** Before the first retry; doubled, with jitter, before each further one. */
  readonly delaySeconds: number;
  readonly delayMaxSeconds: number;
}

export interface NotificationQueueOptions {
  readonly databaseUrl: string;
  /** Of the same database. */
  readonly pool: Pool;
  readonly retries: NotificationRetries;
  readonly notifications: Pick<NotificationRecords, 'find' | 'settle' | 'stranded' | 'prune'>;
  /** Makes one attempt. Called for several notifications at a time; it must end within 30 s. */
  readonly attempt: (notification: Notification) => Promise<NotificationAttempt>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Registry;
}

/**
 * Sends notifications, at least once each: what a replica dies with, another one sends. The
 * notifications in the database are the truth. Jobs of the queue say when to try which, and are
 * made for every pending notification that lacks one: after it was stored, and again and again, for
 * whoever stored it may have died.
 */
export interface NotificationQueue {
  /** There is something new to send. */
  wake(): void;
  /** Connects in the background, however long that lasts, and then works. */
  start(): void;
  stop(): Promise<void>;
}

interface QueuedJob {
  readonly delivery: string;
}

interface Running {
  readonly boss: PgBoss;
  /** By which each group of senders is woken. */
  readonly senders: readonly string[];
}

export function createNotificationQueue(options: NotificationQueueOptions): NotificationQueue {
  const { log } = options;
  const stopping = new AbortController();
  const attempts = attemptCounter(options.metrics);
  let running: Promise<void> | undefined;
  let awake = Promise.withResolvers<void>();

  async function connect(): Promise<Running | undefined> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const boss = newBoss(options);
      try {
        await ensureSchema(options.pool, SCHEMA);
        await boss.start();
        const senders = await startSenders(boss, options, attempts);
        log.info({}, 'notification queue ready');
        return { boss, senders };
      } catch (err) {
        log.warn({ err }, 'the notification queue could not be started');
        await boss.stop({ graceful: false }).catch(() => undefined);
      }
      await sleep(backoffMs(failures, START_RETRY), stopping.signal);
    }
    return undefined;
  }

  async function run(): Promise<void> {
    const queue = await connect();
    if (queue === undefined) return;
    const prune = createPruning(options);
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      try {
        await relay(queue, options);
      } catch (err) {
        log[isDatabaseAway(err) ? 'debug' : 'warn']({ err }, 'notifications could not be handed to the queue yet');
      }
      if (await prune()) continue;
      await Promise.race([awake.promise, sleep(RELAY_INTERVAL_MS, stopping.signal)]);
    }
    await queue.boss.stop({ timeout: STOP_GRACE_MS });
  }

  return {
    wake: () => awake.resolve(),
    start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/**
 * Makes jobs of the queue for what has none. Two replicas that do so at once make the same ones.
 */
async function relay(
  { boss, senders }: Running,
  { notifications, clock, log }: NotificationQueueOptions,
): Promise<void> {
  for (let more = true; more; ) {
    const stranded = await notifications.stranded({ schema: SCHEMA, name: QUEUE }, RELAY_BATCH);
    more = stranded.length === RELAY_BATCH;
    for (const { id, queueId } of stranded.filter(({ ended }) => ended)) {
      log.warn({ notification: id }, 'notification given up: its last attempt was cut short');
      const result = 'the last attempt was cut short';
      await notifications.settle({ id, queueId }, { state: 'dead', result, at: clock.now() });
    }
    const fresh = stranded.filter(({ ended }) => !ended);
    if (fresh.length === 0) continue;
    await boss.insert(QUEUE, fresh.map(jobOf));
    for (const sender of senders) boss.notifyWorker(sender);
  }
}

/**
 * Forgets what is old, some at a time, once an hour.
 *
 * @returns a function to be called again and again, which returns whether there is more to forget
 * at once.
 */
function createPruning({ notifications, clock, log }: NotificationQueueOptions): () => Promise<boolean> {
  let nextAt = 0;
  return async () => {
    const now = clock.monotonicMs();
    if (now < nextAt) return false;
    // Before it is tried: what cannot be done now is not to be tried at every turn.
    nextAt = now + PRUNE_INTERVAL_MS;
    try {
      for (const old of KEPT) {
        if ((await notifications.prune(old, PRUNE_BATCH)) < PRUNE_BATCH) continue;
        nextAt = now;
        return true;
      }
    } catch (err) {
      log[isDatabaseAway(err) ? 'debug' : 'warn']({ err }, 'old notifications could not be deleted');
    }
    return false;
  };
}

function isDatabaseAway(error: unknown): boolean {
  return isDatabaseUnavailable(error) || hasCode(error, 'DATABASE_UNAVAILABLE');
}

function jobOf({ id, queueId, lane }: StrandedNotification) {
  const data: QueuedJob = { delivery: id };
  return { id: queueId, data, group: { id: lane } };
}

function newBoss({ databaseUrl, log }: NotificationQueueOptions): PgBoss {
  const boss = new PgBoss({
    connectionString: databaseUrl,
    application_name: 'rollcall-registry-queue',
    schema: SCHEMA,
    createSchema: false,
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

/** @returns the ids by which the groups are woken. */
async function startSenders(boss: PgBoss, options: NotificationQueueOptions, attempts: Counter<'result'>) {
  const { retries } = options;
  const queueOptions = {
    retryLimit: retries.limit,
    retryDelay: retries.delaySeconds,
    retryDelayMax: retries.delayMaxSeconds,
    retryBackoff: true,
    expireInSeconds: 30,
    deleteAfterSeconds: DAY_SECONDS,
  };
  await boss.createQueue(QUEUE, queueOptions);
  // Another version of this program may have created it with other settings.
  await boss.updateQueue(QUEUE, { ...queueOptions, deadLetter: null });
  const senders: string[] = [];
  for (let started = 0; started < SENDER_GROUPS; started += 1) {
    const workOptions = {
      localConcurrency: SENDERS_PER_HOST,
      localGroupConcurrency: SENDERS_PER_HOST,
      pollingIntervalSeconds: 2,
      perJobResults: true,
      includeMetadata: true,
    } as const;
    const sender = await boss.work<QueuedJob, unknown, typeof workOptions>(QUEUE, workOptions, async (jobs) => {
      const results = await Promise.all(jobs.map((job) => send(job, options, attempts)));
      // There may be more: whoever is woken reads at once.
      const self = senders[started];
      if (self !== undefined) boss.notifyWorker(self);
      return results;
    });
    senders.push(sender);
  }
  return senders;
}

const statuses = { delivered: 'completed', failed: 'failed', refused: 'deadletter' } as const;

async function send(
  { id: queueId, data, retryCount }: JobWithMetadata<QueuedJob>,
  options: NotificationQueueOptions,
  attempts: Counter<'result'>,
) {
  const { notifications, retries, clock, log } = options;
  const notification = await notifications.find(data.delivery);
  // Delivered by a replica that died before it could update the queue, or replayed as another job.
  if (notification?.state !== 'pending' || notification.queueId !== queueId)
    return { id: queueId, status: statuses.delivered };
  const { result, reason } = await attemptOnce(options, notification);
  const last = result === 'refused' || (result === 'failed' && retryCount >= retries.limit);
  const state = result === 'delivered' ? 'delivered' : last ? 'dead' : 'pending';
  await notifications.settle({ id: notification.id, queueId }, { state, result: reason, at: clock.now() });
  attempts.inc({ result });
  const { channel, serviceName: service, event } = notification;
  const outcome = { notification: notification.id, channel, service, event, reason, attempt: retryCount + 1 };
  if (state === 'dead') log.warn(outcome, 'notification given up and kept as a dead letter');
  else if (state === 'pending') log.info(outcome, 'notification failed and will be sent again');
  return { id: queueId, status: statuses[result], output: { reason, attempt: retryCount + 1 } };
}

async function attemptOnce(
  { attempt, log }: NotificationQueueOptions,
  notification: Notification,
): Promise<NotificationAttempt> {
  try {
    return await attempt(notification);
  } catch (error) {
    log.debug(
      { notification: notification.id, message: errorMessage(error) },
      'the configuration of a channel could not be read',
    );
    return { result: 'failed', reason: 'the configuration could not be read' };
  }
}

function attemptCounter(metrics: Registry): Counter<'result'> {
  return new Counter({
    name: 'rollcall_notification_attempts_total',
    help: 'Attempts of this replica to send a notification.',
    labelNames: ['result'],
    registers: [metrics],
  });
}
