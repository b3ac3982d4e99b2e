import type { QueryResultRow } from 'pg';
import type { ListPage, NewestPage } from '../lists.ts';
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
  /** How many are left out before; 0 when absent. */
  readonly offset?: number;
  /** What is shown of the rows of a page, where `columns` are keys. `key` is one of them: the id in `table`. */
  readonly shown?: { readonly columns: string; readonly table: string; readonly key: string } | undefined;
  /** No more are counted: of a long list, counting takes longer than the page. All when absent. */
  readonly countAtMost?: number;
}

export interface Page<Row> {
  readonly rows: readonly Row[];
  /** How many the list has, whatever the page; `countAtMost` where there are more. */
  readonly total: number;
}

/** Reads one page and the length of the whole list. */
export async function readPage<Row extends QueryResultRow>(pool: Pool, query: PageQuery): Promise<Page<Row>> {
  const { columns, table, where, parameters, after, shown, orderBy, limit, offset = 0, countAtMost } = query;
  const count =
    countAtMost === undefined
      ? `SELECT count(*)::int AS total FROM ${table} WHERE ${where}`
      : `SELECT count(*)::int AS total FROM (SELECT FROM ${table} WHERE ${where} LIMIT ${countAtMost}) AS counted`;
  const position = after === undefined ? 'TRUE' : after.condition(`$${parameters.length + 3}`);
  const page = `SELECT ${columns}, (${count}) AS total
     FROM ${table} WHERE ${where} AND ${position} ORDER BY ${orderBy}
     LIMIT $${parameters.length + 1} OFFSET $${parameters.length + 2}`;
  const { rows } = await pool.query<Row & { total: number }>(
    shown === undefined
      ? page
      : `SELECT page.*, ${shown.columns} FROM (${page}) AS page JOIN ${shown.table} ON id = ${shown.key} ORDER BY ${orderBy}`,
    [...parameters, limit, offset, ...(after === undefined ? [] : [after.cursor])],
  );
  const [first] = rows;
  if (first !== undefined || (after === undefined && offset === 0)) return { rows, total: first?.total ?? 0 };
  const counted = await pool.query<{ total: number }>(count, [...parameters]);
  return { rows, total: counted.rows[0]?.total ?? 0 };
}

/** Offsets go no further (docs/decisions/0390). */
const COUNTED = 10_000;

/** Of a table with `id uuid` and `created_at timestamptz`, which one index should have in this order. */
export type NewestQuery = Pick<PageQuery, 'columns' | 'table' | 'where' | 'parameters'> & {
  /**
   * The table that has the `columns`, by `id`. Indexes then are enough to find the page, and only its rows are read
   * (docs/decisions/0419). Absent: they are read of `table` as they are found.
   */
  readonly shownOf?: string;
  readonly page: ListPage;
};

/** To the microsecond, which a Date has not. */
const POSITION_COLUMNS = `id AS cursor_id,
  to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS cursor_at`;

interface Position {
  readonly cursor_at: string;
  readonly cursor_id: string;
}

/** Reads a page, newest first, and where the next one begins. @param query its cursor is one. */
export async function readNewest<Row extends QueryResultRow>(pool: Pool, query: NewestQuery): Promise<NewestPage<Row>> {
  const { page, columns, shownOf, where, parameters, ...list } = query;
  const { limit, offset, cursor, from, to } = page;
  const span = [
    ...(from === undefined ? [] : [{ at: from, condition: 'created_at >=' }]),
    ...(to === undefined ? [] : [{ at: to, condition: 'created_at <' }]),
  ];
  const { rows: found, total } = await readPage<Row & Position>(pool, {
    ...list,
    where: [where, ...span.map(({ condition }, index) => `${condition} $${parameters.length + index + 1}`)].join(
      ' AND ',
    ),
    parameters: [...parameters, ...span.map(({ at }) => at)],
    columns: shownOf === undefined ? `${columns}, ${POSITION_COLUMNS}` : POSITION_COLUMNS,
    shown: shownOf === undefined ? undefined : { columns, table: shownOf, key: 'cursor_id' },
    after:
      cursor === undefined
        ? undefined
        : {
            condition: (at) =>
              `(created_at, id) < (split_part(${at}, ' ', 1)::timestamptz, split_part(${at}, ' ', 2)::uuid)`,
            cursor: Buffer.from(cursor, 'base64url').toString(),
          },
    orderBy: 'created_at DESC, id DESC',
    limit: limit + 1,
    offset,
    countAtMost: COUNTED,
  });
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  return { rows, total, nextCursor: last === undefined ? null : cursorOf(last) };
}

function cursorOf({ cursor_at, cursor_id }: Position): string {
  return Buffer.from(`${cursor_at} ${cursor_id}`).toString('base64url');
}

const POSITION =
  /^[12]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z [0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a text may be the `nextCursor` of a page: PostgreSQL reads what is in it. */
export function isCursor(text: string): boolean {
  const position = Buffer.from(text, 'base64url').toString();
  return POSITION.test(position) && isDay(position.slice(0, 10));
}

/** 30 February is none. */
function isDay(day: string): boolean {
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day);
}
