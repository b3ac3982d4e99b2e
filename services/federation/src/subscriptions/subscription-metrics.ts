import type { Clock } from '@rollcall/platform/clock.ts';
import { forgetGoneServices } from '@rollcall/platform/service-series.ts';
import { Counter, Gauge, type Registry } from 'prom-client';

/** Why a subscription at a service is over. `changed`: another graph would ask for something else. */
export type EndReason = 'complete' | 'left' | 'failed' | 'changed';

interface SubscriptionMetricsDeps {
  readonly metrics: Registry;
  readonly clock: Clock;
  /** Whether a service is in the graph. */
  readonly isKnown: (service: string) => boolean;
  /** How many there are now. */
  readonly open: () => number;
}

/** What subscriptions at services bring, and what becomes of them. */
export interface SubscriptionMetrics {
  event(service: string): void;
  ended(service: string, reason: EndReason): void;
}

export function createSubscriptionMetrics(deps: SubscriptionMetricsDeps): SubscriptionMetrics {
  const { metrics, clock, isKnown, open } = deps;
  const registers = [metrics];
  void new Gauge({
    name: 'rollcall_federation_subscriptions',
    help: 'Subscriptions at services of the graph.',
    registers,
    collect() {
      this.set(open());
    },
  });
  const events = new Counter({
    name: 'rollcall_federation_events_total',
    help: 'Events of subscriptions at services of the graph.',
    labelNames: ['service'],
    registers,
  });
  const ended = new Counter({
    name: 'rollcall_federation_subscriptions_ended_total',
    help: 'Subscriptions at services of the graph that are over, by why.',
    labelNames: ['service', 'reason'],
    registers,
  });
  forgetGoneServices([events, ended], { isKnown, clock });
  return {
    event: (service) => events.inc({ service }),
    ended: (service, reason) => ended.inc({ service, reason }),
  };
}
