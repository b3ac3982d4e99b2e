import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { escapeIdentifier, type QueryConfig } from 'pg';
import type { Logger } from '../process/log.ts';
import { inTransaction, type Pool, type PoolClient } from './pool.ts';

export interface MigrateOptions {
  readonly pool: Pool;
  readonly schema: string;
  /** With `NNNN-name.sql` files, applied in the order of their names, wherever they are. */
  readonly directories: readonly string[];
  readonly log: Logger;
}

/** Those of the tables that the platform reads and writes in the schema of each service of subjects. */
export const platformMigrations = fileURLToPath(new URL('../../migrations', import.meta.url));

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
export async function migrate({ pool, schema, directories, log }: MigrateOptions): Promise<void> {
  const files = await filesIn(directories);
  await inTransaction(pool, async (client) => {
    await client.query(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}`);
    await client.query(patient('SELECT pg_advisory_xact_lock(hashtext($1))', [`rollcall-migrate-${schema}`]));
    await ensureSchema(client, schema);
    await client.query(
      `CREATE TABLE IF NOT EXISTS migrations (
         name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const applied = await appliedMigrations(client);
    for (const file of files) {
      const name = basename(file);
      const sql = await readFile(file, 'utf8');
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

async function filesIn(directories: readonly string[]): Promise<readonly string[]> {
  const files = await Promise.all(
    directories.map(async (directory) => (await readdir(directory)).map((name) => join(directory, name))),
  );
  return files
    .flat()
    .filter((file) => file.endsWith('.sql'))
    .toSorted((a, b) => (basename(a) < basename(b) ? -1 : 1));
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
