import { expect, test } from 'vitest';
import { createNamespace } from '../../support/kube.ts';
import { createDatabase } from '../../support/postgres.ts';
import { newJob, setStatus, startDelivery } from './fixture.ts';

const eventually = { timeout: 60_000, interval: 100 };

test('a finished job is deleted once it is recorded and the retention is over; the history keeps it', {
  timeout: 120_000,
}, async () => {
  const namespace = await createNamespace('retention');
  await using database = await createDatabase();
  await using delivery = await startDelivery({
    namespace: namespace.name,
    databaseUrl: database.url,
    jobRetentionMs: 0,
  });
  await delivery.jobs.create(newJob('over'));
  await delivery.jobs.create(newJob('running'));
  await setStatus(delivery.jobs, 'running', { phase: 'Progressing', startedAt: '2026-11-20T12:00:00Z' });
  await setStatus(delivery.jobs, 'over', {
    phase: 'Succeeded',
    startedAt: '2026-11-20T12:00:00Z',
    finishedAt: '2026-11-20T12:01:00Z',
  });
  await expect.poll(() => delivery.jobs.find('over'), eventually).toBeUndefined();
  expect((await delivery.get('/jobs/over')).body).toMatchObject({ job_id: 'over', phase: 'Succeeded' });
  expect((await delivery.get('/updates/history/shop')).body).toMatchObject({ total: 1 });
  expect(await delivery.jobs.find('running')).toBeDefined();
});
