import type { PoolClient } from './pool.ts';

/** Rows that are found by a blind index (platform/src/vault.ts). */
export interface IndexedRows {
  readonly table: string;
  readonly column: string;
  /** The other columns with which the index is unique. */
  readonly uniqueWith: readonly string[];
}

/**
 * Gives rows of a text the index of the newest key: what an older key indexed would be there twice otherwise. Where it
 * is there twice already, as replicas with other keys write, the older is forgotten. Within a transaction, which others
 * that do so for the same text wait for.
 *
 * @param candidates of the text, the newest first.
 */
export async function indexAnew(
  client: PoolClient,
  { table, column, uniqueWith }: IndexedRows,
  candidates: readonly Buffer[],
): Promise<void> {
  const [newest, ...older] = candidates;
  if (newest === undefined || older.length === 0) return;
  const lock = `${table} ${newest.toString('hex')}`;
  await client.query('SELECT pg_advisory_xact_lock(hashtextextended($1, 0))', [lock]);
  for (const each of older) {
    await client.query(
      `DELETE FROM ${table} AS old USING ${table} AS twin
       WHERE old.${column} = $1 AND twin.${column} = $2 AND ${isTwin(uniqueWith)}`,
      [each, newest],
    );
    await client.query(`UPDATE ${table} SET ${column} = $2 WHERE ${column} = $1`, [each, newest]);
  }
}

/** In SQL, whether the rows `old` and `twin` differ by their index alone. */
export function isTwin(uniqueWith: readonly string[]): string {
  return uniqueWith.map((name) => `twin.${name} = old.${name}`).join(' AND ');
}
