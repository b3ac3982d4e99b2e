import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { isStandardSignedWith, sign } from '@rollcall/platform/webhooks/signatures.ts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { startRegistryProcess } from '../../support/registry.ts';
import { type DeliveryFixture, newJob, recordUpdate, setStatus, startDelivery } from './fixture.ts';

const eventually = { timeout: 40_000, interval: 100 };

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let replica: DeliveryFixture;
let receiver: Receiver;

beforeAll(async () => {
  namespace = await createNamespace('events');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url, retryLimit: 3 };
  [delivery, replica] = await Promise.all([startDelivery(options), startDelivery(options)]);
  receiver = await startReceiver();
});

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await replica[Symbol.asyncDispose]();
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

async function configure(service_name: string, more: object = {}): Promise<void> {
  const endpoints = { chat: `${receiver.url}/${service_name}` };
  expect((await delivery.post('/webhooks/config', { service_name, endpoints, ...more })).status).toBe(200);
}

/** What came at a path, in the order of the messages' times. */
function receivedAt(path: string) {
  return receiver.received
    .filter((request) => request.path === path)
    .map(({ headers, body }) => ({ headers, body, message: JSON.parse(body) }))
    .toSorted((a, b) => (a.message.timestamp < b.message.timestamp ? -1 : 1));
}

const typesAt = (path: string): string[] => receivedAt(path).map(({ message }) => message.type);

/** Long enough for what should not come to come. */
const settle = () => new Promise((resolve) => setTimeout(resolve, 3000));

test('a job is reported from its start to its end, each event once, signed and with its record', async () => {
  await configure('canary', { secret: 'k3y-and-long-enough' });
  await delivery.jobs.create(newJob('canary-1', { serviceName: 'canary', strategy: 'Canary' }));
  const states = [
    { phase: 'Pending' },
    { phase: 'Progressing', step: 0, weight: 10, startedAt: '2026-11-20T12:00:00Z', oldVersion: '1.0.0' },
    { phase: 'Verifying', step: 0 },
    { phase: 'Paused', step: 0 },
    { phase: 'Progressing', step: 1, weight: 50 },
    { phase: 'Promoting', step: 1, weight: 100 },
    { phase: 'Succeeded', finishedAt: '2100-11-20T12:01:00Z' },
  ] as const;
  const types = ['job.started', 'job.step', 'job.step', 'job.step', 'job.step', 'job.succeeded'];
  const expected = [0, 2, 2, 3, 4, 5, 6];
  for (const [i, status] of states.entries()) {
    await setStatus(delivery.jobs, 'canary-1', status);
    await expect.poll(() => receivedAt('/canary').length, eventually).toBe(expected[i]);
  }
  await settle();
  expect(typesAt('/canary').toSorted()).toEqual(types);
  expect(typesAt('/canary').at(-1)).toBe('job.succeeded');
  const sent = receivedAt('/canary');
  expect(sent[0]?.message).toEqual({
    id: expect.any(String),
    type: 'job.started',
    service_name: 'canary',
    channel: 'chat',
    message: "Deployment of 'canary' to version 1.1.0 has started",
    severity: 'info',
    timestamp: '2026-11-20T12:00:00.000Z',
    job: expect.objectContaining({ job_id: 'canary-1', phase: 'Progressing', weight: 10, strategy: 'canary' }),
  });
  expect(sent.at(-1)?.message.job).toMatchObject({ phase: 'Succeeded', finished_at: '2100-11-20T12:01:00.000+00:00' });
  for (const { headers, body, message } of sent) {
    expect(headers).toMatchObject({
      'webhook-id': message.id,
      'x-webhook-signature': sign('k3y-and-long-enough', body),
    });
    const signed = { id: message.id, timestamp: String(headers['webhook-timestamp']), body };
    expect(isStandardSignedWith('k3y-and-long-enough', signed, String(headers['webhook-signature']))).toBe(true);
  }
  expect(new Set(sent.map(({ message }) => message.id)).size).toBe(sent.length);
});

test.each([
  ['Failed', 'job.failed', 'has failed: no such image'],
  ['RolledBack', 'job.rolled_back', 'was rolled back: no such image'],
] as const)('a job that ends as %s says why', async (phase, type, message) => {
  const service = `end-${phase.toLowerCase()}`;
  await configure(service);
  await delivery.jobs.create(newJob(service, { serviceName: service }));
  await setStatus(delivery.jobs, service, {
    phase,
    message: 'It is over',
    failure: { reason: 'ImagePull', message: 'no such image' },
    startedAt: '2026-11-20T12:00:00Z',
    finishedAt: '2026-11-20T12:01:00Z',
  });
  await expect.poll(() => typesAt(`/${service}`).toSorted(), eventually).toEqual([type, 'job.started'].toSorted());
  const event = receivedAt(`/${service}`).find((event) => event.message.type === type);
  expect(event?.message).toMatchObject({ message: expect.stringContaining(message), job: { reason: 'ImagePull' } });
});

test('every channel of the service gets it; the global ones only where it has none', async () => {
  const endpoints = { ops: `${receiver.url}/global-ops`, all: `${receiver.url}/global-all` };
  await delivery.post('/webhooks/config', { endpoints });
  const own = { a: `${receiver.url}/own-a`, slack: `${receiver.url}/own-slack` };
  await configure('owner', { endpoints: own });
  await configure('orphan', { endpoints: {} });
  for (const serviceName of ['owner', 'orphan', 'stranger']) {
    await delivery.jobs.create(newJob(`reported-${serviceName}`, { serviceName }));
    await setStatus(delivery.jobs, `reported-${serviceName}`, { phase: 'Failed', finishedAt: '2026-11-20T12:01:00Z' });
  }
  const paths = () => receiver.received.map(({ path }) => path).filter((path) => /^\/(global|own)-/.test(path));
  const all = ['/global-all', '/global-all', '/global-ops', '/global-ops', '/own-a', '/own-slack'];
  await expect.poll(() => paths().toSorted(), eventually).toEqual(all);
  await settle();
  expect(paths().toSorted()).toEqual(all);
  const slack = receiver.received.find(({ path }) => path === '/own-slack');
  expect(JSON.parse(slack?.body ?? '')).toMatchObject({
    text: expect.stringContaining("'owner'"),
    blocks: expect.any(Array),
  });
});

test('what finished while no registry ran is sent when one runs again; what was sent before is not', {
  timeout: 180_000,
}, async () => {
  const own = await createNamespace('asleep');
  await using ownDatabase = await createDatabase();
  const options = { namespace: own.name, databaseUrl: ownDatabase.url };
  const endpoints = { chat: `${receiver.url}/asleep` };
  {
    await using first = await startDelivery(options);
    await first.post('/webhooks/config', { service_name: 'shop', endpoints });
    await first.jobs.create(newJob('early'));
    await setStatus(first.jobs, 'early', { phase: 'Progressing', startedAt: '2026-11-20T12:00:00Z' });
    await expect.poll(() => typesAt('/asleep'), eventually).toEqual(['job.started']);
    await first.jobs.create(newJob('late'));
    await expect.poll(async () => (await first.jobs.get('late')).metadata.finalizers, eventually).toHaveLength(1);
  }
  const finished = { startedAt: '2026-11-20T12:00:00Z', finishedAt: '2026-11-20T12:01:00Z' };
  await setStatus(jobsIn(own), 'early', { phase: 'Succeeded', ...finished });
  await setStatus(jobsIn(own), 'late', { phase: 'RolledBack', ...finished });
  // Deleted as well: held by its finalizer alone.
  await jobsIn(own).delete('late');
  {
    await using second = await startDelivery(options);
    const all = ['job.rolled_back', 'job.started', 'job.started', 'job.succeeded'];
    await expect.poll(() => typesAt('/asleep').toSorted(), eventually).toEqual(all);
    await expect.poll(() => second.jobs.find('late'), eventually).toBeUndefined();
  }
  await using third = await startDelivery(options);
  await expect.poll(async () => (await third.get('/jobs')).status, eventually).toBe(200);
  await settle();
  expect(typesAt('/asleep')).toHaveLength(4);
});

function jobsIn(own: TestNamespace) {
  return resourceClient(delivery.connection, deliveryJobKind, own.name);
}

test('jobs that finished before there were events are no news', async () => {
  await using ownDatabase = await createDatabase();
  const own = await createNamespace('older');
  const jobs = jobsIn(own);
  await jobs.create(newJob('old', { serviceName: 'old' }));
  const { metadata } = await setStatus(jobs, 'old', { phase: 'Succeeded', finishedAt: '2026-11-20T12:01:00Z' });
  const options = { namespace: own.name, databaseUrl: ownDatabase.url };
  {
    // The state of a database that the migration finds: recorded, and no events.
    await using before = await startDelivery({ ...options, namespace: (await createNamespace('empty')).name });
    await recordUpdate(before.pool, metadata.uid ?? '', { serviceName: 'old' });
    await before.pool.query(`DROP TABLE job_events, deliveries, automatic_deployments, webhook_calls`);
    await before.pool.query(`ALTER TABLE history DROP COLUMN job_id, DROP COLUMN strategy, DROP COLUMN reason,
      DROP COLUMN message, DROP COLUMN created_at`);
    await before.pool.query('DROP INDEX history_of_job');
    await before.pool.query(`DELETE FROM migrations WHERE name >= '0003'`);
  }
  await using after = await startDelivery(options);
  await after.post('/webhooks/config', { service_name: 'old', endpoints: { chat: `${receiver.url}/older` } });
  await expect.poll(async () => (await after.get('/jobs/old')).body['phase'], eventually).toBe('Succeeded');
  await settle();
  expect(typesAt('/older')).toEqual([]);
});

test('replicas killed at any moment lose no event, and repeat one only as the same message', {
  timeout: 300_000,
}, async () => {
  const own = await createNamespace('mortal');
  await using ownDatabase = await createDatabase();
  await using slow = await startReceiver();
  const connection = await connectByFile(inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 5000,
    maxSockets: 8,
  });
  const pool = createPool({
    url: ownDatabase.url,
    schema: 'registry',
    maxConnections: 2,
    log: createLogger('test', 'silent'),
  });
  const jobs = resourceClient(connection, deliveryJobKind, own.name);
  const options = {
    namespace: own.name,
    databaseUrl: ownDatabase.url,
    settings: { ROLLCALL_WEBHOOK_ADDRESSES: 'any' },
  };
  let registry = await startRegistryProcess(options);
  const endpoints = { chat: slow.url };
  expect((await registry.call('POST', '/webhooks/config', { endpoints })).status).toBe(200);
  const names = Array.from({ length: 30 }, (_, i) => `job-${i}`);
  await Promise.all(
    names.map((name, i) => jobs.create(newJob(name, { serviceName: `svc-${i % 5}`, version: `${i}` }))),
  );
  for (const [i, name] of names.entries()) {
    const startedAt = '2026-11-20T12:00:00Z';
    await setStatus(jobs, name, { phase: 'Progressing', startedAt });
    await setStatus(jobs, name, { phase: 'Failed', startedAt, finishedAt: '2026-11-20T12:01:00Z' });
    if (i % 10 !== 9) continue;
    await registry.kill();
    registry = await startRegistryProcess(options);
  }
  interface Reported {
    readonly id: string;
    readonly type: string;
    readonly job: { readonly job_id: string };
  }
  const reported = (): Reported[] => slow.received.map(({ body }) => JSON.parse(body));
  const messages = () => new Map(reported().map((message) => [message.id, `${message.job.job_id} ${message.type}`]));
  const all = names.flatMap((name) => [`${name} job.failed`, `${name} job.started`]).toSorted();
  // What a replica died with is tried again once its time is up.
  await expect.poll(() => [...messages().values()].toSorted(), { timeout: 180_000, interval: 500 }).toEqual(all);
  const { rows } = await pool.query(`SELECT count(*)::int AS n FROM deliveries WHERE event LIKE 'job.%'`);
  expect(rows).toEqual([{ n: all.length }]);
  await expect
    .poll(async () => (await pool.query(`SELECT id FROM deliveries WHERE state <> 'delivered'`)).rows, {
      timeout: 120_000,
      interval: 500,
    })
    .toEqual([]);
  expect([...messages().values()].toSorted()).toEqual(all);
  await registry[Symbol.asyncDispose]();
  await Promise.all([pool.end(), connection.close()]);
});
