import type { QueryResultRow } from 'pg';
import type { Pool } from './pool.ts';

/** One page of a list. All but the parameters is SQL and must not hold what a caller has sent. */
export interface PageQuery {
  readonly columns: string;
  readonly table: string;
  /** Which rows the list has. */
  readonly where: string;
  /** `$1` and so on in `where`. */
  readonly parameters: readonly unknown[];
  /** Which of them come after the page before, by a further parameter; absent: all. */
  readonly after?: { readonly condition: (placeholder: string) => string; readonly cursor: string } | undefined;
  readonly orderBy: string;
  readonly limit: number;
}

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** How many the list has, whatever the page. */
  readonly total: number;
}

/** Reads one page and the length of the whole list. */
export async function readPage<Row extends QueryResultRow>(pool: Pool, query: PageQuery): Promise<Page<Row>> {
  const { columns, table, where, parameters, after, orderBy, limit } = query;
  const count = `SELECT count(*)::int AS total FROM ${table} WHERE ${where}`;
  const position = after === undefined ? 'TRUE' : after.condition(`$${parameters.length + 2}`);
  const { rows } = await pool.query<Row & { total: number }>(
    `SELECT ${columns}, (${count}) AS total
     FROM ${table} WHERE ${where} AND ${position} ORDER BY ${orderBy} LIMIT $${parameters.length + 1}`,
    [...parameters, limit, ...(after === undefined ? [] : [after.cursor])],
  );
  const [first] = rows;
  if (first !== undefined || after === undefined) return { rows, total: first?.total ?? 0 };
  const counted = await pool.query<{ total: number }>(count, [...parameters]);
  return { rows, total: counted.rows[0]?.total ?? 0 };
}
