import { finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJobSpec } from '@rollcall/crds/types.gen.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type DeliveryFixture, newJob, recordUpdate, setStatus, startDelivery } from './fixture.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let replica: DeliveryFixture;

beforeAll(async () => {
  namespace = await createNamespace('recorder');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [delivery, replica] = await Promise.all([startDelivery(options), startDelivery(options)]);
});

afterAll(async () => {
  await delivery[Symbol.asyncDispose]();
  await replica[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const eventually = { timeout: 20_000, interval: 50 };

async function finalizersOf(name: string): Promise<readonly string[] | undefined> {
  const job = await delivery.jobs.find(name);
  return job === undefined ? undefined : (job.metadata.finalizers ?? []);
}

async function apply(name: string, spec: Partial<DeliveryJobSpec> = {}): Promise<void> {
  await delivery.jobs.create(newJob(name, spec));
  await expect.poll(() => finalizersOf(name), eventually).toEqual([finalizers.history]);
}

async function finish(name: string, phase: 'Succeeded' | 'Failed' | 'RolledBack', second = 30): Promise<void> {
  await setStatus(delivery.jobs, name, {
    phase,
    oldVersion: '1.0.0',
    startedAt: '2026-11-20T12:00:00Z',
    finishedAt: `2026-11-20T12:00:${second}.250Z`,
  });
}

interface Entry {
  readonly new_version: string;
  readonly status: string;
}

async function historyOf(service: string): Promise<Entry[]> {
  const { history }: { history: Entry[] } = JSON.parse((await delivery.get(`/updates/history/${service}`)).text);
  return history;
}

/** Oldest first. */
async function statuses(service: string): Promise<string[]> {
  return (await historyOf(service)).map((entry) => `${entry.new_version} ${entry.status}`).toReversed();
}

async function releasesOf(service: string): Promise<unknown[]> {
  const { rows } = await delivery.pool.query(
    'SELECT version, artifact_url, announced_at FROM releases WHERE service_name = $1 ORDER BY version',
    [service],
  );
  return rows;
}

function at(second: number): Date {
  return new Date(Date.UTC(2026, 10, 20, 12, 0, second));
}

describe('two recorders at once', () => {
  test('fifty jobs that finish together are recorded once each and let go', async () => {
    const names = Array.from({ length: 50 }, (_, i) => `many-${i}`);
    const outcomes = ['Succeeded', 'Failed', 'RolledBack'] as const;
    await Promise.all(names.map((name, i) => apply(name, { serviceName: `svc-${i % 7}`, version: `1.${i}` })));
    await Promise.all(names.map((name, i) => finish(name, outcomes[i % 3] ?? 'Failed')));
    for (const name of names) await expect.poll(() => finalizersOf(name), eventually).toEqual([]);
    const { rows } = await delivery.pool.query(
      `SELECT job_name, count(*)::int AS n FROM history WHERE service_name LIKE 'svc-%' GROUP BY job_name`,
    );
    expect(rows).toHaveLength(50);
    expect(new Set(rows.map((row) => row.n))).toEqual(new Set([1]));
    const { rows: statuses } = await delivery.pool.query(
      `SELECT outcome, count(*)::int AS n FROM history WHERE service_name LIKE 'svc-%' GROUP BY outcome ORDER BY outcome`,
    );
    expect(statuses).toEqual([
      { outcome: 'failed', n: 17 },
      { outcome: 'rolled_back', n: 16 },
      { outcome: 'success', n: 17 },
    ]);
  });

  test('an entry has what the job reports', async () => {
    const checksum = `sha256:${'cd'.repeat(32)}`;
    await apply('entry', { serviceName: 'entry', version: '2', artifact: { type: 'image', url: 'entry:2', checksum } });
    await finish('entry', 'Succeeded');
    await expect
      .poll(() => historyOf('entry'), eventually)
      .toEqual([
        {
          service_name: 'entry',
          old_version: '1.0.0',
          new_version: '2',
          timestamp: '2026-11-20T12:00:30.250+00:00',
          status: 'success',
          duration_seconds: 30.25,
          artifact_url: 'entry:2',
          checksum,
          artifact_path: '',
          backup_path: '',
        },
      ]);
  });

  test('what was delivered by hand can be rolled back to', async () => {
    await apply('manual', { serviceName: 'manual', version: '5' });
    expect((await delivery.post('/webhooks/rollback', { service_name: 'manual', version: '5' })).status).toBe(404);
    await finish('manual', 'Succeeded');
    await expect.poll(() => historyOf('manual'), eventually).toHaveLength(1);
    const { status, body } = await delivery.post('/webhooks/rollback', { service_name: 'manual', version: '5' });
    expect(status).toBe(200);
    expect((await delivery.jobs.get(String(body['job_id']))).spec.artifact.url).toBe('shop:5');
  });
});

describe('the finalizer', () => {
  test('what ran before the first job can be rolled back to once that has succeeded, and is older than all announced', async () => {
    const oldArtifact = { type: 'image', url: 'first:0.9' } as const;
    const find = () => delivery.post('/webhooks/rollback', { service_name: 'first', version: '0.9' });
    await apply('first-failed', { serviceName: 'first', version: '1.0' });
    await setStatus(delivery.jobs, 'first-failed', { phase: 'Failed', oldVersion: '0.9', oldArtifact });
    await expect.poll(() => finalizersOf('first-failed'), eventually).toEqual([]);
    expect((await find()).status).toBe(404);
    await apply('first-job', { serviceName: 'first', version: '1.0' });
    await setStatus(delivery.jobs, 'first-job', { phase: 'Succeeded', oldVersion: '0.9', oldArtifact });
    await expect.poll(() => finalizersOf('first-job'), eventually).toEqual([]);
    const { body } = await find();
    expect((await delivery.jobs.get(String(body['job_id']))).spec).toMatchObject({
      operation: 'Rollback',
      artifact: { type: 'image', url: 'first:0.9' },
    });
    const check = await delivery.post('/webhooks/check-updates', { service_name: 'first' });
    expect(check.body).toMatchObject({ current_version: '1.0', latest_version: '1.0' });
  });

  test('what ran before replaces no release, and becomes none that nobody could ask for', async () => {
    await apply('known-1', { serviceName: 'known', version: '1.0' });
    await finish('known-1', 'Succeeded');
    await expect.poll(() => finalizersOf('known-1'), eventually).toEqual([]);
    for (const [name, oldVersion, url] of [
      ['known-2', '1.0', 'known:edited'],
      ['known-3', 'a b', 'known:spaced'],
      ['known-4', '0.9', 'not an image'],
    ] as const) {
      await apply(name, { serviceName: 'known', version: '2.0' });
      await setStatus(delivery.jobs, name, { phase: 'Succeeded', oldVersion, oldArtifact: { type: 'image', url } });
      await expect.poll(() => finalizersOf(name), eventually).toEqual([]);
    }
    expect(await releasesOf('known')).toEqual([
      { version: '1.0', artifact_url: 'shop:1.0', announced_at: expect.any(Date) },
      { version: '2.0', artifact_url: 'shop:2.0', announced_at: expect.any(Date) },
    ]);
  });

  test('what ran before gives way to the release that was delivered, when that is recorded later', async () => {
    const serviceName = 'late';
    const oldRelease = {
      serviceName,
      version: '1.0',
      artifact: { type: 'image', url: 'late:edited', checksum: undefined },
    } as const;
    await recordUpdate(delivery.pool, 'late-2', { serviceName, newVersion: '2.0', finishedAt: at(2), oldRelease });
    await recordUpdate(delivery.pool, 'late-1', { serviceName, newVersion: '1.0', finishedAt: at(1) });
    expect(await releasesOf(serviceName)).toEqual([
      { version: '1.0', artifact_url: 'shop:1.0', announced_at: at(1) },
      { version: '2.0', artifact_url: 'shop:2.0', announced_at: at(2) },
    ]);
  });

  test('jobs that were given up before anything was touched are no updates, and are found by their ids', async () => {
    const statistics = async () => (await delivery.get('/updates/statistics')).body;
    const before = await statistics();
    const reasons = ['Cancelled', 'Superseded', 'NotNewer'];
    for (const reason of reasons) {
      const name = `given-up-${reason.toLowerCase()}`;
      await apply(name, { serviceName: 'given-up' });
      const failure = { reason, message: 'Nobody wants it any more' };
      await setStatus(delivery.jobs, name, { phase: 'RolledBack', ...failure, failure });
      await expect.poll(() => finalizersOf(name), eventually).toEqual([]);
      await delivery.jobs.delete(name);
      await expect
        .poll(async () => (await delivery.get('/jobs?service_name=given-up')).body['total'], eventually)
        .toBe(0);
      expect((await delivery.get(`/jobs/${name}`)).body).toMatchObject({ phase: 'RolledBack', ...failure });
    }
    expect(await statistics()).toEqual(before);
    expect((await delivery.get('/updates/history/given-up')).body).toMatchObject({ history: [], total: 0 });
    expect((await delivery.get('/updates/history?limit=1000')).text).not.toContain('given-up');
    const csv = (await delivery.get('/updates/history/given-up/export/csv')).text;
    expect(csv.trimEnd().split('\r\n')).toHaveLength(1);
    const check = await delivery.post('/webhooks/check-updates', { service_name: 'given-up' });
    expect(check.status).toBe(404);
    await apply('aborted', { serviceName: 'given-up' });
    await setStatus(delivery.jobs, 'aborted', { phase: 'RolledBack', reason: 'Aborted', message: 'Aborted' });
    await expect.poll(() => statuses('given-up'), eventually).toEqual(['1.1.0 rolled_back']);
  });

  test('other finalizers are left alone', async () => {
    await delivery.jobs.create({
      ...newJob('shared', { serviceName: 'shared' }),
      metadata: { name: 'shared', finalizers: ['example.com/first', finalizers.history, 'example.com/last'] },
    });
    await finish('shared', 'Failed');
    await expect.poll(() => finalizersOf('shared'), eventually).toEqual(['example.com/first', 'example.com/last']);
    await delivery.jobs.patch('shared', { metadata: { finalizers: [] } });
  });

  test('a job that is deleted while it runs stays until it has finished and is recorded', async () => {
    await apply('deleted', { serviceName: 'deleted' });
    await setStatus(delivery.jobs, 'deleted', { phase: 'Progressing' });
    await delivery.jobs.delete('deleted');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await finalizersOf('deleted')).toEqual([finalizers.history]);
    await finish('deleted', 'RolledBack');
    await expect.poll(() => finalizersOf('deleted'), eventually).toBeUndefined();
    expect(await historyOf('deleted')).toMatchObject([{ status: 'rolled_back' }]);
  });

  test('a job that is deleted before it started goes unrecorded', async () => {
    await apply('early', { serviceName: 'early' });
    await setStatus(delivery.jobs, 'early', { phase: 'Pending' });
    await delivery.jobs.delete('early');
    await expect.poll(() => finalizersOf('early'), eventually).toBeUndefined();
    expect(await historyOf('early')).toEqual([]);
  });

  const both = [finalizers.history, finalizers.delivery];

  test('a finished job that the operator keeps is in the history at once, and let go after it', async () => {
    await apply('attended', { serviceName: 'attended' });
    await delivery.jobs.patch('attended', { metadata: { finalizers: both } });
    await finish('attended', 'Succeeded');
    await expect.poll(() => historyOf('attended'), eventually).toHaveLength(1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await finalizersOf('attended')).toEqual(both);
    await delivery.jobs.patch('attended', { metadata: { finalizers: [finalizers.history] } });
    await expect.poll(() => finalizersOf('attended'), eventually).toEqual([]);
    expect(await historyOf('attended')).toHaveLength(1);
  });

  test('a job that has returned to the queue and is deleted is left to the operator, and its end recorded', async () => {
    await apply('returned', { serviceName: 'returned' });
    await delivery.jobs.patch('returned', { metadata: { finalizers: both } });
    await setStatus(delivery.jobs, 'returned', { phase: 'Pending' });
    await delivery.jobs.delete('returned');
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(await finalizersOf('returned')).toEqual(both);
    await finish('returned', 'RolledBack');
    await expect.poll(() => historyOf('returned'), eventually).toHaveLength(1);
    await delivery.jobs.patch('returned', { metadata: { finalizers: [finalizers.history] } });
    await expect.poll(() => finalizersOf('returned'), eventually).toBeUndefined();
  });

  test('a job that finished while nobody held it is recorded too', async () => {
    await apply('unheld', { serviceName: 'unheld' });
    await delivery.jobs.patch('unheld', { metadata: { finalizers: [] } });
    await finish('unheld', 'Succeeded');
    await expect.poll(() => historyOf('unheld'), eventually).toHaveLength(1);
  });
});

describe('rollbacks', () => {
  test('a rollback marks the update that it undid, in the API too', async () => {
    await apply('r-1', { serviceName: 'marked', version: '1.1.0' });
    await finish('r-1', 'Succeeded', 10);
    await apply('r-2', { serviceName: 'marked', version: '1.0.0', operation: 'Rollback' });
    await setStatus(delivery.jobs, 'r-2', {
      phase: 'Succeeded',
      oldVersion: '1.1.0',
      startedAt: '2026-11-20T12:00:20Z',
      finishedAt: '2026-11-20T12:00:25Z',
    });
    await expect.poll(() => statuses('marked'), eventually).toEqual(['1.1.0 rolled_back', '1.0.0 success']);
    const { body } = await delivery.get('/updates/statistics');
    expect(body['services_updated']).toContainEqual({ service_name: 'marked', update_count: 2 });
  });

  test.each([
    { name: 'as they happened', order: [0, 1, 2, 3, 4, 5] },
    { name: 'backwards', order: [5, 4, 3, 2, 1, 0] },
    { name: 'shuffled', order: [3, 0, 5, 1, 4, 2] },
  ])('recorded $name, the same updates are undone', async ({ name, order }) => {
    const serviceName = `order-${name.replaceAll(' ', '-')}`;
    const updates = [
      { newVersion: '2', oldVersion: '1', finishedAt: at(1) },
      { newVersion: '2', oldVersion: '2', finishedAt: at(2) },
      { newVersion: '1', oldVersion: '2', finishedAt: at(3), operation: 'Rollback' },
      { newVersion: '2', oldVersion: '1', finishedAt: at(4) },
      { newVersion: '1', oldVersion: '2', finishedAt: at(5), operation: 'Rollback', outcome: 'failed' },
      { newVersion: '3', oldVersion: '2', finishedAt: at(6) },
    ] as const;
    for (const index of order) {
      await recordUpdate(delivery.pool, `${serviceName}-${index}`, { serviceName, ...updates[index] });
    }
    expect(await statuses(serviceName)).toEqual([
      '2 success',
      '2 rolled_back',
      '1 success',
      '2 success',
      '1 failed',
      '3 success',
    ]);
  });

  test.each([
    { name: 'rb-no-update', isUpdate: false },
    { name: 'rb-other-artifact', isUpdate: true },
  ])('a rollback to the version that runs undoes nothing: $name', async ({ name: serviceName, isUpdate }) => {
    await recordUpdate(delivery.pool, `${serviceName}-1`, { serviceName, newVersion: '2', finishedAt: at(1) });
    const again = { serviceName, newVersion: '2', oldVersion: '2', operation: 'Rollback', isUpdate } as const;
    await recordUpdate(delivery.pool, `${serviceName}-2`, { ...again, finishedAt: at(2) });
    await recordUpdate(delivery.pool, `${serviceName}-3`, { ...again, finishedAt: at(3) });
    expect(await statuses(serviceName)).toEqual(Array<string>(isUpdate ? 3 : 1).fill('2 success'));
  });

  test('a repeated rollback undoes no more than the first', async () => {
    const serviceName = 'repeated';
    const back = { serviceName, newVersion: '1', operation: 'Rollback' } as const;
    await recordUpdate(delivery.pool, 'rep-1', { serviceName, newVersion: '1', oldVersion: '0', finishedAt: at(1) });
    await recordUpdate(delivery.pool, 'rep-2', { serviceName, newVersion: '2', oldVersion: '1', finishedAt: at(2) });
    await recordUpdate(delivery.pool, 'rep-3', { ...back, oldVersion: '2', finishedAt: at(3) });
    await recordUpdate(delivery.pool, 'rep-4', { ...back, oldVersion: '1', isUpdate: false, finishedAt: at(4) });
    expect(await statuses(serviceName)).toEqual(['1 success', '2 rolled_back', '1 success']);
  });

  test('a deploy that changed nothing does not remove the mark of the update before it', async () => {
    const serviceName = 'nothing-changed';
    await recordUpdate(delivery.pool, 'nc-1', { serviceName, newVersion: '2', oldVersion: '1', finishedAt: at(1) });
    const same = { serviceName, newVersion: '2', oldVersion: '2', isUpdate: false } as const;
    await recordUpdate(delivery.pool, 'nc-2', { ...same, finishedAt: at(2) });
    const back = { serviceName, newVersion: '1', oldVersion: '2', operation: 'Rollback' } as const;
    await recordUpdate(delivery.pool, 'nc-3', { ...back, finishedAt: at(3) });
    expect(await statuses(serviceName)).toEqual(['2 rolled_back', '1 success']);
  });

  test('a rollback within the same second as the update undoes it', async () => {
    const serviceName = 'same-second';
    const moment = { startedAt: at(1), finishedAt: at(1) };
    await recordUpdate(delivery.pool, 'ss-1', { serviceName, newVersion: '2', oldVersion: '1', ...moment });
    await recordUpdate(delivery.pool, 'ss-2', {
      serviceName,
      newVersion: '1',
      oldVersion: '2',
      operation: 'Rollback',
      ...moment,
    });
    expect(await statuses(serviceName)).toEqual(['2 rolled_back', '1 success']);
  });

  test('recording a job again changes nothing', async () => {
    await recordUpdate(delivery.pool, 'again', { serviceName: 'again', newVersion: '1' });
    await recordUpdate(delivery.pool, 'again', { serviceName: 'again', newVersion: '2', outcome: 'failed' });
    expect(await statuses('again')).toEqual(['1 success']);
  });
});
