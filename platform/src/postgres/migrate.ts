import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { escapeIdentifier, type QueryConfig } from 'pg';
import type { Logger } from '../process/log.ts';
import { sleep } from '../retry.ts';
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
/** Of an index on a table that is in use. */
const INDEX_TIMEOUT_MS = 6 * 3_600_000;
const LOCK_POLL_MS = 200;
/** Of files whose one statement PostgreSQL takes in no transaction. */
const CONCURRENT = '.concurrently.sql';

/**
 * Brings the schema up to date: creates it where there is none and applies the migrations that it
 * lacks, all in one transaction. Replicas that start together wait for one another on an advisory
 * lock. Indexes that are made or dropped while their table is in use (`NNNN-name.concurrently.sql`)
 * come after all others, each by itself (docs/decisions/0518).
 *
 * @throws when a migration fails (nothing of the transaction is changed then) or when one that was
 * applied has been edited since.
 */
export async function migrate(options: MigrateOptions): Promise<void> {
  const files = await filesIn(options.directories);
  await applyTogether(
    options,
    files.filter((file) => !file.endsWith(CONCURRENT)),
  );
  await applyConcurrently(
    options,
    files.filter((file) => file.endsWith(CONCURRENT)),
  );
}

async function applyTogether({ pool, schema, log }: MigrateOptions, files: readonly string[]): Promise<void> {
  await inTransaction(pool, async (client) => {
    await client.query(`SET LOCAL statement_timeout = ${MIGRATION_TIMEOUT_MS}`);
    await client.query(
      patient('SELECT pg_advisory_xact_lock(hashtext($1))', { values: [`rollcall-migrate-${schema}`] }),
    );
    await ensureSchema(client, schema);
    await client.query(
      `CREATE TABLE IF NOT EXISTS migrations (
         name text PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    for (const { name, sql, checksum } of await lackingOf(client, files)) {
      await client.query(patient(sql));
      await client.query(APPLIED, [name, checksum]);
      log.info({ migration: name }, 'migration applied');
    }
  });
}

const APPLIED = 'INSERT INTO migrations (name, checksum) VALUES ($1, $2)';

/**
 * Who waits for the lock asks again and again: a statement that waits for it keeps a snapshot, for whose end
 * `CREATE INDEX CONCURRENTLY` waits in turn.
 */
async function applyConcurrently({ pool, schema, log }: MigrateOptions, files: readonly string[]): Promise<void> {
  if ((await lackingOf(pool, files)).length === 0) return;
  const client = await pool.connect();
  try {
    await client.query(`SET statement_timeout = ${INDEX_TIMEOUT_MS}`);
    while (!(await hasLock(client, `rollcall-indexes-${schema}`))) await sleep(LOCK_POLL_MS);
    for (const { name, sql, checksum } of await lackingOf(client, files)) {
      await dropHalfMade(client, { schema, sql });
      await client.query(patient(sql, { timeoutMs: INDEX_TIMEOUT_MS }));
      await client.query(APPLIED, [name, checksum]);
      log.info({ migration: name }, 'migration applied');
    }
  } finally {
    // With its lock and its settings.
    client.release(true);
  }
}

async function hasLock(client: PoolClient, name: string): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_lock(hashtext($1)) AS locked', [
    name,
  ]);
  return rows[0]?.locked === true;
}

/** What a build of these indexes left that failed, or whose replica died: nothing reads it, and writes keep it up. */
async function dropHalfMade(client: PoolClient, { schema, sql }: { schema: string; sql: string }): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `SELECT relname AS name FROM pg_index JOIN pg_class ON pg_class.oid = indexrelid
     WHERE NOT indisvalid AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = $1)`,
    [schema],
  );
  const words = new Set(sql.match(/\w+/g));
  // Another one may be somebody's who builds it by hand.
  for (const { name } of rows.filter((row) => words.has(row.name))) {
    await client.query(`DROP INDEX CONCURRENTLY IF EXISTS ${escapeIdentifier(schema)}.${escapeIdentifier(name)}`);
  }
}

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

/** @throws Error where one that was applied has been edited since. */
async function lackingOf(client: Pool | PoolClient, files: readonly string[]): Promise<readonly Migration[]> {
  const applied = await appliedMigrations(client);
  const all = await Promise.all(
    files.map(async (file) => {
      const sql = await readFile(file, 'utf8');
      return { name: basename(file), sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
  const edited = all.find(({ name, checksum }) => (applied.get(name) ?? checksum) !== checksum);
  if (edited !== undefined) throw new Error(`Migration ${edited.name} was changed after it had been applied`);
  return all.filter(({ name }) => !applied.has(name));
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

async function appliedMigrations(client: Pool | PoolClient): Promise<Map<string, string>> {
  const { rows } = await client.query<{ name: string; checksum: string }>('SELECT name, checksum FROM migrations');
  return new Map(rows.map((row) => [row.name, row.checksum]));
}

interface Patience {
  readonly values?: string[];
  readonly timeoutMs?: number;
}

/** pg's types do not know that a query may have a limit of its own. */
function patient(
  text: string,
  { values, timeoutMs = MIGRATION_TIMEOUT_MS }: Patience = {},
): QueryConfig & { readonly query_timeout: number } {
  return { text, ...(values === undefined ? {} : { values }), query_timeout: timeoutMs };
}
