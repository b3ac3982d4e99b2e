import { readNewest } from '../../postgres/page.ts';
import type { OutboxState } from '../../queues/outbox-states.ts';
import { eventContext } from '../events.ts';
import { eventText } from '../feed.ts';
import { createEndpointSeal, type WebhookStoreDeps } from './store.ts';
import type { DisabledReason, DueDelivery, WebhookDelivery, WebhookQueue, WebhookRecords } from './webhooks.ts';

/** Longer than a round takes. */
const LEASE_SECONDS = 60;
/** An endpoint that takes nothing for so long is disabled. */
const FAILING_DAYS = 5;

/** Of no resource: it tells that an endpoint is reached. */
const TEST_EVENT = 'webhook.test';
const COLUMNS =
  'id, endpoint_id, event_id, event_type, state, attempts, last_attempt_at, last_result, due_at, created_at';
const OWNED = 'id = $1 AND ($2::text IS NULL OR subject = $2)';

interface Row {
  readonly id: string;
  readonly endpoint_id: string;
  readonly event_id: string;
  readonly event_type: string;
  readonly state: OutboxState;
  readonly attempts: number;
  readonly last_attempt_at: Date | null;
  readonly last_result: string | null;
  readonly due_at: Date | null;
  readonly created_at: Date;
}

interface DueRow {
  readonly id: string;
  readonly attempts: number;
  readonly event_id: string;
  readonly type: string;
  readonly data: Buffer;
  readonly created_at: Date;
}

type DeliveryRecords = Pick<WebhookRecords, 'listDeliveries' | 'findDelivery' | 'sendTest' | 'replay'>;

/** Of the table `webhook_deliveries`, for the API. @param onDue called when there is something to be sent. */
export function createDeliveryRecords({ pool, vault }: WebhookStoreDeps, onDue: () => void): DeliveryRecords {
  return {
    async listDeliveries({ owner, endpointId, eventId, state, page }) {
      const { rows, ...rest } = await readNewest<Row>(pool(), {
        columns: COLUMNS,
        table: 'webhook_deliveries',
        where: `($1::text IS NULL OR subject = $1) AND ($2::uuid IS NULL OR endpoint_id = $2)
          AND ($3::uuid IS NULL OR event_id = $3) AND ($4::text IS NULL OR state = $4)`,
        parameters: [owner, endpointId, eventId, state],
        page,
      });
      return { rows: rows.map(deliveryOf), ...rest };
    },
    async findDelivery(id, owner) {
      const { rows } = await pool().query<Row>(`SELECT ${COLUMNS} FROM webhook_deliveries WHERE ${OWNED}`, [id, owner]);
      return rows.map(deliveryOf)[0];
    },
    async sendTest(id, endpointId, owner) {
      const data = vault.seal(JSON.stringify({ id: endpointId }), eventContext(id));
      // Positions below zero are in no stream, and given to no other webhook.
      const { rows } = await pool().query<Row>(
        `WITH event AS (
           INSERT INTO events (id, subject, type, resource_id, data, position)
           SELECT $1, subject, '${TEST_EVENT}', id, $2, -nextval('test_event_positions') FROM webhook_endpoints
           WHERE id = $3 AND ($4::text IS NULL OR subject = $4)
           ON CONFLICT (id) DO NOTHING RETURNING id, subject, type, resource_id)
         INSERT INTO webhook_deliveries (subject, endpoint_id, event_id, event_type)
         SELECT subject, resource_id, id, type FROM event RETURNING ${COLUMNS}`,
        [id, data, endpointId, owner],
      );
      onDue();
      if (rows.length > 0) return rows.map(deliveryOf)[0];
      const made = await pool().query<Row>(`SELECT ${COLUMNS} FROM webhook_deliveries WHERE event_id = $1`, [id]);
      return made.rows.map(deliveryOf)[0];
    },
    async replay(id, owner) {
      const { rows } = await pool().query<Row>(
        `UPDATE webhook_deliveries SET state = 'pending', attempts = 0, due_at = now() WHERE ${OWNED} RETURNING ${COLUMNS}`,
        [id, owner],
      );
      onDue();
      return rows.map(deliveryOf)[0];
    },
  };
}

/** Of the same tables, for the sender. Times are those of the database. */
export function createWebhookQueue({ pool, vault }: WebhookStoreDeps): WebhookQueue {
  const seal = createEndpointSeal(vault);

  function dueOf({ id, attempts, event_id: eventId, ...event }: DueRow): DueDelivery {
    return { id, attempts, eventId, body: eventText(vault, { id: eventId, ...event }) };
  }

  return {
    async takeEndpoints(limit) {
      // Who had its turn longest ago comes first.
      const { rows } = await pool().query<{ id: string; settings: Buffer }>(
        `UPDATE webhook_endpoints SET busy_until = now() + make_interval(secs => $1)
         WHERE id IN (
           SELECT id FROM webhook_endpoints
           WHERE disabled_reason IS NULL AND (busy_until IS NULL OR busy_until <= now()) AND EXISTS (
             SELECT FROM webhook_deliveries WHERE endpoint_id = webhook_endpoints.id AND due_at <= now())
           ORDER BY busy_until NULLS FIRST LIMIT $2 FOR UPDATE SKIP LOCKED)
         RETURNING id, settings`,
        [LEASE_SECONDS, limit],
      );
      return rows.map(({ id, settings }) => ({ id, ...seal.open(id, settings) }));
    },
    async dueDeliveries(endpointId, limit) {
      const { rows } = await pool().query<DueRow>(
        `SELECT due.id, attempts, event_id, type, data, events.created_at
         FROM (
           SELECT id, attempts, event_id, due_at FROM webhook_deliveries
           WHERE endpoint_id = $1 AND due_at <= now() ORDER BY due_at LIMIT $2
         ) due JOIN events ON events.id = event_id
         ORDER BY due_at, position`,
        [endpointId, limit],
      );
      return rows.map(dueOf);
    },
    async settle({ id, attempts }, { state, retrySeconds, result }) {
      // Unless it was replayed meanwhile, or another replica was at it after the lease.
      await pool().query(
        `UPDATE webhook_deliveries SET state = $3, attempts = attempts + 1, last_attempt_at = now(), last_result = $5,
           due_at = now() + make_interval(secs => $4)
         WHERE id = $1 AND attempts = $2 AND state = 'pending'`,
        [id, attempts, state, retrySeconds, result],
      );
    },
    async endRound(endpointId, { isGone, hasSucceeded, hasFailed, pauseSeconds }) {
      const { rows } = await pool().query<{ disabled_reason: DisabledReason | null }>(
        `UPDATE webhook_endpoints SET
           busy_until = now() + make_interval(secs => $2),
           failing_since = CASE WHEN $3 THEN NULL WHEN $4 THEN coalesce(failing_since, now()) ELSE failing_since END,
           disabled_reason = CASE
             WHEN $5 THEN 'gone'
             WHEN $4 AND NOT $3 AND failing_since < now() - make_interval(days => $6) THEN 'failing'
             ELSE disabled_reason END
         WHERE id = $1 RETURNING disabled_reason`,
        [endpointId, pauseSeconds, hasSucceeded, hasFailed, isGone, FAILING_DAYS],
      );
      return rows[0]?.disabled_reason ?? null;
    },
  };
}

function deliveryOf(row: Row): WebhookDelivery {
  return {
    id: row.id,
    endpointId: row.endpoint_id,
    eventId: row.event_id,
    eventType: row.event_type,
    state: row.state,
    attempts: row.attempts,
    lastAttemptAt: row.last_attempt_at,
    lastResult: row.last_result,
    nextAttemptAt: row.due_at,
    createdAt: row.created_at,
  };
}
