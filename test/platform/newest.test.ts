import { randomUUID } from 'node:crypto';
import type { NewestPage } from '@rollcall/platform/lists.ts';
import { isCursor, readNewest } from '@rollcall/platform/postgres/page.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';

const stack = new AsyncDisposableStack();
let pool: Pool;

beforeAll(async () => {
  const { url } = stack.use(await createDatabase());
  pool = createPool({ url, schema: 'public', maxConnections: 2, log: createLogger('test', 'silent') });
  stack.defer(() => pool.end());
  await pool.query(`CREATE TABLE things (id uuid PRIMARY KEY, subject text, created_at timestamptz NOT NULL);
    CREATE INDEX ON things (subject, created_at DESC, id DESC)`);
});

afterAll(() => stack.disposeAsync());

interface Thing {
  readonly id: string;
}

function read(subject: string, page: { limit?: number; offset?: number; cursor?: string } = {}) {
  const { limit = 3, offset = 0, cursor } = page;
  return readNewest<Thing>(pool, {
    columns: 'id',
    table: 'things',
    where: 'subject = $1',
    parameters: [subject],
    page: { limit, offset, cursor },
  });
}

const ids = ({ rows }: NewestPage<Thing>) => rows.map(({ id }) => id);

/** So many, three in each microsecond. @returns their ids, the newest first. */
async function addThings(subject: string, count: number, from = 0): Promise<string[]> {
  const { rows } = await pool.query<Thing>(
    `INSERT INTO things SELECT gen_random_uuid(), $1,
       timestamptz '2026-01-01 00:00:00.000001+00' + (n / 3) * interval '1 microsecond'
     FROM generate_series($3::int, $3::int + $2::int - 1) n RETURNING id`,
    [subject, count, from],
  );
  const { rows: sorted } = await pool.query<Thing>(
    'SELECT id FROM things WHERE id = ANY($1) ORDER BY created_at DESC, id DESC',
    [rows.map(({ id }) => id)],
  );
  return sorted.map(({ id }) => id);
}

test('pages by offset begin with the newest, and each knows how long the list is', async () => {
  const all = await addThings('offset', 8);
  const page = await read('offset', { offset: 2 });
  expect([ids(page), page.total]).toEqual([all.slice(2, 5), 8]);
  expect(await read('offset', { offset: 6 })).toMatchObject({ total: 8, nextCursor: null });
  expect(await read('offset', { offset: 100 })).toEqual({ rows: [], total: 8, nextCursor: null });
});

test('of a long list no more than 10,000 are counted, and cursors lead beyond them', async () => {
  const all = await addThings('long', 10_005);
  expect((await read('long')).total).toBe(10_000);
  const page = await read('long', { limit: 1, offset: 10_000 });
  expect([ids(page), page.total]).toEqual([[all[10_000]], 10_000]);
  const next = await read('long', { limit: 10, cursor: page.nextCursor ?? '' });
  expect([ids(next), next.total, next.nextCursor]).toEqual([all.slice(10_001), 10_000, null]);
});

test('by cursors everything is read once, however much of it is of the same instant and whatever is new', async () => {
  const all = await addThings('cursor', 20);
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await read('cursor', cursor === undefined ? {} : { cursor });
    seen.push(...ids(page));
    cursor = page.nextCursor ?? undefined;
    expect(cursor === undefined || isCursor(cursor)).toBe(true);
    await addThings('cursor', 1, 1000 + seen.length);
  } while (cursor !== undefined);
  expect(seen).toEqual(all);
});

test('what belongs to others is in no page', async () => {
  await addThings('mine', 2);
  await addThings('theirs', 2);
  expect((await read('mine', { limit: 10 })).total).toBe(2);
  const elsewhere = Buffer.from(`2999-01-01T00:00:00.000000Z ${randomUUID()}`).toString('base64url');
  expect((await read('mine', { limit: 10, cursor: elsewhere })).rows).toHaveLength(2);
  expect(await read('nobody')).toEqual({ rows: [], total: 0, nextCursor: null });
});
