import { type DeliveryJob, type DeliveryJobStatus, deliveryPhases } from '@rollcall/crds/types.gen.ts';
import type { Registry } from 'prom-client';
import { instruments } from '../runtime/instruments.ts';
import type { JobSnapshot } from './job/snapshot.ts';

const JOB_SECONDS = [1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 21_600];

export type DeliveryMetrics = ReturnType<typeof createDeliveryMetrics>;

/**
 * Metrics of the delivery controller.
 *
 * @param jobs read when the metrics are scraped.
 */
export function createDeliveryMetrics(registry: Registry, jobs: () => Iterable<DeliveryJob>) {
  const phases = 'Delivery jobs by phase; those without one count as Pending.';
  void instruments(registry, 'phase').gauge('rollcall_delivery_jobs', phases, (jobsByPhase) => {
    for (const phase of deliveryPhases) jobsByPhase.set({ phase }, 0);
    for (const { status } of jobs()) jobsByPhase.inc({ phase: status?.phase ?? 'Pending' });
  });
  const took = 'From when a job left the queue until it reached its end.';
  const { histogram } = instruments(registry, 'strategy', 'outcome');
  const duration = histogram('rollcall_delivery_job_duration_seconds', took, JOB_SECONDS);
  const why = 'Jobs that were rolled back, by the reason for it.';
  const rollbacks = instruments(registry, 'reason').counter('rollcall_delivery_rollbacks_total', why);
  return {
    finished({ job, saved, policy, now }: JobSnapshot, { phase: outcome, failure, reason }: DeliveryJobStatus): void {
      const startedAt = job.status?.startedAt;
      const strategy = saved?.strategy ?? job.spec.strategy ?? policy.strategy;
      // One that never left the queue has none.
      if (startedAt !== undefined) {
        duration.observe({ strategy, outcome }, (now.getTime() - Date.parse(startedAt)) / 1000);
      }
      if (outcome === 'RolledBack') rollbacks.inc({ reason: failure?.reason ?? reason ?? 'Unknown' });
    },
  };
}
