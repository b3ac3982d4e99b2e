import { randomUUID } from 'node:crypto';
import { takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import type { ProviderReport } from '../domain/ports.ts';
import type { DueReport, ReportStore } from '../domain/reports.ts';
import { shortKey } from './short-keys.ts';

export interface ReportTableDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly vault: Vault;
}

const LEASE_SECONDS = 30;

interface Row {
  readonly id: string;
  readonly provider: string;
  readonly content: Buffer;
  readonly tries: number;
  readonly received_at: Date;
}

export function createReportTable({ pool, vault }: ReportTableDeps): ReportStore {
  function dueOf({ id, provider, content, tries, received_at: receivedAt }: Row): DueReport {
    const report: ProviderReport = JSON.parse(vault.open(content, reportContext(id)).toString(), revived);
    return { id, provider, report, tries, receivedAt };
  }

  return {
    receive: (provider, body, reports) =>
      inTransaction(pool(), async (client) => {
        const id = randomUUID();
        await client.query('INSERT INTO notifications (id, provider, body) VALUES ($1, $2, $3)', [
          id,
          provider,
          vault.seal(body, notificationContext(id)),
        ]);
        const rows = reports.map((report) => ({ report, id: randomUUID() }));
        const { rowCount } = await client.query(
          `INSERT INTO reports (notification_id, provider, id, event_key, receipt, reason, content)
           SELECT $1, $2, * FROM unnest($3::uuid[], $4::text[], $5::text[], $6::text[], $7::bytea[])
           ON CONFLICT (provider, event_key) DO NOTHING`,
          [
            id,
            provider,
            rows.map((row) => row.id),
            rows.map(({ report }) => shortKey(report.eventKey)),
            rows.map(({ report }) => report.receipt),
            rows.map(({ report }) => report.reason),
            rows.map((row) => vault.seal(JSON.stringify(row.report), reportContext(row.id))),
          ],
        );
        // Said before, or nothing at all: there is nothing to keep.
        if (rowCount === 0) await client.query('DELETE FROM notifications WHERE id = $1', [id]);
        return rowCount ?? 0;
      }),
    async take(limit) {
      const rows = await takeDueRows<Row>({
        pool: pool(),
        table: 'reports',
        columns: 'id, provider, content, tries, received_at',
        leaseSeconds: LEASE_SECONDS,
        limit,
      });
      return rows.map(dueOf);
    },
    async putOff(id, ms) {
      await pool().query(
        `UPDATE reports SET tries = tries + 1, due_at = now() + make_interval(secs => $2::double precision / 1000)
         WHERE id = $1`,
        [id, ms],
      );
    },
    async end(id, messageId) {
      await pool().query('UPDATE reports SET due_at = NULL, message_id = $2 WHERE id = $1', [id, messageId]);
    },
  };
}

/** The only date of a report is in why somebody is suppressed. */
function revived(name: string, value: unknown): unknown {
  return name === 'since' && typeof value === 'string' ? new Date(value) : value;
}

/** What the body of a notification is sealed for. */
export function notificationContext(id: string): string {
  return `notification ${id}`;
}

/** What a report is sealed for. */
export function reportContext(id: string): string {
  return `report ${id}`;
}
