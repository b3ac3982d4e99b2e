import type { Clock } from '@rollcall/platform/clock.ts';

/** Long enough to be read by Prometheus once more, several times over. */
const KEPT_MS = 120_000;
const CHECK_INTERVAL_MS = 30_000;

/** One series of a metric. */
interface Series<Child> {
  readonly child: Child;
  /** Removes it from its metric. */
  readonly remove: () => void;
}

export interface ServiceSeriesDeps {
  /** Whether a service of that name is registered. */
  readonly isKnown: (service: string) => boolean;
  readonly clock: Clock;
}

/**
 * The series of metrics that bear a service's name. They go when the service has been gone for a
 * while: whoever may register could else make a process grow by a name each time, for good.
 */
export interface ServiceSeries<Child> {
  /**
   * @param key distinguishes the series of a service.
   * @returns undefined for a service that is not registered.
   */
  of(service: string, key: string, make: () => Series<Child>): Child | undefined;
  /** Forgets what has been gone for long. It is called by itself, too. */
  sweep(): void;
}

interface Known<Child> {
  readonly series: Map<string, Series<Child>>;
  goneSinceMs: number | undefined;
}

export function createServiceSeries<Child>({ isKnown, clock }: ServiceSeriesDeps): ServiceSeries<Child> {
  const services = new Map<string, Known<Child>>();

  function sweep(): void {
    const nowMs = clock.monotonicMs();
    for (const [service, known] of services) {
      if (isKnown(service)) known.goneSinceMs = undefined;
      else known.goneSinceMs ??= nowMs;
      if (known.goneSinceMs === undefined || nowMs - known.goneSinceMs < KEPT_MS) continue;
      for (const { remove } of known.series.values()) remove();
      services.delete(service);
    }
  }

  setInterval(sweep, CHECK_INTERVAL_MS).unref();
  return {
    of(service, key, make) {
      const child = services.get(service)?.series.get(key)?.child;
      if (child !== undefined) return child;
      if (!isKnown(service)) return undefined;
      const known = services.get(service) ?? { series: new Map(), goneSinceMs: undefined };
      services.set(service, known);
      const made = make();
      known.series.set(key, made);
      return made.child;
    },
    sweep,
  };
}
