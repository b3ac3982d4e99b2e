import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import { Gauge, type Registry } from 'prom-client';

/** Counted by indexes that hold nothing else. No more are counted: one is enough to look. */
const IN_REVIEW = `
  SELECT 'payment' AS kind, count(*)::int FROM (SELECT FROM payments WHERE state = 'needs_review' LIMIT 10000) AS counted
  UNION ALL
  SELECT 'refund', count(*)::int FROM (SELECT FROM refunds WHERE state = 'needs_review' LIMIT 10000) AS counted
  UNION ALL
  SELECT 'notification', count(*)::int FROM (SELECT FROM notifications WHERE state = 'review' LIMIT 10000) AS counted
  UNION ALL
  SELECT 'errand', count(*)::int FROM (SELECT FROM errands WHERE due_at IS NULL LIMIT 10000) AS counted`;

/** Tells how much waits for a person. @param pool throws while the schema is not there yet. */
export function watchReview(registry: Registry, pool: () => Pool): void {
  void new Gauge({
    name: 'rollcall_payment_in_review',
    help: 'Payments, refunds, notifications of providers and errands to them that wait for a person, of all replicas.',
    labelNames: ['kind'],
    registers: [registry],
    async collect() {
      for (const { kind, count } of await inReview(pool)) this.set({ kind }, count);
    },
  });
}

interface Counted {
  readonly kind: string;
  readonly count: number;
}

/** Without the database nothing is known of it, and the other metrics are still to be had. */
async function inReview(pool: () => Pool): Promise<readonly Counted[]> {
  try {
    return (await pool().query<Counted>(IN_REVIEW)).rows;
  } catch {
    return [];
  }
}
