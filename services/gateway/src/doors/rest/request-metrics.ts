import type { Clock } from '@rollcall/platform/clock.ts';
import { forgetGoneServices } from '@rollcall/platform/service-series.ts';
import { Counter, Histogram, type Registry } from 'prom-client';
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
  forgetGoneServices([duration, retries], { isKnown, clock });
  return {
    observe({ service, method }, { outcome, seconds }) {
      if (!isKnown(service)) return;
      duration.observe({ service, method, result: resultOf(outcome) }, seconds);
      if (outcome.retries > 0) retries.inc({ service }, outcome.retries);
    },
  };
}

/** One of few values. */
function resultOf(outcome: Outcome): string {
  if (outcome.type === 'answered') return `${Math.floor(outcome.status / 100)}xx`;
  return outcome.type === 'failed' ? outcome.failure.code.toLowerCase() : 'abandoned';
}
