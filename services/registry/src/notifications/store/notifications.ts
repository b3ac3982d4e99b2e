import { randomUUID } from 'node:crypto';
import { type OutboxMessage, type OutboxTable, outboxTable } from '@rollcall/platform/postgres/outbox-table.ts';
import { readPage } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { asMembers } from '../../common/columns.ts';
import type { NewNotification, Notification, NotificationQuery, NotificationStore } from '../domain/notifications.ts';

const COLUMNS = asMembers(
  'id, service_name, channel, event, payload, state, attempts, last_attempt_at, last_result, queue_id, created_at',
);

/** A notification with the queue's job that sends it. */
export type QueuedNotification = Notification & OutboxMessage;

/** Notifications, as the API and as the outbox need them. */
export type NotificationRecords = NotificationStore & OutboxTable<QueuedNotification>;

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
  const table = outboxTable({
    pool,
    table: 'deliveries',
    columns: COLUMNS,
    toMessage: (row: QueuedNotification) => row,
  });
  return {
    ...table,
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

async function list(pool: Pool, { serviceName, state, limit }: NotificationQuery) {
  const parameters: string[] = [];
  const bind = (value: string) => `$${parameters.push(value)}`;
  const ofService = serviceName === undefined ? 'TRUE' : `service_name = ${bind(serviceName)}`;
  const inState = state === undefined ? 'TRUE' : `state = ${bind(state)}`;
  const { rows: notifications, total } = await readPage<QueuedNotification>(pool, {
    columns: COLUMNS,
    table: 'deliveries',
    where: `${ofService} AND ${inState}`,
    orderBy: 'created_at DESC, id',
    limit,
    parameters,
  });
  return { notifications, total };
}
