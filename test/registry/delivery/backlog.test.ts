import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase } from '../../support/postgres.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { newJob, setStatus, startDelivery } from './fixture.ts';

const eventually = { timeout: 60_000, interval: 100 };
const WAITING_MAX = 1000;

let namespace: TestNamespace;
let receiver: Receiver;

beforeAll(async () => {
  [namespace, receiver] = await Promise.all([createNamespace('backlog'), startReceiver()]);
});

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
});

interface OldDeliveries {
  readonly service: string;
  readonly state: 'pending' | 'delivered' | 'dead';
  readonly count: number;
  readonly days: number;
}

/**
 * Deliveries as they stand in the database when so many days have passed since their last attempt.
 */
async function fill(pool: Pool, { service, state, count, days }: OldDeliveries): Promise<void> {
  await pool.query(
    `INSERT INTO deliveries (id, service_name, channel, event, payload, state, attempts, last_attempt_at, lane, queue_id, created_at)
     SELECT gen_random_uuid(), $1, 'chat', 'notification', '{"message":"m","severity":"info"}', $2, 1,
       now() - make_interval(days => $3), 'lane', gen_random_uuid(), now() - make_interval(days => $3 + 1)
     FROM generate_series(1, $4)`,
    [service, state, days, count],
  );
}

async function counts(pool: Pool): Promise<Record<string, number>> {
  const { rows } = await pool.query<{ service_name: string; n: number }>(
    'SELECT service_name, count(*)::int AS n FROM deliveries GROUP BY 1',
  );
  return Object.fromEntries(rows.map((row) => [row.service_name, row.n]));
}

/** A database with the tables of a registry, which no longer runs. */
async function migratedDatabase() {
  await using stack = new AsyncDisposableStack();
  const { url } = stack.use(await createDatabase());
  await using _ = await startDelivery({ namespace: namespace.name, databaseUrl: url });
  const pool = createPool({ url, schema: 'registry', maxConnections: 2, log: createLogger('test', 'silent') });
  stack.defer(() => pool.end());
  const kept = stack.move();
  return { url, pool, [Symbol.asyncDispose]: () => kept.disposeAsync() };
}

const notification = (service_name: string, channel = 'chat') => ({ service_name, channel, message: 'Hello' });

test('what is old is deleted some at a time, by an index, and what is young or on its way stays', {
  timeout: 180_000,
}, async () => {
  await using database = await migratedDatabase();
  await fill(database.pool, { service: 'old-delivered', state: 'delivered', count: 4500, days: 8 });
  await fill(database.pool, { service: 'old-dead', state: 'dead', count: 2500, days: 91 });
  await fill(database.pool, { service: 'young-delivered', state: 'delivered', count: 5000, days: 6 });
  await fill(database.pool, { service: 'young-dead', state: 'dead', count: 5000, days: 89 });
  await database.pool.query(`
    ANALYZE deliveries;
    CREATE TABLE deletions (n int NOT NULL);
    CREATE FUNCTION note_deletion() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN INSERT INTO registry.deletions SELECT count(*) FROM gone; RETURN NULL; END';
    CREATE TRIGGER deletion AFTER DELETE ON deliveries REFERENCING OLD TABLE AS gone
      FOR EACH STATEMENT EXECUTE FUNCTION note_deletion();`);
  await using delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
  await expect.poll(() => counts(delivery.pool), eventually).toEqual({ 'young-delivered': 5000, 'young-dead': 5000 });
  const { rows } = await database.pool.query<{ most: number; total: number }>(
    'SELECT max(n)::int AS most, sum(n)::int AS total FROM deletions',
  );
  expect(rows).toEqual([{ most: 1000, total: 7000 }]);
  const scans = `SELECT idx_scan::int AS n FROM pg_stat_user_indexes WHERE indexrelname = 'deliveries_settled'`;
  await expect
    .poll(async () => (await database.pool.query<{ n: number }>(scans)).rows[0]?.n, eventually)
    .toBeGreaterThan(0);
});

test('what cannot be deleted holds nothing up, and is not tried at every turn', { timeout: 180_000 }, async () => {
  await using database = await migratedDatabase();
  await fill(database.pool, { service: 'stuck', state: 'delivered', count: 10, days: 8 });
  await database.pool.query(`
    CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not now''; END';
    CREATE TRIGGER refusal BEFORE DELETE ON deliveries FOR EACH ROW EXECUTE FUNCTION refuse();`);
  await using delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
  const endpoints = { chat: `${receiver.url}/stuck` };
  await delivery.post('/webhooks/config', { service_name: 'moving', endpoints });
  const failures = () => delivery.logs().split('what is old could not be deleted').length - 1;
  await expect.poll(failures, eventually).toBe(1);
  const arrived = () => receiver.received.filter(({ path }) => path === '/stuck').length;
  for (let sent = 1; sent <= 5; sent += 1) {
    expect((await delivery.post('/webhooks/notify', notification('moving'))).status).toBe(200);
    await expect.poll(arrived, eventually).toBe(sent);
  }
  expect(failures()).toBe(1);
  expect(await counts(delivery.pool)).toEqual({ stuck: 10, moving: 5 });
});

test('a channel for which too many wait accepts no more; others do, and job events are kept as dead letters', {
  timeout: 180_000,
}, async () => {
  await using database = await createDatabase();
  await using deaf = await startReceiver();
  deaf.answer('hang');
  // Nothing that waits is given up while the test runs.
  await using delivery = await startDelivery({
    namespace: namespace.name,
    databaseUrl: database.url,
    retryLimit: 1000,
  });
  const endpoints = { chat: deaf.url, ops: `${receiver.url}/ops` };
  for (const service_name of ['full', 'other']) {
    expect((await delivery.post('/webhooks/config', { service_name, endpoints })).status).toBe(200);
  }
  await fill(delivery.pool, { service: 'full', state: 'pending', count: WAITING_MAX - 1, days: 0 });
  expect((await delivery.post('/webhooks/notify', notification('full'))).status).toBe(200);
  const refused = await delivery.post('/webhooks/notify', notification('full'));
  expect(refused).toMatchObject({
    status: 503,
    body: { error: 'Channel is full', message: "Too many notifications wait for channel 'chat' of service 'full'" },
  });
  expect(refused.headers.get('retry-after')).toBe('1');
  expect((await delivery.post('/webhooks/notify', notification('full', 'ops'))).status).toBe(200);
  expect((await delivery.post('/webhooks/notify', notification('other'))).status).toBe(200);
  expect(await counts(delivery.pool)).toEqual({ full: WAITING_MAX + 1, other: 1 });

  await delivery.jobs.create(newJob('job', { serviceName: 'full' }));
  await setStatus(delivery.jobs, 'job', { phase: 'Failed', finishedAt: '2026-11-20T12:01:00Z' });
  const dead = async () => (await delivery.get('/webhooks/deliveries?service_name=full&state=dead')).body['deliveries'];
  await expect
    .poll(dead, eventually)
    .toMatchObject([
      { event: 'job.failed', channel: 'chat', attempts: 0, last_result: 'not sent: 1000 others wait for the channel' },
    ]);
  await expect.poll(() => receiver.received.filter(({ path }) => path === '/ops').length, eventually).toBe(2);
  const [letter] = (await dead()) as { id: string }[];
  const replay = () => delivery.post(`/webhooks/deliveries/${letter?.id}/replay`, {});
  const read = async () => (await delivery.get(`/webhooks/deliveries/${letter?.id}`)).body['state'];
  expect(await replay()).toMatchObject({ status: 503, body: { error: 'Channel is full' } });
  expect(await read()).toBe('dead');

  await delivery.pool.query(`DELETE FROM deliveries WHERE service_name = 'full' AND event = 'notification' AND id IN (
    SELECT id FROM deliveries WHERE service_name = 'full' AND channel = 'chat' AND state = 'pending' LIMIT 500)`);
  expect((await replay()).status).toBe(200);
  expect(await read()).toBe('pending');
  // It is on its way, which is what was asked for, however many wait.
  await fill(delivery.pool, { service: 'full', state: 'pending', count: 500, days: 0 });
  expect((await replay()).status).toBe(200);
  await delivery.pool.query(`DELETE FROM deliveries WHERE service_name = 'full' AND event = 'notification' AND id IN (
    SELECT id FROM deliveries WHERE service_name = 'full' AND channel = 'chat' AND state = 'pending' LIMIT 500)`);
  expect((await delivery.post('/webhooks/notify', notification('full'))).status).toBe(200);
});
