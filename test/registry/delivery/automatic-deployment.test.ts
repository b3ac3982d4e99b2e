import { randomUUID } from 'node:crypto';
import { finalizers } from '@rollcall/crds/kinds.ts';
import type { DeliveryJob, DeliveryPolicySpec } from '@rollcall/crds/types.gen.ts';
import { versionOf } from '@rollcall/platform/kube/store.ts';
import { sign } from '@rollcall/platform/webhooks/signatures.ts';
import { createAutomaticDeployments } from '@rollcall/registry/jobs/store/automatic-deployments.ts';
import { createReleaseStore } from '@rollcall/registry/releases/store/releases.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { startRegistry } from '../../support/registry.ts';
import { type DeliveryFixture, recordUpdate, setStatus, startDelivery } from './fixture.ts';

const eventually = { timeout: 30_000, interval: 50 };

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let replica: DeliveryFixture;
let second = 1_790_000_000;

beforeAll(async () => {
  namespace = await createNamespace('auto');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [delivery, replica] = await Promise.all([startDelivery(options), startDelivery(options)]);
  for (const each of [delivery, replica]) {
    await vi.waitUntil(async () => (await each.get('/jobs')).status === 200, eventually);
  }
});

afterAll(async () => {
  await replica[Symbol.asyncDispose]();
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

async function applyPolicy(name: string, spec: Partial<DeliveryPolicySpec>): Promise<void> {
  const manifest = { apiVersion: 'rollcall.dev/v1alpha1', kind: 'DeliveryPolicy', metadata: { name }, spec };
  await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
}

/** A service whose policy deploys what is announced, at a time of its own. */
async function newService(spec: Partial<DeliveryPolicySpec> = { autoDeploy: true }): Promise<string> {
  const service = `svc-${randomUUID()}`;
  nextSecond();
  await applyPolicy(service, { serviceName: service, ...spec });
  return service;
}

function nextSecond(): number {
  second += 10;
  for (const each of [delivery, replica]) each.setTime(new Date(second * 1000));
  return second;
}

interface Announcement {
  readonly artifact_url?: string;
  readonly webhook_secret?: string;
  readonly via?: DeliveryFixture;
}

function announce(service_name: string, version: string, { via = delivery, ...more }: Announcement = {}) {
  return via.post('/webhooks/update', { service_name, version, artifact_url: `shop:${version}`, ...more });
}

async function jobsOf(service: string): Promise<{ job_id: string; version: string }[]> {
  const { text } = await delivery.get(`/jobs?service_name=${service}`);
  return JSON.parse(text).jobs;
}

async function finish(job_id: string, phase: 'Succeeded' | 'Failed' | 'RolledBack'): Promise<void> {
  await setStatus(delivery.jobs, job_id, {
    phase,
    startedAt: '2026-11-20T12:00:00Z',
    finishedAt: '2026-11-20T12:01:00Z',
  });
  for (const each of [delivery, replica]) {
    await expect.poll(async () => (await each.get(`/jobs/${job_id}`)).body['phase'], eventually).toBe(phase);
  }
  await expect.poll(async () => (await delivery.jobs.get(job_id)).metadata.finalizers ?? [], eventually).toEqual([]);
}

test('an announced release becomes a job, once, whoever announces it how often', async () => {
  const service = await newService();
  const answers = await Promise.all([
    announce(service, '1.0.0'),
    announce(service, '1.0.0', { via: replica }),
    announce(service, '1.0.0'),
  ]);
  const job_id = `deploy-${service}-1.0.0-${second}`;
  for (const { status } of answers) expect(status).toBe(200);
  expect(answers.map(({ body }) => body['job_id'])).toContain(job_id);
  expect((await delivery.jobs.get(job_id)).spec).toMatchObject({
    operation: 'Deploy',
    version: '1.0.0',
    artifact: { type: 'image', url: 'shop:1.0.0' },
    requestedBy: 'auto-deploy',
    // The operator alone sees what the Deployment runs.
    onlyIfNewer: true,
  });
  nextSecond();
  for (const via of [delivery, replica])
    expect((await announce(service, '1.0.0', { via })).body).not.toHaveProperty('job_id');
  await finish(job_id, 'Failed');
  nextSecond();
  expect((await announce(service, '1.0.0')).body).not.toHaveProperty('job_id');
  expect(await jobsOf(service)).toHaveLength(1);
});

test('the same version with another artifact is tried again after it has failed', async () => {
  const service = await newService();
  const { body } = await announce(service, '1.0.0');
  await finish(String(body['job_id']), 'RolledBack');
  nextSecond();
  expect((await announce(service, '1.0.0', { artifact_url: 'shop:fixed' })).body['job_id']).toBeDefined();
});

test('only a version newer than what runs, and than what is under way', async () => {
  const service = await newService();
  delivery.registered.set(service, '1.5.0');
  for (const version of ['1.4.9', '1.5.0', '1.5.0-rc.1']) {
    expect((await announce(service, version)).body).not.toHaveProperty('job_id');
  }
  nextSecond();
  const newer = await announce(service, '1.10.0');
  expect(newer.body['job_id']).toBe(`deploy-${service}-1.10.0-${second}`);
  nextSecond();
  expect((await announce(service, '1.6.0')).body).not.toHaveProperty('job_id');
  expect((await announce(service, '2.0.0')).body['job_id']).toBeDefined();
  expect((await jobsOf(service)).map(({ version }) => version)).toEqual(['2.0.0', '1.10.0']);
  delivery.registered.delete(service);
});

test('what was delivered last counts where the registration does not say; without order, what is announced last is newest', async () => {
  const service = await newService();
  await recordUpdate(delivery.pool, randomUUID(), { serviceName: service, newVersion: '2.0.0' });
  expect((await announce(service, '1.9.0')).body).not.toHaveProperty('job_id');
  expect((await announce(service, '2.0.0')).body).not.toHaveProperty('job_id');
  expect((await announce(service, 'build-7')).body['job_id']).toBeDefined();
});

test('a job that is in the history is under way no more, however long the operator keeps it', async () => {
  const service = await newService();
  const job_id = String((await announce(service, '2.0.0')).body['job_id']);
  await delivery.jobs.patch(job_id, { metadata: { finalizers: [finalizers.history, finalizers.delivery] } });
  const times = { startedAt: '2026-11-20T12:00:00Z', finishedAt: '2026-11-20T12:01:00Z' };
  await setStatus(delivery.jobs, job_id, { phase: 'Succeeded', ...times });
  const versions = async () => (await delivery.get(`/updates/history/${service}`)).body['history'];
  await expect.poll(versions, eventually).toMatchObject([{ new_version: '2.0.0' }]);
  await recordUpdate(delivery.pool, randomUUID(), {
    serviceName: service,
    operation: 'Rollback',
    newVersion: '1.0.0',
    finishedAt: new Date('2026-11-20T12:02:00Z'),
  });
  nextSecond();
  expect((await announce(service, '1.5.0')).body['job_id']).toBeDefined();
});

test('what was deployed by a call is not deployed again when it is announced later', async () => {
  const service = await newService();
  const body = { service_name: service, version: '1.0.0', artifact_url: 'shop:1.0.0' };
  const { body: deployed } = await delivery.post('/webhooks/deploy', body);
  nextSecond();
  expect((await announce(service, '1.0.0')).body).not.toHaveProperty('job_id');
  await finish(String(deployed['job_id']), 'RolledBack');
  nextSecond();
  expect((await announce(service, '1.0.0')).body).not.toHaveProperty('job_id');
  expect(await jobsOf(service)).toHaveLength(1);
});

test("the service's own policy counts, else the one for all; without autoDeploy nothing happens", async () => {
  const off = await newService({ autoDeploy: false });
  const none = `svc-${randomUUID()}`;
  expect((await announce(none, '1.0.0')).body).not.toHaveProperty('job_id');
  await applyPolicy('for-all', { serviceName: '*', autoDeploy: true });
  nextSecond();
  expect((await announce(off, '1.0.0')).body).not.toHaveProperty('job_id');
  expect((await announce(none, '1.0.1')).body['job_id']).toBe(`deploy-${none}-1.0.1-${second}`);
  await namespace.kubectl(['delete', 'deliverypolicy', 'for-all']);
});

test('pre-releases only where the policy says so, and versions by their numbers', async () => {
  const service = await newService();
  expect((await announce(service, '1.10-rc.1')).body).not.toHaveProperty('job_id');
  const { body } = await announce(service, '1.10');
  expect(body).toHaveProperty('job_id');
  nextSecond();
  expect((await announce(service, '1.9')).body).not.toHaveProperty('job_id');
  const early = await newService({ autoDeploy: true, preReleases: true });
  expect((await announce(early, '1.10-rc.1')).body).toHaveProperty('job_id');
});

test('a call that may not be made deploys nothing', async () => {
  const service = await newService();
  await delivery.post('/webhooks/config', { service_name: service, endpoints: {}, secret: 'k3y-and-long-enough' });
  expect((await announce(service, '1.0.0')).status).toBe(401);
  expect((await announce(service, '1.0.0', { webhook_secret: 'other-and-long-enough' })).status).toBe(401);
  expect((await announce(service, '1/0', { webhook_secret: 'k3y-and-long-enough' })).status).toBe(400);
  expect(await jobsOf(service)).toEqual([]);
  const body = JSON.stringify({ service_name: service, version: '1.0.0', artifact_url: 'shop:1.0.0' });
  const answer = await delivery.postRaw('/webhooks/update', body, {
    'x-webhook-signature': sign('k3y-and-long-enough', body),
  });
  expect(answer.body['job_id']).toBeDefined();
});

test('a replica that died before it had made the job leaves it to the next announcement', async () => {
  const service = await newService();
  const { body } = await announce(service, '1.0.0');
  const job_id = String(body['job_id']);
  // As if it had died between its note and the job.
  await delivery.pool.query('UPDATE automatic_deployments SET created = false WHERE service_name = $1', [service]);
  await delivery.jobs.delete(job_id);
  for (const each of [delivery, replica]) {
    await expect.poll(async () => (await each.get(`/jobs/${job_id}`)).status, eventually).toBe(404);
  }
  nextSecond();
  expect((await announce(service, '1.0.0', { via: replica })).body['job_id']).toBe(job_id);
  expect((await delivery.jobs.get(job_id)).spec.requestedBy).toBe('auto-deploy');
});

test('of versions that are announced at the same moment at several replicas, the newest has the last job', {
  timeout: 240_000,
}, async () => {
  const options = { namespace: namespace.name, databaseUrl: database.url };
  await using first = await startRegistry(options);
  await using second = await startRegistry(options);
  await applyPolicy('racing', { serviceName: '*', autoDeploy: true, preReleases: true });
  const versions = ['1.2.0', '1.9.0', '1.10.0', '2.0.0-rc.1'];
  const services = Array.from({ length: 50 }, () => `svc-${randomUUID()}`);
  for (const [race, service_name] of services.entries()) {
    const order = versions.map((_, i) => versions[(race + i * 3) % versions.length] ?? '');
    const answers = await Promise.all(
      order.map((version, i) =>
        (i % 2 === 0 ? first : second).call('POST', '/webhooks/update', {
          service_name,
          version,
          artifact_url: `shop:${version}`,
        }),
      ),
    );
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  }
  await namespace.kubectl(['delete', 'deliverypolicy', 'racing']);
  const { items }: { items: DeliveryJob[] } = JSON.parse(
    await namespace.kubectl(['get', 'deliveryjobs', '-o', 'json']),
  );
  // Nobody has changed them since.
  const inOrder = items.toSorted((a, b) => versionOf(a) - versionOf(b));
  for (const service of services) {
    const made = inOrder.filter(({ spec }) => spec.serviceName === service).map(({ spec }) => spec.version);
    expect(made).toEqual(versions.filter((version) => made.includes(version)));
    expect(made.at(-1)).toBe(versions.at(-1));
  }
});

test('names that selectors have signs for are distinguished', async () => {
  const twin = await newService();
  const service = `${twin},spec.operation=Deploy`;
  await applyPolicy(`${twin}-odd`, { serviceName: service, autoDeploy: true });
  expect((await announce(service, '2.0.0')).body['job_id']).toBeDefined();
  expect((await announce(twin, '1.0.0')).body['job_id']).toBeDefined();
  nextSecond();
  expect((await announce(service, '1.0.0', { via: replica })).body).not.toHaveProperty('job_id');
});

test('what waits too long for its turn is refused, and records nothing', { timeout: 60_000 }, async () => {
  const automatic = createAutomaticDeployments(() => delivery.pool);
  const releases = createReleaseStore(() => delivery.pool);
  const service = `svc-${randomUUID()}`;
  const artifact = { url: 'shop:1.0.0', type: 'image', checksum: undefined } as const;
  const release = { serviceName: service, version: '1.0.0', artifact };
  const gate = Promise.withResolvers<string>();
  let others = 0;
  const ended = [releases.recordWith(release, () => gate.promise), automatic.alone(service, () => gate.promise)];
  const late = [
    releases.recordWith({ ...release, version: '1.0.1' }, async () => void others++),
    automatic.alone(service, async () => void others++),
  ];
  const outcomes = await Promise.allSettled(late);
  expect(outcomes.map((each) => each.status === 'rejected' && each.reason.code)).toEqual(Array(2).fill('OVERLOADED'));
  gate.resolve('done');
  expect(await Promise.all(ended)).toEqual(['done', 'done']);
  expect(others).toBe(0);
  expect(await releases.versions(service)).toEqual(['1.0.0']);
});

test('many announcements at once do not wait for one another for good', { timeout: 120_000 }, async () => {
  await applyPolicy('crowd', { serviceName: '*', autoDeploy: true });
  nextSecond();
  const services = Array.from({ length: 40 }, () => `svc-${randomUUID()}`);
  const answers = await Promise.all(services.map((service) => announce(service, '1.0.0')));
  await namespace.kubectl(['delete', 'deliverypolicy', 'crowd']);
  expect(answers.filter(({ body }) => body['job_id'] === undefined)).toEqual([]);
});
