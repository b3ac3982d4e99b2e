import type { HistoryStore, ServiceUpdates } from './history-store.ts';

/** Contract 1, "Update statistics". */
export interface UpdateStatistics {
  readonly totalUpdates: number;
  readonly successfulUpdates: number;
  readonly failedUpdates: number;
  readonly rolledBackUpdates: number;
  /** Percentage with two decimals; 0 without updates. */
  readonly successRate: number;
  /** With three decimals; 0 without updates. */
  readonly averageDurationSeconds: number;
  /** In the order of the counts given. */
  readonly servicesUpdated: readonly { readonly serviceName: string; readonly updateCount: number }[];
}

export async function readStatistics(history: Pick<HistoryStore, 'countUpdates'>): Promise<UpdateStatistics> {
  return summarise(await history.countUpdates());
}

/** The sum over all services. */
export function summarise(services: readonly ServiceUpdates[]): UpdateStatistics {
  const sum = (of: (service: ServiceUpdates) => number) => services.reduce((total, service) => total + of(service), 0);
  const totalUpdates = sum((service) => service.updates);
  const successfulUpdates = sum((service) => service.successful);
  const durationSeconds = sum((service) => service.durationSeconds);
  return {
    totalUpdates,
    successfulUpdates,
    failedUpdates: sum((service) => service.failed),
    rolledBackUpdates: sum((service) => service.rolledBack),
    successRate: totalUpdates === 0 ? 0 : rounded((successfulUpdates / totalUpdates) * 100, 2),
    averageDurationSeconds: totalUpdates === 0 ? 0 : rounded(durationSeconds / totalUpdates, 3),
    servicesUpdated: services.map(({ serviceName, updates }) => ({ serviceName, updateCount: updates })),
  };
}

function rounded(value: number, decimals: number): number {
  return Number(value.toFixed(decimals));
}
