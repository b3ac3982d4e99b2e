import { once } from 'node:events';
import { mkdtemp, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { type Postgres, startPostgres } from '@rollcall/local/postgres.ts';
import { migrate } from '@rollcall/platform/postgres/migrate.ts';
import { readPage } from '@rollcall/platform/postgres/page.ts';
import { createPool, inTransaction, isDatabaseUnavailable, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { Client } from 'pg';
import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';
import { createDatabase, startAgain } from '../support/postgres.ts';

const log = createLogger('test', 'silent');

function poolFor(url: string, maxConnections = 4): Pool {
  const pool = createPool({ url, schema: 'thing', maxConnections, log });
  onTestFinished(() => pool.end());
  return pool;
}

/** What an operation throws; fails the test when it does not. */
async function errorOf(operation: Promise<unknown>): Promise<unknown> {
  const [result] = await Promise.allSettled([operation]);
  if (result.status === 'fulfilled') throw new Error('It did not throw');
  return result.reason;
}

async function migrations(files: Record<string, string>): Promise<string> {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'migrations-'));
  for (const [name, sql] of Object.entries(files)) await writeFile(join(directory, name), sql);
  return directory;
}

const first = { '0001-things.sql': 'CREATE TABLE things (id int PRIMARY KEY); INSERT INTO things VALUES (1);' };
const second = { ...first, '0002-names.sql': 'SELECT pg_sleep(0.2); ALTER TABLE things ADD COLUMN name text;' };

async function isValid(pool: Pool): Promise<readonly unknown[]> {
  const found = await pool.query(
    "SELECT indisvalid AS valid FROM pg_index WHERE indexrelid = to_regclass('thing.things_by_id')",
  );
  return found.rows;
}

describe('migrations', () => {
  let url: string;

  beforeEach(async () => {
    const database = await createDatabase();
    url = database.url;
    return () => database[Symbol.asyncDispose]();
  });

  async function run(...directories: string[]): Promise<Pool> {
    const pool = poolFor(url);
    await migrate({ pool, schema: 'thing', directories, log });
    return pool;
  }

  test('are applied in the order of their names, from whichever directory', async () => {
    const shared = await migrations({
      '0001-things.sql': first['0001-things.sql'],
      '0003-more.sql': 'SELECT * FROM names',
    });
    const own = await migrations({ '0002-names.sql': 'CREATE TABLE names (id int REFERENCES things)' });
    const pool = await run(own, shared);
    const { rows } = await pool.query('SELECT name FROM migrations ORDER BY name');
    expect(rows.map(({ name }) => name)).toEqual(['0001-things.sql', '0002-names.sql', '0003-more.sql']);
  });

  test('are applied once, in order, whoever of several replicas comes first', async () => {
    await run(await migrations(first));
    const directory = await migrations({ ...second, 'README.md': 'no migration' });
    const pools = await Promise.all(Array.from({ length: 5 }, () => run(directory)));
    const { rows } = await (pools[0] ?? poolFor(url)).query('SELECT name FROM migrations ORDER BY applied_at, name');
    expect(rows).toEqual([{ name: '0001-things.sql' }, { name: '0002-names.sql' }]);
    const things = await (pools[1] ?? poolFor(url)).query('SELECT id, name FROM thing.things');
    expect(things.rows).toEqual([{ id: 1, name: null }]);
  });

  test('that were edited after they had been applied are refused, and nothing else is done', async () => {
    const pool = await run(await migrations(first));
    const edited = {
      '0001-things.sql': 'CREATE TABLE others (id int);',
      '0002-more.sql': 'CREATE TABLE more (id int);',
    };
    await expect(run(await migrations(edited))).rejects.toThrow(
      'Migration 0001-things.sql was changed after it had been applied',
    );
    expect((await pool.query(`SELECT to_regclass('thing.more') AS found`)).rows).toEqual([{ found: null }]);
  });

  test('that fail leave nothing, not even of those before them', async () => {
    const broken = { ...first, '0002-broken.sql': 'CREATE TABLE half (id int); SELECT no_such_function();' };
    const pool = poolFor(url);
    const error = await errorOf(run(await migrations(broken)));
    expect(isDatabaseUnavailable(error)).toBe(false);
    expect((await pool.query(`SELECT to_regclass('thing.things') AS found`)).rows).toEqual([{ found: null }]);
    await run(await migrations(second));
  });

  test('of a release that is older than the database are no reason to fail', async () => {
    await run(await migrations(second));
    await expect(run(await migrations(first))).resolves.toBeDefined();
  });

  const withIndex = {
    ...first,
    '0002-by-id.concurrently.sql': 'CREATE INDEX CONCURRENTLY IF NOT EXISTS things_by_id ON things (id);',
    '0003-more.sql': 'CREATE TABLE more (id int);',
  };
  test('that make an index while its table is written are applied once, and last', async () => {
    await run(await migrations(first));
    const writer = await poolFor(url).connect();
    onTestFinished(() => writer.release(true));
    // In a transaction, the index would have to wait for the end of this one, and all writers for the index.
    await writer.query('BEGIN; INSERT INTO things VALUES (2)');
    const directory = await migrations(withIndex);
    const all = Promise.all(Array.from({ length: 3 }, () => run(directory)));
    const other = poolFor(url);
    const building = `SELECT FROM pg_stat_activity WHERE datname = current_database()
      AND query LIKE 'CREATE INDEX%' AND wait_event_type = 'Lock'`;
    await expect.poll(async () => (await other.query(building)).rowCount, { timeout: 30_000 }).toBe(1);
    await other.query('INSERT INTO things VALUES (3)');
    await writer.query('COMMIT');
    const [pool = other] = await all;
    expect(await isValid(pool)).toEqual([{ valid: true }]);
    const { rows } = await pool.query('SELECT name FROM migrations ORDER BY applied_at');
    expect(rows.map(({ name }) => name)).toEqual(['0001-things.sql', '0003-more.sql', '0002-by-id.concurrently.sql']);
  });

  test('that were cut off in an index make it anew', async () => {
    const pool = await run(await migrations(first));
    await pool.query('INSERT INTO things SELECT n FROM generate_series(2, 5) AS n');
    await pool.query('ALTER TABLE things DROP CONSTRAINT things_pkey; INSERT INTO things VALUES (5)');
    const unique = {
      ...first,
      '0002-by-id.concurrently.sql': 'CREATE UNIQUE INDEX CONCURRENTLY things_by_id ON things (id);',
    };
    const directory = await migrations(unique);
    await expect(run(directory)).rejects.toThrow('could not create unique index');
    expect(await isValid(pool)).toEqual([{ valid: false }]);
    const byHand = 'CREATE UNIQUE INDEX CONCURRENTLY by_hand ON things (id)';
    await expect(pool.query(byHand)).rejects.toThrow('could not create unique index');
    await pool.query('DELETE FROM things WHERE id = 5');
    await run(directory);
    expect(await isValid(pool)).toEqual([{ valid: true }]);
    expect((await pool.query("SELECT FROM pg_class WHERE relname = 'by_hand'")).rowCount).toBe(1);
  });

  test('pages follow one another, and each has the length of the whole list', async () => {
    const pool = await run(await migrations(first));
    await pool.query('INSERT INTO things SELECT n FROM generate_series(2, 5) n');
    const page = (cursor?: string) =>
      readPage<{ id: number }>(pool, {
        columns: 'id',
        table: 'things',
        where: 'id > $1',
        parameters: [1],
        after: cursor === undefined ? undefined : { condition: (last) => `id > ${last}`, cursor },
        orderBy: 'id',
        limit: 3,
      });
    expect(await page()).toMatchObject({ rows: [{ id: 2 }, { id: 3 }, { id: 4 }], total: 4 });
    expect(await page('4')).toMatchObject({ rows: [{ id: 5 }], total: 4 });
    expect(await page('5')).toEqual({ rows: [], total: 4 });
  });

  test('transactions keep all or nothing, and a refused one leaves the connection usable', async () => {
    const pool = await run(await migrations(first));
    const work = inTransaction(pool, async (client) => {
      await client.query('INSERT INTO things VALUES (2)');
      await client.query('INSERT INTO things VALUES (1)');
    });
    const error = await errorOf(work);
    expect(error).toMatchObject({ code: '23505' });
    expect(isDatabaseUnavailable(error)).toBe(false);
    expect((await pool.query('SELECT id FROM things')).rows).toEqual([{ id: 1 }]);
    expect(pool.totalCount).toBe(1);
    expect(isDatabaseUnavailable(await errorOf(pool.query('SELECT * FROM nothing')))).toBe(false);
    expect(isDatabaseUnavailable(await errorOf(pool.query('no SQL')))).toBe(false);
  });
});

describe('a database that is unavailable', () => {
  let postgres: Postgres;

  beforeEach(async () => {
    postgres = await startPostgres({ directory: await mkdtemp(join(inject('temporaryDirectory'), 'postgres-')) });
    return () => postgres.stop();
  });

  test('is distinguished from a wrong query when it is killed, stopped, stopping or gone, and used again once it is back', async () => {
    const pool = poolFor(postgres.url, 2);
    const running = [
      errorOf(pool.query('SELECT pg_sleep(30)')),
      errorOf(inTransaction(pool, (client) => client.query('SELECT pg_sleep(30)'))),
    ];
    await sleep(500);
    await postgres.kill();
    for (const error of await Promise.all(running)) expect(isDatabaseUnavailable(error)).toBe(true);
    const refused = await errorOf(pool.query('SELECT 1'));
    expect(refused).toMatchObject({ code: 'ECONNREFUSED' });
    expect(isDatabaseUnavailable(refused)).toBe(true);

    await startAgain(postgres);
    expect((await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);

    // "Smart" shutdown: the server waits for its clients and refuses new ones with 57P03, as it
    // does while it starts.
    const client = new Client({ connectionString: postgres.url });
    client.on('error', () => undefined);
    await client.connect();
    process.kill(postgres.pid ?? 0, 'SIGTERM');
    let stopping: unknown;
    const newcomer = async () => {
      const other = new Client({ connectionString: postgres.url });
      stopping = await other.connect().then(
        () => other.end(),
        (error: unknown) => error,
      );
      return stopping;
    };
    // The signal takes a moment to be heard.
    await expect.poll(newcomer).toMatchObject({ code: '57P03' });
    expect(isDatabaseUnavailable(stopping)).toBe(true);
    await client.end();
  });

  test('fails in time when it is frozen, and loses no connection of the pool to it for good', async () => {
    const pool = poolFor(postgres.url, 1);
    await pool.query('SELECT 1');
    const backend = (await pool.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]?.pid ?? 0;
    await freeze(backend);
    const startedAt = performance.now();
    const errors = await Promise.all([errorOf(pool.query('SELECT 1')), errorOf(pool.query('SELECT 2'))]);
    expect(performance.now() - startedAt).toBeLessThan(45_000);
    for (const error of errors) expect(isDatabaseUnavailable(error)).toBe(true);
    thaw(backend);
    await expect.poll(async () => (await pool.query('SELECT 1 AS one')).rows).toEqual([{ one: 1 }]);
  });
});

test('a host that accepts and says nothing is unavailable', async () => {
  const silent = createServer(() => undefined);
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => void silent.close());
  const address = silent.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const error = await errorOf(poolFor(`postgres://u:secret@127.0.0.1:${port}/d`).query('SELECT 1'));
  expect(isDatabaseUnavailable(error)).toBe(true);
  expect(String(error)).not.toContain('secret');
});
