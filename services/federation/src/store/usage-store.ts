import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { readNewest } from '@rollcall/platform/postgres/page.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { UsageStore, UsedOperation } from '../domain/ports.ts';
import type { OperationUse } from '../usage/usage.ts';

/** So many are kept; those that were used longest ago go first. */
const MOST_OPERATIONS = 10_000;
/** So much of the documents, the last used first, is looked at in a check. */
const MOST_CHARACTERS = 8_000_000;
const MOST_CLIENTS = 20;

const COUNT =
  '(SELECT coalesce(sum(count), 0) FROM operation_days WHERE operation_days.hash = operations.hash)::float8';

interface Row {
  readonly hash: string;
  readonly name: string | null;
  readonly document: string;
  readonly clients: string[];
  readonly count: number;
  readonly last_used_at: Date;
}

/** @param pool throws until the schema is up to date. */
export function createUsageStore(pool: () => Pool): UsageStore & { add(uses: readonly OperationUse[]): Promise<void> } {
  return {
    async add(uses) {
      await pool().query(
        `WITH fresh AS (
           SELECT * FROM jsonb_to_recordset($1) AS fresh (hash text, name text, document text, coordinates text[],
             clients text[], count bigint)),
         known AS (
           INSERT INTO operations (hash, name, document, coordinates, clients, last_used_at)
           SELECT hash, name, document, coordinates, clients, now() FROM fresh ORDER BY hash
           ON CONFLICT (hash) DO UPDATE SET last_used_at = now(), clients = ARRAY(
             SELECT client FROM unnest(operations.clients || excluded.clients) AS client GROUP BY client ORDER BY client
             LIMIT ${MOST_CLIENTS})
           RETURNING hash)
         INSERT INTO operation_days (hash, day, count)
         SELECT hash, (now() AT TIME ZONE 'UTC')::date, count FROM fresh ORDER BY hash
         ON CONFLICT (hash, day) DO UPDATE SET count = operation_days.count + excluded.count`,
        [JSON.stringify(uses)],
      );
    },
    async used() {
      const { rows } = await pool().query<Row>(
        `SELECT hash, name, document, clients, last_used_at, ${COUNT} AS count FROM (
           SELECT *, sum(length(document)) OVER (ORDER BY last_used_at DESC, id) AS characters FROM operations
         ) AS operations WHERE characters <= ${MOST_CHARACTERS}`,
      );
      return rows.map(usedOf);
    },
    async list(page: ListPage, coordinate: string | undefined): Promise<NewestPage<UsedOperation>> {
      const { rows, ...list } = await readNewest<Row>(pool(), {
        columns: `hash, name, document, clients, last_used_at, ${COUNT} AS count`,
        table: 'operations',
        where: coordinate === undefined ? 'TRUE' : 'coordinates @> ARRAY[$1]',
        parameters: coordinate === undefined ? [] : [coordinate],
        page,
      });
      return { rows: rows.map(usedOf), ...list };
    },
  };
}

function usedOf({ hash, name, document, clients, count, last_used_at: lastUsedAt }: Row): UsedOperation {
  return { hash, name, document, clients, count, lastUsedAt };
}

/**
 * Forgets operations that nobody has executed for a time.
 *
 * @param days how long they are kept. @param limit how many at most. @returns how many.
 */
export async function pruneOperations(pool: Pool, days: number, limit: number): Promise<number> {
  await pool.query(`DELETE FROM operation_days WHERE day <= (now() AT TIME ZONE 'UTC')::date - $1::int`, [days]);
  const { rowCount } = await pool.query(
    `DELETE FROM operations WHERE id IN (
       SELECT id FROM operations WHERE last_used_at < now() - make_interval(days => $1)
         OR last_used_at < (SELECT last_used_at FROM operations ORDER BY last_used_at DESC OFFSET ${MOST_OPERATIONS} LIMIT 1)
       LIMIT $2)`,
    [days, limit],
  );
  return rowCount ?? 0;
}
