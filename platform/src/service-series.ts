import type { Counter, Histogram } from 'prom-client';
import type { Clock } from './clock.ts';

/** Long enough to be read by Prometheus once more, several times over. */
const KEPT_MS = 120_000;
const CHECK_INTERVAL_MS = 30_000;

export interface ServiceSeriesDeps {
  /** Whether a service of that name is registered. */
  readonly isKnown: (service: string) => boolean;
  readonly clock: Clock;
}

/**
 * Removes series with the label `service` when that service has been gone for a while: whoever may
 * register could else make a process grow by a name each time, for good. Series are made only for
 * services that are registered.
 *
 * @returns does it once; it is called by itself, too.
 */
export function forgetGoneServices(
  metrics: readonly (Counter | Histogram)[],
  { isKnown, clock }: ServiceSeriesDeps,
): () => Promise<void> {
  const goneSinceMs = new Map<string, number>();

  async function sweep(): Promise<void> {
    const nowMs = clock.monotonicMs();
    for (const metric of metrics) {
      for (const { labels } of (await metric.get()).values) {
        const { le: _bucket, ...series }: Partial<Record<string, string | number>> = labels;
        const service = String(series['service']);
        if (isKnown(service)) goneSinceMs.delete(service);
        else if (nowMs - (goneSinceMs.get(service) ?? nowMs) >= KEPT_MS) metric.remove(series);
        else goneSinceMs.set(service, goneSinceMs.get(service) ?? nowMs);
      }
    }
    for (const [service, sinceMs] of goneSinceMs) if (nowMs - sinceMs >= KEPT_MS) goneSinceMs.delete(service);
  }

  setInterval(() => void sweep(), CHECK_INTERVAL_MS).unref();
  return sweep;
}
