import { type JobWithMetadata, PgBoss } from 'pg-boss';
import type { Clock } from '../clock.ts';
import type { Actor } from '../process/lifecycle.ts';
import type { Logger } from '../process/log.ts';
import type { OutboxAttempt, OutboxState } from '../queues/outbox-states.ts';
import { backoffMs, sleep } from '../retry.ts';
import { ensureSchema } from './migrate.ts';
import type { OutboxMessage, OutboxTable, StrandedMessage } from './outbox-table.ts';
import { isDatabaseUnavailable, type Pool } from './pool.ts';
import { createPruner } from './pruner.ts';

const DAY_SECONDS = 86_400;
const START_RETRY = { baseMs: 500, maxMs: 5000 };
const STOP_GRACE_MS = 12_000;
/**
 * Attempts in one lane at a time. Of twelve in all: six lanes have to hang before others wait, and
 * then for the time of an attempt.
 */
const SENDERS_PER_LANE = 2;
/**
 * pg-boss wants no fewer senders in a group than may send in one lane, and wakes the first of a
 * group only.
 */
const SENDER_GROUPS = 6;
const RELAY_BATCH = 200;
const KEPT = [
  { state: 'delivered', days: 7 },
  { state: 'dead', days: 90 },
] as const;

export interface OutboxRetries {
  /** After the first attempt. */
  readonly limit: number;
  /** Before the first retry; doubled, with jitter, before each further one. */
  readonly delaySeconds: number;
  readonly delayMaxSeconds: number;
  /** How often messages without a job of the queue are searched. */
  readonly relaySeconds: number;
}

/** An attempt as it was written down. */
interface OutboxOutcome extends OutboxAttempt {
  /** Of the message now. */
  readonly state: OutboxState;
  /** Which attempt it was, from 1. */
  readonly attempt: number;
}

export interface OutboxOptions<Message extends OutboxMessage> {
  /** In the plural, for the log and as the name of the queue. */
  readonly name: string;
  readonly databaseUrl: string;
  /** Of the same database. */
  readonly pool: Pool;
  /** Of the queue; pg-boss has it for itself. */
  readonly schema: string;
  readonly messages: OutboxTable<Message>;
  readonly retries: OutboxRetries;
  /** Makes one attempt, and never throws. Called for several at a time; it must end within 30 s. */
  readonly attempt: (message: Message) => Promise<OutboxAttempt>;
  /** Called after each attempt, for logs and metrics. */
  readonly onOutcome: (message: Message, outcome: OutboxOutcome) => void;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Sends messages, at least once each: what a replica dies with, another one sends. The messages in
 * the database are the truth. Jobs of the queue say when to try which, and are made for every
 * pending message that lacks one: after it was stored, and again and again, for whoever stored it
 * may have died. Starting it connects in the background, however long that lasts.
 */
export interface Outbox extends Actor {
  /** There is something new to send. */
  wake(): void;
}

/** `delivery` is the id of a message; another word would lose what is queued in an upgrade. */
interface QueuedJob {
  readonly delivery: string;
}

interface Running {
  readonly boss: PgBoss;
  /** By which each group of senders is woken. */
  readonly senders: readonly string[];
}

export function createOutbox<Message extends OutboxMessage>(options: OutboxOptions<Message>): Outbox {
  const { name, log } = options;
  const stopping = new AbortController();
  const pruners = prunersOf(options);
  let running: Promise<void> | undefined;
  let awake = Promise.withResolvers<void>();

  async function connect(): Promise<Running | undefined> {
    for (let failures = 0; !stopping.signal.aborted; failures += 1) {
      const boss = newBoss(options);
      try {
        await ensureSchema(options.pool, options.schema);
        await boss.start();
        const senders = await startSenders(boss, options);
        log.info({ outbox: name }, 'outbox ready');
        return { boss, senders };
      } catch (err) {
        log.warn({ err, outbox: name }, 'the outbox could not be started');
        await boss.stop({ graceful: false }).catch(() => undefined);
      }
      await sleep(backoffMs(failures, START_RETRY), stopping.signal);
    }
    return undefined;
  }

  async function run(): Promise<void> {
    const queue = await connect();
    if (queue === undefined) return;
    await Promise.all(pruners.map((pruner) => pruner.start()));
    while (!stopping.signal.aborted) {
      awake = Promise.withResolvers();
      try {
        await relay(queue, options);
      } catch (err) {
        log[levelOf(err)]({ err, outbox: name }, 'messages could not be handed to the queue yet');
      }
      await Promise.race([awake.promise, sleep(options.retries.relaySeconds * 1000, stopping.signal)]);
    }
    await Promise.all([queue.boss.stop({ timeout: STOP_GRACE_MS }), ...pruners.map((pruner) => pruner.stop())]);
  }

  return {
    name,
    wake: () => awake.resolve(),
    async start() {
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
async function relay<Message extends OutboxMessage>(
  { boss, senders }: Running,
  { name, schema, messages, clock, log }: OutboxOptions<Message>,
): Promise<void> {
  for (let more = true; more; ) {
    const stranded = await messages.stranded({ schema, name }, RELAY_BATCH);
    more = stranded.length === RELAY_BATCH;
    for (const { id, queueId } of stranded.filter(({ ended }) => ended)) {
      log.warn({ outbox: name, message: id }, 'message given up: its last attempt was cut short');
      const result = 'the last attempt was cut short';
      await messages.settle({ id, queueId }, { state: 'dead', result, at: clock.now() });
    }
    const fresh = stranded.filter(({ ended }) => !ended);
    if (fresh.length === 0) continue;
    await boss.insert(name, fresh.map(jobOf));
    for (const sender of senders) boss.notifyWorker(sender);
  }
}

/** Each kind of what is over has its own age. */
function prunersOf<Message extends OutboxMessage>({ name, messages, log }: OutboxOptions<Message>): readonly Actor[] {
  return KEPT.map((old) =>
    createPruner({ name: `${name}-${old.state}`, prune: (limit) => messages.prune(old, limit), log }),
  );
}

/** A database that does not answer is logged where it is noticed. */
function levelOf(error: unknown): 'debug' | 'warn' {
  return isDatabaseUnavailable(error) ? 'debug' : 'warn';
}

function jobOf({ id, queueId, lane }: StrandedMessage) {
  const data: QueuedJob = { delivery: id };
  return { id: queueId, data, group: { id: lane } };
}

function newBoss<Message extends OutboxMessage>(options: OutboxOptions<Message>): PgBoss {
  const { name, databaseUrl, schema, log } = options;
  const boss = new PgBoss({
    connectionString: databaseUrl,
    application_name: `rollcall-outbox-${name}`,
    schema,
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
    log[levelOf(err)]({ err, outbox: name }, 'the queue of the outbox failed');
  });
  boss.on('warning', ({ message, data }) => log.warn({ warning: message, data, outbox: name }, 'the queue warns'));
  return boss;
}

/** @returns the ids by which the groups are woken. */
async function startSenders<Message extends OutboxMessage>(boss: PgBoss, options: OutboxOptions<Message>) {
  const { name, retries } = options;
  const queueOptions = {
    retryLimit: retries.limit,
    retryDelay: retries.delaySeconds,
    retryDelayMax: retries.delayMaxSeconds,
    retryBackoff: true,
    expireInSeconds: 30,
    deleteAfterSeconds: DAY_SECONDS,
  };
  await boss.createQueue(name, queueOptions);
  // Another version of this program may have created it with other settings.
  await boss.updateQueue(name, { ...queueOptions, deadLetter: null });
  const senders: string[] = [];
  for (let started = 0; started < SENDER_GROUPS; started += 1) {
    const workOptions = {
      localConcurrency: SENDERS_PER_LANE,
      localGroupConcurrency: SENDERS_PER_LANE,
      pollingIntervalSeconds: 2,
      perJobResults: true,
      includeMetadata: true,
    } as const;
    const sender = await boss.work<QueuedJob, unknown, typeof workOptions>(name, workOptions, async (jobs) => {
      const results = await Promise.all(jobs.map((job) => send(job, options)));
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

async function send<Message extends OutboxMessage>(
  { id: queueId, data, retryCount }: JobWithMetadata<QueuedJob>,
  options: OutboxOptions<Message>,
) {
  const { messages, retries, clock } = options;
  const message = await messages.find(data.delivery);
  // Delivered by a replica that died before it could update the queue, or sent anew as another job.
  if (message?.state !== 'pending' || message.queueId !== queueId) return { id: queueId, status: statuses.delivered };
  const { result, reason } = await options.attempt(message);
  const last = result === 'refused' || (result === 'failed' && retryCount >= retries.limit);
  const state = result === 'delivered' ? 'delivered' : last ? 'dead' : 'pending';
  await messages.settle({ id: message.id, queueId }, { state, result: reason, at: clock.now() });
  const attempt = retryCount + 1;
  options.onOutcome(message, { result, reason, state, attempt });
  return { id: queueId, status: statuses[result], output: { reason, attempt } };
}
