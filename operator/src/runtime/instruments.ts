import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Makes metrics with the same labels. */
export function instruments(registry: Registry, ...labelNames: readonly string[]) {
  const common = { labelNames, registers: [registry] };
  return {
    counter: (name: string, help: string) => new Counter({ ...common, name, help }),
    /** @param collect sets it whenever the metrics are scraped. */
    gauge: (name: string, help: string, collect?: (gauge: Gauge) => void) => {
      const gauge: Gauge = new Gauge({ ...common, name, help, collect: () => collect?.(gauge) });
      return gauge;
    },
    histogram: (name: string, help: string, buckets: number[]) => new Histogram({ ...common, name, help, buckets }),
  };
}
