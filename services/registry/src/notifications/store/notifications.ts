import { randomUUID } from 'node:crypto';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type {
  NewNotification,
  Notification,
  NotificationPayload,
  NotificationQuery,
  NotificationState,
  NotificationStore,
} from '../domain/notifications.ts';

const COLUMNS =
  'id, service_name, channel, event, payload, state, attempts, last_attempt_at, last_result, queue_id, created_at';

/** A notification with the queue's job that sends it. */
interface QueuedNotification extends Notification {
  readonly queueId: string;
}

/** What becomes of a notification after an attempt. */
interface SettledAttempt {
  readonly state: NotificationState;
  readonly result: string;
  readonly at: Date;
}

/** A notification that no job of the queue will send. */
export interface StrandedNotification {
  readonly id: string;
  readonly queueId: string;
  readonly lane: string;
  /** The queue's job is there and has ended: its last attempt was cut short. */
  readonly ended: boolean;
}

/** Deliveries as the queue needs them. */
export interface NotificationRecords extends NotificationStore {
  find(id: string): Promise<QueuedNotification | undefined>;
  /** Counts an attempt, unless the notification was sent anew or is done. */
  settle(notification: Pick<QueuedNotification, 'id' | 'queueId'>, attempt: SettledAttempt): Promise<void>;
  /** Pending ones that no job of the queue in this schema will send. */
  stranded(queue: { readonly schema: string; readonly name: string }, limit: number): Promise<StrandedNotification[]>;
  /**
   * Forgets what has been delivered, or given up, for so many days.
   *
   * @param limit how many at most, so that it ends soon.
   * @returns how many.
   */
  prune(old: { readonly state: 'delivered' | 'dead'; readonly days: number }, limit: number): Promise<number>;
}

/**
 * So many may wait for one channel of a service, and a few more where several come at the same
 * moment.
 */
const WAITING_MAX = 1000;

/**
 * @param pool throws while the schema is not there yet.
 * @param onNew called when there is something to be sent.
 */
export function createNotificationRecords(pool: () => Pool, onNew: () => void): NotificationRecords {
  return {
    async add(notification) {
      const isStored = await insert(pool(), notification, 'left out');
      if (isStored) onNew();
      return isStored;
    },
    async announced(jobUid) {
      const { rows } = await pool().query<{ event: string }>('SELECT event FROM job_events WHERE job_uid = $1', [
        jobUid,
      ]);
      return new Set(rows.map((row) => row.event));
    },
    async announce({ jobUid, event }, notifications) {
      const isNews = await inTransaction(pool(), async (client) => {
        // Another replica that is just storing it is waited for here.
        const { rowCount } = await client.query(
          'INSERT INTO job_events (job_uid, event) VALUES ($1, $2) ON CONFLICT DO NOTHING',
          [jobUid, event],
        );
        if (rowCount === 0) return false;
        for (const notification of notifications) await insert(client, notification, 'dead');
        return true;
      });
      if (isNews && notifications.length > 0) onNew();
      return isNews;
    },
    async find(id) {
      const { rows } = await pool().query<NotificationRow>(`SELECT ${COLUMNS} FROM deliveries WHERE id = $1`, [id]);
      const [row] = rows;
      return row === undefined ? undefined : toNotification(row);
    },
    list: async (query) => list(pool(), query),
    async replay(id) {
      // Asked again as it is written: of two that replay it at the same moment, one puts it into
      // the queue.
      const { rows } = await pool().query<{ refused: boolean }>(
        `WITH found AS (
           SELECT id, state <> 'pending' AND ${isFull('deliveries.service_name', 'deliveries.channel')} AS refused
           FROM deliveries WHERE id = $1
         ), replayed AS (
           UPDATE deliveries SET state = 'pending', queue_id = $2 FROM found
           WHERE deliveries.id = found.id AND NOT found.refused AND deliveries.state <> 'pending'
         )
         SELECT refused FROM found`,
        [id, randomUUID()],
      );
      if (rows[0]?.refused === true) return false;
      onNew();
      return true;
    },
    async settle({ id, queueId }, { state, result, at }) {
      await pool().query(
        `UPDATE deliveries SET state = $3, attempts = attempts + 1, last_attempt_at = $4, last_result = $5
         WHERE id = $1 AND queue_id = $2 AND state = 'pending'`,
        [id, queueId, state, at, result],
      );
    },
    stranded: async (queue, limit) => stranded(pool(), queue, limit),
    async prune({ state, days }, limit) {
      // Rows that another replica is just deleting are left to it. Without the second condition the
      // index, which has none that are pending, could not serve a state that is a parameter.
      const { rowCount } = await pool().query(
        `DELETE FROM deliveries WHERE id IN (
           SELECT id FROM deliveries
           WHERE state = $1 AND state <> 'pending'
             AND coalesce(last_attempt_at, created_at) < now() - make_interval(days => $2)
           ORDER BY coalesce(last_attempt_at, created_at) LIMIT $3 FOR UPDATE SKIP LOCKED)`,
        [state, days, limit],
      );
      return rowCount ?? 0;
    },
  };
}

/**
 * @param excess what becomes of it where too many wait for its channel.
 * @returns whether it was stored.
 */
async function insert(
  client: Pool | PoolClient,
  notification: NewNotification,
  excess: 'dead' | 'left out',
): Promise<boolean> {
  const { id, serviceName, channel, event, payload, lane, createdAt } = notification;
  const { rowCount } = await client.query(
    `INSERT INTO deliveries (id, service_name, channel, event, payload, lane, queue_id, created_at, state, last_result)
     SELECT $1::uuid, $2::text, $3::text, $4::text, $5::json, $6::text, $7::uuid, $8::timestamptz,
       CASE WHEN is_full THEN 'dead' ELSE 'pending' END, CASE WHEN is_full THEN $9::text END
     FROM (SELECT ${isFull('$2', '$3')} AS is_full) waiting
     WHERE NOT is_full OR $10::boolean`,
    [
      id,
      serviceName,
      channel,
      event,
      JSON.stringify(payload),
      lane,
      randomUUID(),
      createdAt,
      `not sent: ${WAITING_MAX} others wait for the channel`,
      excess === 'dead',
    ],
  );
  return rowCount === 1;
}

/** SQL: whether as many wait for the channel as may. */
function isFull(serviceName: string, channel: string): string {
  return `EXISTS (
    SELECT FROM deliveries waiting
    WHERE waiting.service_name = ${serviceName} AND waiting.channel = ${channel} AND waiting.state = 'pending'
    OFFSET ${WAITING_MAX - 1})`;
}

interface NotificationRow {
  readonly id: string;
  readonly service_name: string;
  readonly channel: string;
  readonly event: string;
  readonly payload: NotificationPayload;
  readonly state: NotificationState;
  readonly attempts: number;
  readonly last_attempt_at: Date | null;
  readonly last_result: string | null;
  readonly queue_id: string;
  readonly created_at: Date;
}

function toNotification(row: NotificationRow): QueuedNotification {
  return {
    id: row.id,
    serviceName: row.service_name,
    channel: row.channel,
    event: row.event,
    payload: row.payload,
    state: row.state,
    attempts: row.attempts,
    lastAttemptAt: row.last_attempt_at ?? undefined,
    lastResult: row.last_result ?? undefined,
    queueId: row.queue_id,
    createdAt: row.created_at,
  };
}

async function list(pool: Pool, { serviceName, state, limit }: NotificationQuery) {
  const parameters: (string | number)[] = [];
  const bind = (value: string | number) => `$${parameters.push(value)}`;
  const ofService = serviceName === undefined ? 'TRUE' : `service_name = ${bind(serviceName)}`;
  const inState = state === undefined ? 'TRUE' : `state = ${bind(state)}`;
  const { rows } = await pool.query<NotificationRow & { total: number }>(
    `SELECT ${COLUMNS}, (SELECT count(*)::int FROM deliveries WHERE ${ofService} AND ${inState}) AS total
     FROM deliveries WHERE ${ofService} AND ${inState} ORDER BY created_at DESC, id LIMIT ${bind(limit)}`,
    parameters,
  );
  return { notifications: rows.map(toNotification), total: rows[0]?.total ?? 0 };
}

async function stranded(
  pool: Pool,
  queue: { readonly schema: string; readonly name: string },
  limit: number,
): Promise<StrandedNotification[]> {
  const { rows } = await pool.query<{ id: string; queue_id: string; lane: string; ended: boolean }>(
    `SELECT d.id, d.queue_id, d.lane, q.id IS NOT NULL AS ended
     FROM deliveries d LEFT JOIN ${queue.schema}.job q ON q.name = $1 AND q.id = d.queue_id
     WHERE d.state = 'pending' AND (q.id IS NULL OR q.state NOT IN ('created', 'retry', 'active'))
     ORDER BY d.created_at LIMIT $2`,
    [queue.name, limit],
  );
  return rows.map((row) => ({ id: row.id, queueId: row.queue_id, lane: row.lane, ended: row.ended }));
}
