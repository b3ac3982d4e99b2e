import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { PersistedQueryStore } from '../documents/persisted-queries.ts';

/** So many are kept, the newest. A document has at most 15,000 characters. */
const MOST_DOCUMENTS = 10_000;

/** @param pool throws until the schema is up to date. */
export function createPersistedQueryStore(pool: () => Pool): PersistedQueryStore {
  return {
    async find(hash) {
      const { rows } = await pool().query<{ document: string }>(
        'SELECT document FROM persisted_queries WHERE hash = $1',
        [Buffer.from(hash, 'hex')],
      );
      return rows[0]?.document;
    },
    async add(hash, document) {
      await pool().query('INSERT INTO persisted_queries (hash, document) VALUES ($1, $2) ON CONFLICT DO NOTHING', [
        Buffer.from(hash, 'hex'),
        document,
      ]);
    },
  };
}

/** Forgets documents beyond those that are kept: clients send them again. @param limit how many at most. @returns how many. */
export async function prunePersistedQueries(pool: Pool, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM persisted_queries WHERE hash IN (
       SELECT hash FROM persisted_queries ORDER BY kept_at DESC OFFSET ${MOST_DOCUMENTS} LIMIT $1)`,
    [limit],
  );
  return rowCount ?? 0;
}
