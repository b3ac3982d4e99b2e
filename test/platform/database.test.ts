import { createDatabase as createActor, type Database } from '@rollcall/platform/postgres/database.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { Client } from 'pg';
import { expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';

const log = createLogger('test', 'silent');

/** A database of one test, and what keeps an eye on it. */
async function startDatabase(stack: AsyncDisposableStack, maxConnections: number) {
  const { url } = stack.use(await createDatabase());
  const pool = createPool({ url, schema: 'thing', maxConnections, log });
  stack.defer(() => pool.end());
  const database: Database = createActor({ pool, url, schema: 'thing', migrations: [], log });
  stack.defer(() => database.stop());
  await database.start();
  expect(database.connected()).toBe(true);
  return { url, pool, database };
}

test('a pool whose connections are all at work says nothing bad of the database', { timeout: 60_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const { url, pool, database } = await startDatabase(stack, 2);
  const taken = [await pool.connect(), await pool.connect()];
  stack.defer(() => {
    for (const client of taken) client.release();
  });
  const watcher = new Client({ connectionString: url });
  await watcher.connect();
  stack.defer(() => watcher.end());
  const lastLook = async () => {
    const { rows } = await watcher.query<{ at: Date }>(
      `SELECT query_start AS at FROM pg_stat_activity
       WHERE datname = current_database() AND query = 'SELECT 1' AND pid <> pg_backend_pid()`,
    );
    return rows[0]?.at.getTime() ?? 0;
  };
  for (let looks = 0; looks < 2; looks += 1) {
    const before = await lastLook();
    await expect.poll(lastLook, { timeout: 25_000 }).toBeGreaterThan(before);
    expect(database.connected()).toBe(true);
  }
});

test('a database that is lost is noticed, although nothing else is at work there', { timeout: 60_000 }, async () => {
  await using stack = new AsyncDisposableStack();
  const { url, database } = await startDatabase(stack, 2);
  const name = new URL(url).pathname.slice(1);
  const elsewhere = new URL(url);
  elsewhere.pathname = '/postgres';
  const client = new Client({ connectionString: elsewhere.href });
  await client.connect();
  stack.defer(() => client.end());
  const allow = (may: boolean) => client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS ${may}`);
  await allow(false);
  stack.defer(async () => void (await allow(true)));
  await client.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [name]);
  await expect.poll(() => database.connected(), { timeout: 25_000 }).toBe(false);
  await allow(true);
  await expect.poll(() => database.connected(), { timeout: 25_000 }).toBe(true);
});
