import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { escapeIdentifier, type QueryConfig } from 'pg';
import type { Logger } from '../process/log.ts';
import { inTransaction, type Pool, type PoolClient } from './pool.ts';

export interface MigrateOptions {
  readonly pool: Pool;
  readonly schema: string;
  /** Directory of `NNNN-name.sql` files, applied in the order of their names. */
  readonly directory: string;
  readonly log: Logger;
}

/** Neither a long migration nor the wait for that of another replica is a query gone astray. */
const MIGRATION_TIMEOUT_MS = 600_000;

/**
 * Brings the schema up to date: creates it where there is none and applies the migrations that it
 * lacks, all in one transaction. Replicas that start together wait for one another on an advisory
 * lock.
 *
 * @throws when a migration fails (nothing is changed then) or when one that was applied has been
 * edited since.
 */
export async function migrate({ pool, schema, directory, log }: MigrateOptions): Promise<void> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  await inTransaction(pool, async (client) => {
    await client.query(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}`);
    await client.query(patient('SELECT pg_advisory_xact_lock(hashtext($1))', [`rollcall-migrate-${schema}`]));
    await ensureSchema(client, schema);
    await client.query(
      `CREATE TABLE IF NOT EXISTS migrations (
         name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const applied = await appliedMigrations(client);
    for (const name of names) {
      const sql = await readFile(join(directory, name), 'utf8');
      const checksum = createHash('sha256').update(sql).digest('hex');
      const known = applied.get(name);
      if (known === checksum) continue;
      if (known !== undefined) throw new Error(`Migration ${name} was changed after it had been applied`);
      await client.query(patient(sql));
      await client.query('INSERT INTO migrations (name, checksum) VALUES ($1, $2)', [name, checksum]);
      log.info({ migration: name }, 'migration applied');
    }
  });
}

/**
 * Creates the schema where there is none, for which the role needs a right that it needs for
 * nothing else.
 */
export async function ensureSchema(client: Pool | PoolClient, schema: string): Promise<void> {
  const { rowCount } = await client.query('SELECT FROM pg_namespace WHERE nspname = $1', [schema]);
  // Two that start together may both find none.
  if (rowCount === 0) await client.query(`CREATE SCHEMA IF NOT EXISTS ${escapeIdentifier(schema)}`);
}

async function appliedMigrations(client: PoolClient): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>('SELECT name, checksum FROM migrations');
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

/** pg's types do not know that a query may have a limit of its own. */
function patient(text: string, values?: string[]): QueryConfig & { readonly query_timeout: number } {
  return { text, ...(values === undefined ? {} : { values }), query_timeout: MIGRATION_TIMEOUT_MS };
}
