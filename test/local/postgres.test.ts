import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive } from '@rollcall/local/file-lock.ts';
import { isPortFree } from '@rollcall/local/ports.ts';
import { startPostgres } from '@rollcall/local/postgres.ts';
import { Client } from 'pg';
import { expect, inject, test } from 'vitest';
import { createDatabase, startAgain } from '../support/postgres.ts';

async function query(connectionString: string, sql: string): Promise<unknown[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    const { rows } = await client.query({ text: sql, rowMode: 'array' });
    return rows.flat();
  } finally {
    await client.end();
  }
}

test('PostgreSQL keeps what was committed when it is killed, and leaves nothing when it is stopped', async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'postgres-'));
  const postgres = await startPostgres({ directory: join(directory, 'own') });
  const url = await postgres.createDatabase('odd "name"');
  await query(url, 'CREATE TABLE kept AS SELECT 42 AS answer');
  const killed = postgres.pid;

  await postgres.kill();
  expect(postgres.pid).toBeUndefined();
  await expect(query(url, 'SELECT 1')).rejects.toThrow('ECONNREFUSED');
  await startAgain(postgres);
  expect(postgres.pid).not.toBe(killed);
  expect(await query(url, 'SELECT answer FROM kept')).toEqual([42]);
  expect(await query(url, "SELECT upper('é')")).toEqual(['É']);

  const wrongPassword = new URL(url);
  wrongPassword.password = 'guess';
  await expect(query(wrongPassword.href, 'SELECT 1')).rejects.toThrow('password authentication failed');

  const { pid } = postgres;
  await postgres.stop();
  expect(isAlive(pid ?? 0)).toBe(false);
  expect(await isPortFree(postgres.port)).toBe(true);
});

test('each file gets an empty database of its own', async () => {
  await using first = await createDatabase();
  await using second = await createDatabase();
  await query(first.url, 'CREATE TABLE mine (id int)');
  await expect(query(second.url, 'SELECT * FROM mine')).rejects.toThrow('does not exist');
});
