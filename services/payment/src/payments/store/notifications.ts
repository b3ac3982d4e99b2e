import { randomUUID } from 'node:crypto';
import { takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { ProviderName } from '../../domain/ports.ts';
import type { Inbox, ReceivedNotification } from '../domain/inbox.ts';

const LEASE_SECONDS = 30;
const KEPT_DAYS = 90;

const KEEP = {
  name: 'keep notification',
  text: `INSERT INTO notifications (id, provider, event_key, sealed, state, remark, due_at)
    VALUES ($1, $2, $3, $4, 'new', $5, now()) ON CONFLICT (provider, event_key) DO NOTHING`,
};

/** By the lock of the payment it is known whether its payer is erased, also by who does so just now. */
const DONE = {
  name: 'end notification',
  text: `WITH told AS (SELECT erased_at FROM payments WHERE id = $2 FOR KEY SHARE)
    UPDATE notifications SET state = 'done', due_at = NULL, payment_id = $2,
      sealed = CASE WHEN EXISTS (SELECT FROM told WHERE erased_at IS NULL) THEN sealed END
    WHERE id = $1`,
};

const REVIEW = {
  name: 'review notification',
  text: `UPDATE notifications SET state = 'review', remark = $2, due_at = NULL WHERE id = $1`,
};

interface Row {
  readonly id: string;
  readonly provider: ProviderName;
  readonly sealed: Buffer | null;
  readonly attempts: number;
}

interface ReviewRow {
  readonly id: string;
  readonly provider: ProviderName;
  readonly remark: string | null;
  readonly attempts: number;
  readonly created_at: Date;
}

export interface NotificationTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
}

export function createNotificationTable({ pool, vault }: NotificationTableDeps): Inbox {
  return {
    async keep({ provider, eventKey, body, remark }) {
      const id = randomUUID();
      const sealed = vault.seal(body, notificationContext(id));
      const { rowCount } = await pool().query({ ...KEEP, values: [id, provider, eventKey, sealed, remark] });
      return rowCount === 1;
    },
    async take(limit) {
      const columns = 'id, provider, sealed, attempts';
      const rows = await takeDueRows<Row>({
        pool: pool(),
        table: 'notifications',
        columns,
        leaseSeconds: LEASE_SECONDS,
        limit,
      });
      return rows.flatMap(({ id, provider, sealed, attempts }): readonly ReceivedNotification[] =>
        // What one holds is opened by its own work, so that no other one waits for it.
        sealed === null ? [] : [{ id, provider, open: () => vault.open(sealed, notificationContext(id)), attempts }],
      );
    },
    async end(id, end) {
      if (end.state === 'done') await pool().query({ ...DONE, values: [id, end.paymentId] });
      else await pool().query({ ...REVIEW, values: [id, end.remark] });
    },
    async putOff(id, seconds) {
      await pool().query(
        `UPDATE notifications SET attempts = attempts + 1, due_at = now() + make_interval(secs => $2) WHERE id = $1`,
        [id, seconds],
      );
    },
    async list(page) {
      const { rows, ...rest } = await readNewest<ReviewRow>(pool(), {
        table: 'notifications',
        columns: 'id, provider, remark, attempts, created_at',
        where: `state = 'review'`,
        parameters: [],
        page,
      });
      return { rows: rows.map(({ created_at: createdAt, ...row }) => ({ ...row, createdAt })), ...rest };
    },
    async resolve(id, outcome) {
      const { rowCount } = await pool().query(
        `UPDATE notifications SET state = CASE WHEN $2 THEN 'new' ELSE 'done' END, attempts = 0,
           due_at = CASE WHEN $2 THEN now() END, sealed = CASE WHEN $2 THEN sealed END
         WHERE id = $1 AND state = 'review' AND (sealed IS NOT NULL OR NOT $2)`,
        [id, outcome === 'again'],
      );
      return rowCount === 1;
    },
    async forget(limit) {
      const old = 'created_at < now() - make_interval(days => $2) ORDER BY created_at LIMIT $1 FOR UPDATE SKIP LOCKED';
      const deleted = await pool().query(
        `DELETE FROM notifications WHERE id IN (SELECT id FROM notifications WHERE state = 'done' AND ${old})`,
        [limit, KEPT_DAYS],
      );
      const dropped = await pool().query(
        `UPDATE notifications SET sealed = NULL WHERE id IN (
           SELECT id FROM notifications WHERE state = 'review' AND sealed IS NOT NULL AND ${old})`,
        [limit, KEPT_DAYS],
      );
      return Math.max(deleted.rowCount ?? 0, dropped.rowCount ?? 0);
    },
  };
}

/** What the bytes of a notification are sealed for. */
export function notificationContext(id: string): string {
  return `notification ${id}`;
}
