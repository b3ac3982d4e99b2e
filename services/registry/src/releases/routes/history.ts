import { Readable } from 'node:stream';
import type { App } from '@rollcall/platform/http/server.ts';
import { exportHistory, type HistoryExport, readHistory } from '../domain/history.ts';
import type { HistoryStore } from '../domain/history-store.ts';
import { csvRecord } from './csv.ts';
import {
  AllHistoryResponse,
  csvColumns,
  csvFields,
  ExportParams,
  ExportQuery,
  exportResponse,
  fullEntry,
  HistoryParams,
  HistoryQuery,
  HistoryResponse,
  StatisticsResponse,
  shortEntry,
  statisticsRecord,
} from './history-schemas.ts';

export interface HistoryRoutesDeps {
  readonly history: HistoryStore;
}

const tags = ['updates'];

/** Contract 1, `/updates`. */
export function historyRoutes(app: App, deps: HistoryRoutesDeps): void {
  const { history } = deps;
  app.get(
    '/updates/history',
    {
      config: { access: 'read', refusals: ['DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      compress: {},
      schema: {
        tags,
        summary: 'Update history of all services, newest first',
        querystring: HistoryQuery,
        response: { 200: AllHistoryResponse },
      },
    },
    async (request) => {
      const { entries, total } = await readHistory(deps, undefined, request.query.limit);
      return { history: entries.map(shortEntry), total };
    },
  );
  app.get(
    '/updates/history/:service_name',
    {
      config: { access: 'read', refusals: ['INVALID_SERVICE_NAME', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      compress: {},
      schema: {
        tags,
        summary: 'Update history of one service, newest first',
        params: HistoryParams,
        querystring: HistoryQuery,
        response: { 200: HistoryResponse },
      },
    },
    async (request) => {
      const { service_name } = request.params;
      const { entries, total } = await readHistory(deps, service_name, request.query.limit);
      return { service_name, history: entries.map(fullEntry), total };
    },
  );
  app.get(
    '/updates/statistics',
    {
      config: { access: 'read', refusals: ['DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      schema: { tags, summary: 'Update statistics', response: { 200: StatisticsResponse } },
    },
    async () => statisticsRecord(await history.countUpdates()),
  );
  exportRoute(app, deps);
}

function exportRoute(app: App, deps: HistoryRoutesDeps): void {
  app.get(
    '/updates/history/:service_name/export/:format',
    {
      config: { access: 'read', refusals: ['INVALID_SERVICE_NAME', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      compress: {},
      schema: {
        tags,
        summary: 'Export the history of one service as a file, newest first',
        params: ExportParams,
        querystring: ExportQuery,
        response: exportResponse,
      },
    },
    async (request, reply) => {
      const { service_name, format } = request.params;
      const exported = await exportHistory(deps, service_name, request.query.limit);
      const csv = format === 'csv';
      return reply
        .type(csv ? 'text/csv; charset=utf-8; header=present' : 'application/json; charset=utf-8')
        .header('content-disposition', attachment(`${service_name}-history.${format}`))
        .send(Readable.from(csv ? csvFile(exported) : jsonFile(service_name, exported)));
    },
  );
}

async function* csvFile({ pages }: HistoryExport): AsyncGenerator<string> {
  yield csvRecord(csvColumns);
  for await (const entries of pages) yield entries.map((entry) => csvRecord(csvFields(entry))).join('');
}

/** The same structure as the history of one service, written as it is read. */
async function* jsonFile(serviceName: string, { pages, total }: HistoryExport): AsyncGenerator<string> {
  yield `{"service_name":${JSON.stringify(serviceName)},"history":[`;
  let separator = '';
  for await (const entries of pages) {
    if (entries.length === 0) continue;
    yield separator + entries.map((entry) => JSON.stringify(fullEntry(entry))).join(',');
    separator = ',';
  }
  yield `],"total":${total}}`;
}

/**
 * `attachment` with the name for old clients in ASCII and in full (RFC 6266, section 4; RFC 8187).
 */
function attachment(fileName: string): string {
  const ascii = fileName.replace(/[^\w.-]/gu, '_');
  const extended = encodeURIComponent(fileName).replace(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
  return `attachment; filename="${ascii}"; filename*=UTF-8''${extended}`;
}
