import { randomBytes } from 'node:crypto';
import type { Postgres } from '@rollcall/local/postgres.ts';
import { Client } from 'pg';
import { inject, vi } from 'vitest';

/** An empty database of one test file's own. */
export interface TestDatabase extends AsyncDisposable {
  readonly url: string;
}

/**
 * Creates a database on the shared PostgreSQL. Disposing of it drops it and ends the connections to
 * it.
 */
export async function createDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(5).toString('hex')}`;
  await execute(`CREATE DATABASE ${name}`);
  const url = new URL(inject('postgresUrl'));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    [Symbol.asyncDispose]: () => execute(`DROP DATABASE ${name} WITH (FORCE)`),
  };
}

async function execute(sql: string): Promise<void> {
  const client = new Client({ connectionString: inject('postgresUrl') });
  await client.connect();
  try {
    await client.query(sql);
  } finally {
    await client.end();
  }
}

/**
 * Starts a PostgreSQL that was killed: it does not start while processes of the killed one are still
 * at work on the same data.
 */
export async function startAgain(postgres: Postgres): Promise<void> {
  await vi.waitFor(() => postgres.start(), { timeout: 60_000, interval: 200 });
}
