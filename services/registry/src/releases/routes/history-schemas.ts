import type { Readable } from 'node:stream';
import { documented } from '@rollcall/platform/http/documented.ts';
import { type Static, Type } from 'typebox';
import { limitRules } from '../../common/limit.ts';
import { Limit, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import type { HistoryEntry, ServiceUpdates } from '../domain/history-store.ts';

const UpdateStatus = Type.Enum(['success', 'failed', 'rolled_back'], {
  description: 'rolled_back: undone, by itself or by a later rollback',
});

/** Contract 1, "Update history entry", as the history of all services has it. */
const ShortEntry = Type.Object({
  service_name: ServiceName,
  old_version: Type.String({ description: 'Empty when it is not known' }),
  new_version: Type.String(),
  timestamp: Timestamp,
  status: UpdateStatus,
  duration_seconds: Type.Number(),
});

/** Contract 1, "Update history entry", as the history of one service has it. */
const FullEntry = Type.Object({
  ...ShortEntry.properties,
  artifact_url: Type.String(),
  checksum: Type.String({ description: '<algorithm>:<digest>, or empty' }),
  artifact_path: Type.String({ description: 'Local path, or empty' }),
  backup_path: Type.String({ description: 'Local path, or empty' }),
});

const Total = Type.Integer({ description: 'Number of recorded entries, whatever the limit' });

export const HistoryParams = Type.Object({ service_name: ServiceName });

export const ExportParams = Type.Object({
  service_name: ServiceName,
  format: Type.Enum(['json', 'csv']),
});

export const HistoryQuery = Type.Object({ limit: Type.Optional(Limit) });

export const ExportQuery = Type.Object({
  limit: Type.Optional(
    Type.String({
      description: 'Most entries to export: an integer from 1 to 1000, all by default',
      ...documented(limitRules),
    }),
  ),
});

export const AllHistoryResponse = Type.Object({ history: Type.Array(ShortEntry), total: Total });

export const HistoryResponse = Type.Object({
  service_name: ServiceName,
  history: Type.Array(FullEntry),
  total: Total,
});

/** Contract 1, the columns of the CSV export. */
export const csvColumns = [
  'Service Name',
  'Old Version',
  'New Version',
  'Timestamp',
  'Status',
  'Duration (seconds)',
  'Artifact URL',
  'Checksum',
] as const;

/** A file, written as it is read from the database. */
export const exportResponse = {
  200: {
    description: 'The file, as an attachment',
    headers: { 'Content-Disposition': { type: 'string', pattern: '^attachment; filename=' } },
    content: {
      'application/json': { schema: Type.Unsafe<Readable>(HistoryResponse) },
      'text/csv': {
        schema: Type.Unsafe<Readable>({
          type: 'string',
          description: `RFC 4180, with the header ${csvColumns.join(',')}`,
        }),
      },
    },
  },
} as const;

/** Contract 1, "Update statistics". */
export const StatisticsResponse = Type.Object({
  total_updates: Type.Integer(),
  successful_updates: Type.Integer(),
  failed_updates: Type.Integer(),
  rolled_back_updates: Type.Integer(),
  success_rate: Type.Number({ description: 'Percentage' }),
  average_duration_seconds: Type.Number(),
  services_updated: Type.Array(Type.Object({ service_name: ServiceName, update_count: Type.Integer() })),
});

export function shortEntry(entry: HistoryEntry): Static<typeof ShortEntry> {
  return {
    service_name: entry.serviceName,
    old_version: entry.oldVersion,
    new_version: entry.newVersion,
    timestamp: timestamp(entry.finishedAt),
    status: entry.status,
    duration_seconds: entry.durationSeconds,
  };
}

export function fullEntry(entry: HistoryEntry): Static<typeof FullEntry> {
  return {
    ...shortEntry(entry),
    artifact_url: entry.artifactUrl,
    checksum: entry.checksum,
    // Artifacts are pulled by the cluster, and what ran before is there to be pulled again.
    artifact_path: '',
    backup_path: '',
  };
}

/** In the order of {@link csvColumns}. */
export function csvFields(entry: HistoryEntry): (string | number)[] {
  const { service_name, old_version, new_version, timestamp, status, duration_seconds } = shortEntry(entry);
  const { artifactUrl, checksum } = entry;
  return [service_name, old_version, new_version, timestamp, status, duration_seconds, artifactUrl, checksum];
}

/** The sum over all services: zero without updates. @param services in the order in which they are shown. */
export function statisticsRecord(services: readonly ServiceUpdates[]): Static<typeof StatisticsResponse> {
  const sum = (of: (service: ServiceUpdates) => number) => services.reduce((total, service) => total + of(service), 0);
  const total = sum((service) => service.updates);
  const successful = sum((service) => service.successful);
  const duration = sum((service) => service.durationSeconds);
  return {
    total_updates: total,
    successful_updates: successful,
    failed_updates: sum((service) => service.failed),
    rolled_back_updates: sum((service) => service.rolledBack),
    success_rate: total === 0 ? 0 : rounded((successful / total) * 100, 2),
    average_duration_seconds: total === 0 ? 0 : rounded(duration / total, 3),
    services_updated: services.map(({ serviceName, updates }) => ({
      service_name: serviceName,
      update_count: updates,
    })),
  };
}

function rounded(value: number, decimals: number): number {
  return Number(value.toFixed(decimals));
}
