import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { deliveryJobKind } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { type Postgres, startPostgres } from '@rollcall/local/postgres.ts';
import { buildStatus } from '@rollcall/operator/delivery/job/status.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createPool, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, startAgain } from '../../support/postgres.ts';
import { startReceiver } from '../../support/receiver.ts';
import { startRegistryProcess } from '../../support/registry.ts';
import { type DeliveryFixture, newJob, setStatus, startDelivery } from './fixture.ts';

let directory: string;
let namespace: TestNamespace;
let postgres: Postgres;

beforeAll(async () => {
  directory = await mkdtemp(join(inject('temporaryDirectory'), 'outages-'));
  [namespace, postgres] = await Promise.all([
    createNamespace('outages'),
    startPostgres({ directory: join(directory, 'pg') }),
  ]);
});

afterAll(async () => {
  await postgres[Symbol.asyncDispose]();
  await rm(directory, { recursive: true, force: true });
});

const eventually = { timeout: 30_000, interval: 100 };
const release = { service_name: 'shop', version: '1.0.0', artifact_url: 'shop:1.0.0' };

async function expect503(delivery: DeliveryFixture, calls: readonly (readonly [string, object?])[]): Promise<void> {
  for (const [path, body] of calls) {
    const answer = await (body === undefined ? delivery.get(path) : delivery.post(path, body));
    expect({ path, status: answer.status, body: answer.body }).toEqual({
      path,
      status: 503,
      body: { error: 'Store is not available', message: expect.any(String) },
    });
    expect(answer.headers.get('retry-after')).toBe('1');
  }
}

/** In the order of their names; twice recorded, twice there. */
async function recordedJobs(pool: Pool): Promise<string[]> {
  const { rows } = await pool.query<{ job_name: string }>('SELECT job_name FROM history');
  return rows.map((row) => row.job_name).toSorted();
}

const databaseCalls = [
  ['/updates/history'],
  ['/updates/history/shop'],
  ['/updates/statistics'],
  ['/updates/history/shop/export/csv'],
  ['/updates/history/shop/export/json'],
  ['/webhooks/update', release],
  ['/webhooks/check-updates', { service_name: 'shop' }],
  ['/webhooks/deploy', release],
  ['/webhooks/rollback', { service_name: 'shop', version: '1.0.0' }],
  ['/webhooks/notify', { service_name: 'shop', channel: 'chat', message: 'm' }],
  ['/webhooks/deliveries'],
] as const;

test('the registry starts without PostgreSQL, answers 503 until it comes, survives its end and goes on after it', {
  timeout: 240_000,
}, async () => {
  await using receiver = await startReceiver();
  const url = await postgres.createDatabase('late');
  await postgres.stop();
  await using delivery = await startDelivery({ namespace: namespace.name, databaseUrl: url });
  expect(delivery.databaseConnected()).toBe(false);
  const endpoints = { chat: `${receiver.url}/chat` };
  expect((await delivery.post('/webhooks/config', { service_name: 'shop', endpoints })).status).toBe(200);
  await expect503(delivery, databaseCalls);
  expect(await namespace.kubectl(['get', 'deliveryjobs', '-o', 'name'])).toBe('');

  await startAgain(postgres);
  await expect.poll(() => delivery.databaseConnected(), eventually).toBe(true);
  await expect.poll(async () => (await delivery.post(...databaseCalls[9])).status, eventually).toBe(200);
  expect((await delivery.post('/webhooks/update', release)).status).toBe(200);
  expect((await delivery.get('/updates/history')).body).toEqual({ history: [], total: 0 });
  await expect.poll(() => receiver.received, eventually).toHaveLength(1);

  receiver.answer(500);
  expect((await delivery.post(...databaseCalls[9])).status).toBe(200);
  await expect.poll(() => receiver.received.length, eventually).toBeGreaterThan(1);
  receiver.answer(200);
  await postgres.kill();
  // The server's own processes for open connections outlive it by a moment.
  await expect.poll(async () => (await delivery.get('/updates/history')).status, eventually).toBe(503);
  await expect503(delivery, databaseCalls);
  await expect.poll(() => delivery.databaseConnected(), eventually).toBe(false);
  await startAgain(postgres);
  await expect.poll(() => delivery.databaseConnected(), eventually).toBe(true);
  expect((await delivery.post('/webhooks/check-updates', { service_name: 'shop' })).body).toMatchObject({
    latest_version: '1.0.0',
  });
  // What was accepted before the end is sent after it; an attempt whose outcome was lost, only once
  // it has timed out.
  const ids = () => receiver.received.map(({ headers }) => headers['webhook-id']);
  await expect.poll(() => ids().slice(2), { timeout: 120_000, interval: 200 }).toContain(ids()[1]);
});

test('jobs that finish while PostgreSQL is killed again and again are all recorded, once', {
  timeout: 240_000,
}, async () => {
  const own = await createNamespace('killed');
  const url = await postgres.createDatabase('killed');
  const options = { namespace: own.name, databaseUrl: url };
  await using first = await startDelivery(options);
  await using second = await startDelivery(options);
  expect(second.databaseConnected()).toBe(true);
  const names = Array.from({ length: 60 }, (_, i) => `job-${i}`);
  await Promise.all(
    names.map((name, i) => first.jobs.create(newJob(name, { serviceName: `svc-${i % 5}`, version: `${i}` }))),
  );

  let killing = true;
  const killer = (async () => {
    for (let kills = 0; kills < 4; kills += 1) {
      await new Promise((resolve) => setTimeout(resolve, 100 + Math.random() * 400));
      await postgres.kill();
      await startAgain(postgres);
    }
    killing = false;
  })();
  for (const name of names) {
    await setStatus(first.jobs, name, { phase: 'Succeeded', finishedAt: '2026-11-20T12:00:00Z' });
    if (killing) await new Promise((resolve) => setTimeout(resolve, 30));
  }
  await killer;
  for (const name of names) {
    await expect.poll(async () => (await first.jobs.get(name)).metadata.finalizers ?? [], eventually).toEqual([]);
  }
  expect(await recordedJobs(first.pool)).toEqual(names.toSorted());
});

type Update = Omit<Parameters<typeof buildStatus>[2], 'message'>;

const started: readonly Update[] = [
  { phase: 'Progressing', stage: 'Preparing', fields: { startedAt: '2026-11-20T12:00:00Z', oldVersion: '1.0.0' } },
  { phase: 'Progressing', stage: 'Stepping', fields: { step: 0, weight: 0 } },
];
const stepped = [0, 1, 2].flatMap((step): Update[] => [
  { phase: 'Progressing', stage: 'Stepping', fields: { step } },
  { phase: 'Paused', stage: 'StepPausing', fields: { step, weight: 10 * (step + 1) } },
]);
const ended: readonly Update[] = [
  { phase: 'Promoting', stage: 'CuttingOver', fields: { weight: 100 } },
  { phase: 'Succeeded', stage: 'Succeeded', fields: { finishedAt: '2100-01-01T00:00:00Z' } },
];

/** Goes on with a job as the operator does. */
async function goOn(jobs: ResourceClient<DeliveryJob>, name: string, updates: readonly Update[]): Promise<void> {
  for (const update of updates) {
    await setStatus(jobs, name, buildStatus(await jobs.get(name), new Date(), { message: '', ...update }));
  }
}

test('every step of a job while PostgreSQL is unavailable is sent when it is back, once, by replicas that saw none of them', {
  timeout: 300_000,
}, async () => {
  const own = await createNamespace('steps');
  await using receiver = await startReceiver();
  const url = await postgres.createDatabase('steps');
  const connection = await connectByFile(inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 5000,
    maxSockets: 8,
  });
  const jobs = resourceClient(connection, deliveryJobKind, own.name);
  const options = { namespace: own.name, databaseUrl: url };
  {
    await using first = await startDelivery(options);
    await using second = await startDelivery(options);
    const endpoints = { chat: receiver.url };
    expect((await first.post('/webhooks/config', { service_name: 'shop', endpoints })).status).toBe(200);
    for (const name of ['running', 'over']) await jobs.create(newJob(name, { strategy: 'Canary' }));
    await goOn(jobs, 'running', started);
    await expect.poll(() => receiver.received.length, eventually).toBe(2);
    // What is deleted has to be held.
    await expect.poll(async () => (await jobs.get('over')).metadata.finalizers, eventually).toHaveLength(1);
    await postgres.stop();
    for (const each of [first, second]) await expect.poll(() => each.databaseConnected(), eventually).toBe(false);
    await goOn(jobs, 'running', stepped.slice(0, 4));
  }
  await using third = await startDelivery(options);
  await using fourth = await startDelivery(options);
  await goOn(jobs, 'running', stepped.slice(4));
  await goOn(jobs, 'over', [...started, ...stepped, ...ended]);
  await jobs.delete('over');
  expect(receiver.received).toHaveLength(2);

  await startAgain(postgres);
  for (const each of [third, fourth]) await expect.poll(() => each.databaseConnected(), eventually).toBe(true);
  await expect.poll(() => jobs.find('over'), eventually).toBeUndefined();
  const steps = ['job.started Progressing null 0', ...[0, 1, 2].flatMap(stepsAt)];
  const ends = ['job.step Promoting 2 100', 'job.succeeded Succeeded 2 100'];
  /** What was reported of a job, in the order of its times; the same message twice is the same. */
  const reported = (name: string) => {
    const messages = new Map(
      receiver.received.map(({ body }): [string, Reported] => [JSON.parse(body).id, JSON.parse(body)]),
    );
    return [...messages.values()]
      .filter(({ job }) => job.job_id === name)
      .toSorted((a, b) => (a.timestamp < b.timestamp ? -1 : 1))
      .map(({ type, job: { phase, step, weight } }) => `${type} ${phase} ${step} ${weight ?? 0}`);
  };
  await expect.poll(() => reported('running'), { timeout: 120_000, interval: 200 }).toEqual(steps);
  await expect.poll(() => reported('over'), { timeout: 120_000, interval: 200 }).toEqual([...steps, ...ends]);
  const { rows } = await third.pool.query(`SELECT count(*)::int AS n FROM deliveries`);
  expect(rows).toEqual([{ n: 2 * steps.length + ends.length }]);
  await connection.close();
});

interface Reported {
  readonly type: string;
  readonly timestamp: string;
  readonly job: {
    readonly job_id: string;
    readonly phase: string;
    readonly step: number | null;
    readonly weight: number | null;
  };
}

/** The weight of a step is that of the one before until there are pods enough. */
function stepsAt(step: number): string[] {
  return [`job.step Progressing ${step} ${10 * step}`, `job.step Paused ${step} ${10 * (step + 1)}`];
}

test('replicas killed at any moment neither lose nor double an entry', { timeout: 240_000 }, async () => {
  const own = await createNamespace('replicas');
  await using database = await createDatabase();
  const options = { namespace: own.name, databaseUrl: database.url };
  const log = createLogger('test', 'silent');
  const connection = await connectByFile(inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 5000,
    maxSockets: 8,
  });
  const pool = createPool({ url: database.url, schema: 'registry', maxConnections: 2, log });
  const jobs = resourceClient(connection, deliveryJobKind, own.name);
  const names = Array.from({ length: 60 }, (_, i) => `job-${i}`);
  let registry = await startRegistryProcess(options);
  await Promise.all(
    names.map((name, i) => jobs.create(newJob(name, { serviceName: `svc-${i % 5}`, version: `${i}` }))),
  );
  for (const [i, name] of names.entries()) {
    await setStatus(jobs, name, { phase: 'Failed', finishedAt: '2026-11-20T12:00:00Z' });
    if (i % 20 !== 19) continue;
    await registry.process.stop({ signal: 'SIGKILL' });
    registry = await startRegistryProcess(options);
  }
  for (const name of names) {
    await expect.poll(async () => (await jobs.get(name)).metadata.finalizers ?? [], eventually).toEqual([]);
  }
  expect(await recordedJobs(pool)).toEqual(names.toSorted());
  await Promise.all([pool.end(), connection.close()]);
  await registry[Symbol.asyncDispose]();
});

test('without the API server, what needs it answers 503 and the history goes on', { timeout: 120_000 }, async () => {
  await using database = await createDatabase();
  const kubeconfig = join(directory, 'kubeconfig');
  const working = await readFile(inject('kubeconfig'), 'utf8');
  await writeFile(kubeconfig, working.replace(/https:\/\/127\.0\.0\.1:\d+/, 'https://127.0.0.1:1'));
  await using delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url, kubeconfig });
  await expect503(delivery, [
    ['/webhooks/update', release],
    ['/webhooks/deploy', release],
    ['/webhooks/rollback', { service_name: 'shop', version: '1.0.0' }],
    ['/webhooks/notify', { service_name: 'shop', channel: 'chat', message: 'm' }],
    ['/webhooks/config', { endpoints: {} }],
    ['/webhooks/config'],
    ['/jobs'],
    ['/jobs/deploy-shop-1.0.0-1'],
    ['/jobs/deploy-shop-1.0.0-1/abort', {}],
  ]);
  expect((await delivery.get('/updates/history')).status).toBe(200);
  expect((await delivery.pool.query('SELECT * FROM releases')).rows).toEqual([]);
});
