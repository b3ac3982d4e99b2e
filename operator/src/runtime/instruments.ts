import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Makes metrics in a registry. */
export function instruments(registry: Registry) {
  const registers = [registry];
  return {
    counter: (name: string, help: string, labelNames: readonly string[] = []) =>
      new Counter({ name, help, labelNames, registers }),
    /** @param collect sets it whenever the metrics are scraped. */
    gauge: (name: string, help: string, labelNames: readonly string[] = [], collect?: (gauge: Gauge) => void) => {
      const gauge: Gauge = new Gauge({ name, help, labelNames, registers, collect: () => collect?.(gauge) });
      return gauge;
    },
    histogram: (name: string, help: string, buckets: number[], labelNames: readonly string[] = []) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
  };
}
