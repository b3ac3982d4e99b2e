import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';

const log = createLogger('test', 'silent');
const stack = new AsyncDisposableStack();
let database: TestDatabase;
let pool: Pool;

interface Thing {
  readonly id: string;
}

beforeAll(async () => {
  database = stack.use(await createDatabase());
  pool = createPool({ url: database.url, schema: 'public', maxConnections: 10, log });
  stack.defer(() => pool.end());
  await pool.query(`CREATE TABLE things (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), due_at timestamptz, done int DEFAULT 0);
    CREATE INDEX ON things (due_at) WHERE due_at IS NOT NULL`);
});

afterAll(() => stack.disposeAsync());

beforeEach(async () => void (await pool.query('TRUNCATE things')));

async function add(count: number, dueInSeconds: number | null = 0): Promise<void> {
  await pool.query('INSERT INTO things (due_at) SELECT now() + make_interval(secs => $2) FROM generate_series(1, $1)', [
    count,
    dueInSeconds,
  ]);
}

function take(limit: number, leaseSeconds = 30): Promise<readonly Thing[]> {
  return takeDueRows<Thing>({ pool, table: 'things', columns: 'id', leaseSeconds, limit });
}

async function counted(): Promise<{ done: number; most: number }> {
  const { rows } = await pool.query<{ done: number; most: number }>(
    'SELECT count(*) FILTER (WHERE done > 0)::int AS done, max(done)::int AS most FROM things',
  );
  return rows[0] ?? { done: 0, most: 0 };
}

async function finish({ id }: Thing): Promise<void> {
  await pool.query('UPDATE things SET done = done + 1, due_at = NULL WHERE id = $1', [id]);
}

function worker(options: { concurrency?: number; work?: typeof finish; takeFrom?: typeof take } = {}): DueWork {
  const { concurrency = 8, work = finish, takeFrom = take } = options;
  return createDueWork({ name: 'things', take: takeFrom, work, concurrency, pollMs: 50, log });
}

test('eight workers do each of 1,000 rows once', async () => {
  await add(1000);
  const workers = Array.from({ length: 8 }, () => worker());
  await Promise.all(workers.map((each) => each.start()));
  await vi.waitUntil(async () => (await counted()).done === 1000, { timeout: 20_000, interval: 100 });
  await Promise.all(workers.map((each) => each.stop()));
  expect(await counted()).toEqual({ done: 1000, most: 1 });
});

test('what is due later, or never, is left alone', async () => {
  await add(2, 60);
  await add(2, null);
  expect(await take(10)).toEqual([]);
});

test('a row is due again when the lease of whoever took it has ended, and not before', async () => {
  await add(1);
  const [taken] = await take(1, 1);
  expect(await take(1)).toEqual([]);
  await vi.waitUntil(async () => (await take(1))[0]?.id === taken?.id, { timeout: 30_000, interval: 100 });
});

test('no more run at a time than may', async () => {
  await add(12);
  let running = 0;
  let most = 0;
  const work = async (thing: Thing) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise((resolve) => setTimeout(resolve, 20));
    await finish(thing);
    running -= 1;
  };
  const due = worker({ concurrency: 3, work });
  await due.start();
  await vi.waitUntil(async () => (await counted()).done === 12, { timeout: 10_000 });
  await due.stop();
  expect(most).toBe(3);
});

test('work that throws, and a database that is away, do not end it', async () => {
  await add(3);
  let isAway = true;
  let failures = 0;
  const due = worker({
    takeFrom: (limit) => (isAway ? Promise.reject(new Error('away')) : take(limit, 1)),
    work: async (thing) => {
      failures += 1;
      if (failures === 1) throw new Error('fails once');
      await finish(thing);
    },
  });
  await due.start();
  isAway = false;
  await vi.waitUntil(async () => (await counted()).done === 3, { timeout: 10_000 });
  await due.stop();
  expect(failures).toBe(4);
});

test('it stops once what it has begun is done', async () => {
  await add(1);
  const started = Promise.withResolvers<void>();
  const due = worker({
    work: async (thing) => {
      started.resolve();
      await new Promise((resolve) => setTimeout(resolve, 300));
      await finish(thing);
    },
  });
  await due.start();
  await started.promise;
  await due.stop();
  expect(await counted()).toEqual({ done: 1, most: 1 });
});
