import { collectDefaultMetrics, Registry } from 'prom-client';

/** A metrics registry of one process, with Node's own process metrics in it. */
export function createMetrics(process: string): Registry {
  const registry = new Registry();
  registry.setDefaultLabels({ process });
  collectDefaultMetrics({ register: registry });
  return registry;
}
