import type { Clock } from '@rollcall/platform/clock.ts';
import { forgetGoneServices } from '@rollcall/platform/service-series.ts';
import { Counter, Histogram, type Registry } from 'prom-client';

/** What became of a call. `failed`: the service did not answer, or is not there. `abandoned`: nobody waited any more. */
export type CallOutcome = 'answered' | 'failed' | 'abandoned';

interface CallMetricsDeps {
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Whether a service is in the graph. */
  readonly isKnown: (subgraph: string) => boolean;
}

/** Rate, errors and duration of calls by service (the RED method). */
export interface CallMetrics {
  made(service: string, outcome: CallOutcome, seconds: number): void;
  refused(service: string, reason: 'busy' | 'failing'): void;
  shared(service: string): void;
}

export function createCallMetrics({ metrics, clock, isKnown }: CallMetricsDeps): CallMetrics {
  const duration = new Histogram({
    name: 'rollcall_federation_call_duration_seconds',
    help: 'Calls of services from their turn to the end of their answer.',
    labelNames: ['service', 'outcome'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [metrics],
  });
  const refusals = new Counter({
    name: 'rollcall_federation_refused_calls_total',
    help: 'Calls that were not made, because the service fails or has too many.',
    labelNames: ['service', 'reason'],
    registers: [metrics],
  });
  const shared = new Counter({
    name: 'rollcall_federation_shared_calls_total',
    help: 'Calls that got the answer of an equal one of the same caller.',
    labelNames: ['service'],
    registers: [metrics],
  });
  forgetGoneServices([duration, refusals, shared], { isKnown, clock });
  return {
    made: (service, outcome, seconds) => duration.observe({ service, outcome }, seconds),
    refused: (service, reason) => refusals.inc({ service, reason }),
    shared: (service) => shared.inc({ service }),
  };
}
