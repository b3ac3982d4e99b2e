import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openEventStream } from '../../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { startRegistry } from '../../support/registry.ts';
import type { RunningService } from '../../support/replica.ts';
import { type DeliveryFixture, newJob, setStatus, startDelivery } from './fixture.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let second: RunningService;

async function isReady(url: string): Promise<boolean> {
  return (await fetch(`${url}/jobs`)).status === 200;
}

beforeAll(async () => {
  namespace = await createNamespace('job-watch');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [delivery, second] = await Promise.all([startDelivery(options), startRegistry(options)]);
  await vi.waitUntil(() => isReady(delivery.url), { timeout: 30_000, interval: 50 });
  await vi.waitUntil(() => isReady(`${second.url}/api/v1`), { timeout: 30_000, interval: 50 });
});

afterAll(async () => {
  await Promise.all([delivery[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
  await database[Symbol.asyncDispose]();
});

const watch = (lastEventId?: string) => openEventStream(`${delivery.url}/jobs/watch`, lastEventId);

test('begins with every job, then reports each change with an id that another replica resumes from', async () => {
  await delivery.jobs.create(newJob('before'));
  await vi.waitUntil(async () => (await delivery.get('/jobs/before')).status === 200, { timeout: 30_000 });
  let resumeFrom: string | undefined;
  {
    await using stream = await watch();
    const initial = await stream.until('synced');
    expect(initial.filter(({ data }) => data['job_id'] === 'before')).toMatchObject([{ type: 'added' }]);
    await delivery.jobs.create(newJob('during', { serviceName: 'other' }));
    const added = await stream.next();
    expect(added).toMatchObject({ type: 'added', id: expect.stringMatching(/^i\d+$/) });
    expect(added.data).toMatchObject({ job_id: 'during', service_name: 'other', phase: 'Pending' });
    resumeFrom = added.id;
  }
  await setStatus(delivery.jobs, 'during', { phase: 'Progressing', step: 0, weight: 10 });
  await setStatus(delivery.jobs, 'during', { phase: 'Paused' });
  await namespace.kubectl(['delete', 'deliveryjob', 'before']);
  for (const url of [delivery.url, `${second.url}/api/v1`]) {
    await using resumed = await openEventStream(`${url}/jobs/watch`, resumeFrom);
    expect(await resumed.next()).toMatchObject({ type: 'modified', data: { phase: 'Progressing', weight: 10 } });
    expect(await resumed.next()).toMatchObject({ type: 'modified', data: { phase: 'Paused' } });
    expect(await resumed.next()).toMatchObject({ type: 'removed', data: { job_id: 'before' } });
  }
});

test('what the record does not show is no event', async () => {
  await delivery.jobs.create(newJob('quiet'));
  await using stream = await watch();
  if ((await stream.until('synced')).every(({ data }) => data['job_id'] !== 'quiet')) await stream.until('added');
  await namespace.kubectl(['label', 'deliveryjob', 'quiet', 'team=shop']);
  await setStatus(delivery.jobs, 'quiet', { phase: 'Progressing' });
  expect(await stream.next()).toMatchObject({ type: 'modified', data: { job_id: 'quiet', phase: 'Progressing' } });
});

test('an id that nobody knows gets a reset and everything anew', async () => {
  await using stream = await watch('1');
  expect(await stream.next()).toMatchObject({ type: 'reset' });
  expect((await stream.until('synced')).map(({ data }) => data['job_id'])).toContain('during');
});

test('a job may be called watch', async () => {
  const json = { accept: 'application/json' };
  expect((await delivery.get('/jobs/watch', json)).status).toBe(404);
  await delivery.jobs.create(newJob('watch'));
  await expect
    .poll(async () => (await delivery.get('/jobs/watch', json)).body, { timeout: 10_000 })
    .toMatchObject({ job_id: 'watch' });
  await using stream = await watch();
  await stream.until('synced');
});

test('is described, and shutdown ends it instead of waiting for it', async () => {
  const { body } = await delivery.get('/openapi.json');
  expect(body).toMatchObject({ paths: { '/jobs/watch': { get: { tags: ['jobs'] } } } });
  await using stream = await openEventStream(`${second.url}/api/v1/jobs/watch`);
  await stream.until('synced');
  const startedAt = performance.now();
  await second[Symbol.asyncDispose]();
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  await stream.end();
});
