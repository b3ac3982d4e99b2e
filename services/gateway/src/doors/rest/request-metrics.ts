import type { Clock } from '@rollcall/platform/clock.ts';
import { Counter, Histogram, type Registry } from 'prom-client';
import { createServiceSeries } from '../../service-series.ts';
import type { Targets } from '../../upstream/discovery/targets.ts';
import type { Outcome } from './rest.ts';

interface RequestMetricsDeps {
  readonly metrics: Registry;
  readonly targets: Pick<Targets, 'find'>;
  readonly clock: Clock;
}

/** Rate, errors and duration of requests by service (the RED method). */
export interface RequestMetrics {
  observe(
    request: { readonly service: string; readonly method: string },
    measured: { readonly outcome: Outcome; readonly seconds: number },
  ): void;
}

export function createRequestMetrics({ metrics, targets, clock }: RequestMetricsDeps): RequestMetrics {
  const isKnown = (service: string): boolean => targets.find(service) !== undefined;
  const durations = createServiceSeries<{ observe(seconds: number): void }>({ isKnown, clock });
  const repetitions = createServiceSeries<{ inc(count: number): void }>({ isKnown, clock });
  const duration = new Histogram({
    name: 'rollcall_gateway_upstream_duration_seconds',
    help: 'Requests to services from their arrival at the gateway to the end of their answer.',
    labelNames: ['service', 'method', 'result'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [metrics],
  });
  const retries = new Counter({
    name: 'rollcall_gateway_upstream_retries_total',
    help: 'Requests sent to a service once more because no answer had begun.',
    labelNames: ['service'],
    registers: [metrics],
  });
  return {
    observe({ service, method }, { outcome, seconds }) {
      const result = resultOf(outcome);
      const series = durations.of(service, `${method} ${result}`, () => {
        const labels = { service, method, result };
        return { child: duration.labels(labels), remove: () => duration.remove(labels) };
      });
      series?.observe(seconds);
      if (outcome.retries === 0) return;
      const counter = repetitions.of(service, '', () => {
        return { child: retries.labels(service), remove: () => retries.remove(service) };
      });
      counter?.inc(outcome.retries);
    },
  };
}

/** One of few values. */
function resultOf(outcome: Outcome): string {
  if (outcome.type === 'answered') return `${Math.floor(outcome.status / 100)}xx`;
  return outcome.type === 'failed' ? outcome.failure.code.toLowerCase() : 'abandoned';
}
