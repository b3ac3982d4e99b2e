import { type DeliveryJob, type DeliveryPhase, deliveryPhases } from '@rollcall/crds/types.gen.ts';
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Metrics of the delivery controller. */
export interface DeliveryMetrics {
  /** @param durationMs from when the job left the queue; undefined for one that never did. */
  finished(end: {
    readonly strategy: string;
    readonly outcome: DeliveryPhase;
    readonly durationMs: number | undefined;
  }): void;
  rolledBack(reason: string): void;
}

/** @param jobs read when the metrics are scraped. */
export function createDeliveryMetrics(registry: Registry, jobs: () => Iterable<DeliveryJob>): DeliveryMetrics {
  const registers = [registry];
  void new Gauge({
    name: 'rollcall_delivery_jobs',
    help: 'Delivery jobs by phase; those without one count as Pending.',
    labelNames: ['phase'],
    registers,
    collect() {
      for (const phase of deliveryPhases) this.set({ phase }, 0);
      for (const { status } of jobs()) this.inc({ phase: status?.phase ?? 'Pending' });
    },
  });
  const duration = new Histogram({
    name: 'rollcall_delivery_job_duration_seconds',
    help: 'From when a job left the queue until it reached its end.',
    labelNames: ['strategy', 'outcome'],
    buckets: [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600],
    registers,
  });
  const rollbacks = new Counter({
    name: 'rollcall_delivery_rollbacks_total',
    help: 'Jobs that were rolled back, by the reason for it.',
    labelNames: ['reason'],
    registers,
  });
  return {
    finished({ strategy, outcome, durationMs }) {
      if (durationMs !== undefined) duration.observe({ strategy, outcome }, durationMs / 1000);
    },
    rolledBack: (reason) => rollbacks.inc({ reason }),
  };
}
