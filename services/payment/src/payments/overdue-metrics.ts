import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import { Gauge, type Registry } from 'prom-client';

/** What workers do, by the table that says when. */
const TABLES = {
  payment: 'payments',
  refund: 'refunds',
  notification: 'notifications',
  subscription: 'subscriptions',
  errand: 'errands',
  mail: 'billing_mails',
} as const;

/** Each by the first entry of an index. */
const OLDEST = `
  SELECT kind, GREATEST(0, COALESCE(extract(epoch FROM now() - due_at), 0))::float8 AS seconds FROM (${Object.entries(
    TABLES,
  )
    .map(([kind, table]) => `SELECT '${kind}' AS kind, min(due_at) AS due_at FROM ${table} WHERE due_at IS NOT NULL`)
    .join(' UNION ALL ')}) AS oldest`;

/** Tells whether workers keep up. @param pool throws while the schema is not there yet. */
export function watchOverdue(registry: Registry, pool: () => Pool): void {
  void new Gauge({
    name: 'rollcall_payment_overdue_seconds',
    help: 'For how long the work that has waited longest is due, of all replicas.',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      for (const { kind, seconds } of await overdue(pool)) this.set({ kind }, seconds);
    },
  });
}

interface Overdue {
  readonly kind: string;
  readonly seconds: number;
}

/** Without the database nothing is known of it, and the other metrics are still to be had. */
async function overdue(pool: () => Pool): Promise<readonly Overdue[]> {
  try {
    return (await pool().query<Overdue>(OLDEST)).rows;
  } catch {
    return [];
  }
}
