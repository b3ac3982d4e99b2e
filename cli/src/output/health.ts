import type { HealthReport } from '@rollcall/client/registry-types.ts';
import { formatAge } from './age.ts';
import { formatFacts } from './table.ts';

export function formatHealth({ status, service, version, store, database, cache }: HealthReport, now: Date): string {
  return formatFacts({
    Status: status,
    Service: `${service} ${version}`,
    Store: store,
    ...(database === undefined ? {} : { Database: database }),
    Cache: `${cache.size} services, ${(cache.hit_ratio * 100).toFixed(1)} % hits, refreshed ${formatAge(cache.last_refresh, now)} ago`,
  });
}
