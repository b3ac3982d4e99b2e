import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { DeliveryDeps } from './domain/delivery.ts';
import { channels } from './domain/messages.ts';

export interface DeliveryMetricsOptions {
  readonly metrics: Registry;
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
}

const SECONDS = [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** What is measured of messages: calls of this replica, and what waits for any. */
export function createDeliveryMetrics({ metrics, pool }: DeliveryMetricsOptions): Pick<DeliveryDeps, 'onAttempt'> {
  const registers = [metrics];
  const labelNames = ['channel', 'provider', 'outcome'];
  const attempts = new Counter({
    name: 'rollcall_communication_attempts_total',
    help: 'Calls of providers by this replica.',
    labelNames,
    registers,
  });
  const durations = new Histogram({
    name: 'rollcall_communication_attempt_duration_seconds',
    help: 'How long providers took to answer.',
    labelNames: ['channel', 'provider'],
    buckets: SECONDS,
    registers,
  });
  const age = new Gauge({
    name: 'rollcall_communication_queue_age_seconds',
    help: 'For how long the message that has waited longest is due, of all replicas.',
    labelNames: ['channel'],
    registers,
  });
  void new Gauge({
    name: 'rollcall_communication_queue_messages',
    help: 'Messages that are due, of all replicas.',
    labelNames: ['channel'],
    registers,
    async collect() {
      for (const { channel, due, seconds } of await queued(pool)) {
        this.set({ channel }, due);
        age.set({ channel }, seconds);
      }
    },
  });
  return {
    onAttempt({ channel, provider, outcome: { outcome }, tookMs }) {
      attempts.inc({ channel, provider, outcome });
      durations.observe({ channel, provider }, tookMs / 1000);
    },
  };
}

interface Queued {
  readonly channel: string;
  readonly due: number;
  readonly seconds: number;
}

/** Without the database nothing is known of it, and the other metrics are still to be had. */
async function queued(pool: () => Pool): Promise<readonly Queued[]> {
  try {
    const { rows } = await pool().query<Queued>(
      `SELECT channel, count(*)::int AS due, coalesce(extract(epoch FROM now() - min(due_at)), 0)::float8 AS seconds
       FROM messages WHERE due_at <= now() AND state IN ('queued', 'scheduled') GROUP BY channel`,
    );
    const byChannel = new Map(rows.map((row) => [row.channel, row]));
    return channels.map((channel) => byChannel.get(channel) ?? { channel, due: 0, seconds: 0 });
  } catch {
    return [];
  }
}
