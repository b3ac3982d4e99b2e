import type { LoadGenerator } from '../load/load-generator.ts';
import { atMost, figure, type Row } from '../report.ts';
import type { Tables } from './tables.ts';

const PER_SECOND = 40;
const WARM_UP_MS = 500;
const DURATION_MS = 5000;
const CONNECTIONS = 8;
const MOST_MS = 50;

/** One way to read a list. */
export interface ListQuery {
  readonly name: string;
  /** In turn, with their queries. */
  readonly paths: readonly string[];
  /** Of who reads. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads lists one after the other, 40 times a second each. */
export async function listRows(
  { port, generator }: { readonly port: number; readonly generator: LoadGenerator },
  queries: readonly ListQuery[],
): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, paths, headers } of queries) {
    const result = await generator.run({
      kind: 'http',
      port,
      method: 'GET',
      path: '',
      inTurn: paths.map((path) => ({ path, headers })),
      names: { prefix: '', first: 0, count: paths.length },
      connections: CONNECTIONS,
      pace: { ratePerSecond: PER_SECOND, durationMs: WARM_UP_MS + DURATION_MS, settleMs: WARM_UP_MS },
    });
    if (result.failures > 0) throw new Error(`${name}: ${JSON.stringify(result.statuses)}`);
    rows.push(figure(`1,000,000 stored, p50, ${name}`, result.latencyMs.p50, 'ms'));
    rows.push(atMost(MOST_MS, figure(`1,000,000 stored, p99, ${name}`, result.latencyMs.p99, 'ms')));
  }
  return rows;
}

interface Place {
  readonly table: string;
  /** SQL that names the rows of the list. */
  readonly where: string;
  /** How many come before it. */
  readonly offset: number;
}

/** What `nextCursor` is there (platform/src/postgres/page.ts). */
export async function cursorAt(tables: Tables, { table, where, offset }: Place): Promise<string> {
  const { rows } = await tables.query<{ position: string }>(
    `SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || ' ' || id AS position
     FROM ${table} WHERE ${where} ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ${offset}`,
  );
  return Buffer.from(rows[0]?.position ?? '').toString('base64url');
}
