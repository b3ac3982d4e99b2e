import type { ServiceUpdateEntry, UpdateEntry, UpdateStatistics } from '@rollcall/client/registry-types.ts';
import { formatAge, formatDuration } from './age.ts';
import { formatFacts, formatTable } from './table.ts';

const columns = ['SERVICE', 'FROM', 'TO', 'STATUS', 'TOOK', 'AGE'];

/** Empty where there is none. */
export function formatHistory(history: readonly UpdateEntry[], now: Date): string {
  if (history.length === 0) return '';
  return formatTable(
    columns,
    history.map((entry) => historyRow(entry, now)),
  );
}

/** As {@link formatHistory}. */
export function formatServiceHistory(history: readonly ServiceUpdateEntry[], now: Date): string {
  if (history.length === 0) return '';
  return formatTable(
    [...columns, 'ARTIFACT'],
    history.map((entry) => [...historyRow(entry, now), entry.artifact_url]),
  );
}

function historyRow(entry: UpdateEntry, now: Date): string[] {
  return [
    entry.service_name,
    entry.old_version,
    entry.new_version,
    entry.status,
    formatDuration(entry.duration_seconds),
    formatAge(entry.timestamp, now),
  ];
}

export function formatStatistics(statistics: UpdateStatistics): string {
  const facts = formatFacts({
    Updates: String(statistics.total_updates),
    Successful: `${statistics.successful_updates} (${statistics.success_rate.toFixed(1)} %)`,
    Failed: String(statistics.failed_updates),
    'Rolled back': String(statistics.rolled_back_updates),
    'Average duration': formatDuration(statistics.average_duration_seconds),
  });
  if (statistics.services_updated.length === 0) return facts;
  const rows = statistics.services_updated.map(({ service_name, update_count }) => [
    service_name,
    String(update_count),
  ]);
  return `${facts}\n${formatTable(['SERVICE', 'UPDATES'], rows)}`;
}
