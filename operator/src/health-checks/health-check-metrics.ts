import type { HealthCheckType } from '@rollcall/crds/types.gen.ts';
import type { Registry } from 'prom-client';
import { instruments } from '../runtime/instruments.ts';
import type { Outcome } from './next-state.ts';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export type HealthCheckMetrics = ReturnType<typeof createHealthCheckMetrics>;

export function createHealthCheckMetrics(registry: Registry) {
  const byResult = instruments(registry, 'type', 'result');
  const what = 'Health checks of registrations; unknown: no name server answered.';
  const checks = byResult.counter('rollcall_health_checks_total', what);
  const { histogram } = instruments(registry);
  const duration = histogram('rollcall_health_check_duration_seconds', 'How long health checks take.', SECONDS);
  const late = 'From when a health check was due until it began.';
  const lateness = histogram('rollcall_health_check_lateness_seconds', late, SECONDS);
  return {
    /** @param outcome undefined: nothing was learned. */
    made(type: HealthCheckType, outcome: Outcome | undefined, times: { lateMs: number; tookMs: number }): void {
      const result = outcome === undefined ? 'unknown' : outcome.passed ? 'success' : 'failure';
      checks.inc({ type, result });
      duration.observe(times.tookMs / 1000);
      lateness.observe(times.lateMs / 1000);
    },
  };
}
