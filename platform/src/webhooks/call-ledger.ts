import type { Pool } from '../postgres/pool.ts';

const FORGOTTEN_AT_ONCE = 100;

/** A call that is to be made once. */
interface CallEntry {
  /** Whose secret proves it: ids are unique there. */
  readonly scope: string;
  readonly id: string;
  /** Of what it is to do. */
  readonly digest: Buffer;
  readonly at: Date;
  /** When it may be forgotten. */
  readonly until: Date;
}

/** The calls of the last minutes, those with an id of the last days, the same for all replicas. */
export interface CallLedger {
  /** Writes the call down, unless one of its id is there. @returns the one that is there now. */
  begin(call: CallEntry): Promise<Pick<CallEntry, 'digest' | 'at'> & { readonly done: boolean }>;
  /** It was carried out. */
  end(call: Pick<CallEntry, 'scope' | 'id'>): Promise<void>;
  /** It was refused and has changed nothing: it may be made again. */
  forget(call: Pick<CallEntry, 'scope' | 'id'>): Promise<void>;
}

interface CallRow {
  readonly digest: Buffer;
  readonly first_at: Date;
  readonly done: boolean;
}

/**
 * Calls in the table `webhook_calls` (scope, id, digest, first_at, until, done) of the pool's
 * schema, whose key is scope and id.
 *
 * @param pool throws while the schema is not there yet.
 */
export function createCallLedger(pool: () => Pool): CallLedger {
  return {
    async begin({ scope, id, digest, at, until }) {
      const database = pool();
      // Rows that another replica is just deleting are left to it.
      await database.query(
        `DELETE FROM webhook_calls WHERE (scope, id) IN (
           SELECT scope, id FROM webhook_calls WHERE until < $1 ORDER BY until LIMIT $2 FOR UPDATE SKIP LOCKED)`,
        [at, FORGOTTEN_AT_ONCE],
      );
      const { rows } = await database.query<CallRow>(
        `INSERT INTO webhook_calls (scope, id, digest, first_at, until) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (scope, id) DO UPDATE SET until = greatest(webhook_calls.until, EXCLUDED.until)
         RETURNING digest, first_at, done`,
        [scope, id, digest, at, until],
      );
      const [row] = rows;
      if (row === undefined) throw new Error('The call was neither written nor found');
      return { digest: row.digest, at: row.first_at, done: row.done };
    },
    async end({ scope, id }) {
      await pool().query('UPDATE webhook_calls SET done = true WHERE scope = $1 AND id = $2', [scope, id]);
    },
    async forget({ scope, id }) {
      await pool().query('DELETE FROM webhook_calls WHERE scope = $1 AND id = $2 AND NOT done', [scope, id]);
    },
  };
}
