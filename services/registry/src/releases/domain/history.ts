import { parseLimit } from '../../common/limit.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { HistoryEntry, HistoryPage, HistoryStore } from './history-store.ts';

const EXPORT_PAGE_SIZE = 500;

export interface HistoryDeps {
  readonly history: Pick<HistoryStore, 'page'>;
}

/**
 * The newest entries of one service, or of all when none is named (contract 1, `/updates/history`).
 *
 * @param limit as it stands in the query; 100 when absent.
 * @throws RegistryError INVALID_REQUEST, INVALID_SERVICE_NAME.
 */
export function readHistory(
  { history }: HistoryDeps,
  serviceName: string | undefined,
  limit: string | undefined,
): Promise<HistoryPage> {
  if (serviceName !== undefined) checkServiceName(serviceName);
  return history.page({ serviceName, limit: parseLimit(limit) });
}

/** The history of a service on its way out, however long it is. */
export interface HistoryExport {
  /** Recorded entries when the export began, whatever the limit. */
  readonly total: number;
  /** Newest first, page by page. Reading on throws the store's errors. */
  readonly pages: AsyncIterable<readonly HistoryEntry[]>;
}

/**
 * Begins an export (contract 1, `/updates/history/{service_name}/export/{format}`).
 *
 * @param limit as it stands in the query; everything when absent.
 * @throws RegistryError INVALID_REQUEST, INVALID_SERVICE_NAME; the store's errors for the first
 * page.
 */
export async function exportHistory(
  { history }: HistoryDeps,
  serviceName: string,
  limit: string | undefined,
): Promise<HistoryExport> {
  checkServiceName(serviceName);
  const wanted = parseLimit(limit, Number.POSITIVE_INFINITY);
  const first = await history.page({ serviceName, limit: Math.min(wanted, EXPORT_PAGE_SIZE) });

  async function* pages(): AsyncGenerator<readonly HistoryEntry[]> {
    let { entries } = first;
    for (let missing = wanted; ; ) {
      yield entries;
      missing -= entries.length;
      const after = entries.at(-1)?.cursor;
      if (missing <= 0 || after === undefined || entries.length < EXPORT_PAGE_SIZE) return;
      ({ entries } = await history.page({ serviceName, limit: Math.min(missing, EXPORT_PAGE_SIZE), after }));
    }
  }
  return { total: first.total, pages: pages() };
}
