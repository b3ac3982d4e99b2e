import { setTimeout as delay } from 'node:timers/promises';
import { deliveryPolicyKind } from '@rollcall/crds/kinds.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { sign } from '@rollcall/platform/webhooks/signatures.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type EventStream, openEventStream } from '../../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type Answer, type DeliveryFixture, newJob, setStatus, startDelivery } from './fixture.ts';

const eventually = { timeout: 30_000, interval: 50 };
const ISO_WITH_OFFSET = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00$/;

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;

beforeAll(async () => {
  namespace = await createNamespace('jobs');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url });
  await vi.waitUntil(async () => (await delivery.get('/jobs')).status === 200, eventually);
});

afterAll(async () => {
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const pathOf = (jobId: string) => `/jobs/${encodeURIComponent(jobId)}`;

async function deploy(service_name: string, more: object = {}): Promise<string> {
  const body = { service_name, version: '1.1.0', artifact_url: `${service_name}:1.1.0`, ...more };
  const answer = await delivery.post('/webhooks/deploy', body);
  expect(answer.status).toBe(200);
  return String(answer.body['job_id']);
}

async function listed(query: string): Promise<Record<string, unknown>[]> {
  const { status, text } = await delivery.get(`/jobs?${query}`);
  expect(status).toBe(200);
  return JSON.parse(text).jobs;
}

function ids(jobs: Record<string, unknown>[]): unknown[] {
  return jobs.map((job) => job['job_id']);
}

/** Until the local copy has it. */
async function untilSeen(jobId: string, fields: object): Promise<void> {
  await expect.poll(async () => (await delivery.get(pathOf(jobId))).body, eventually).toMatchObject(fields);
}

describe('reading', () => {
  test('a job just asked for can be read at once, and says what it was asked for', async () => {
    const id = await deploy('fresh', { strategy: 'blue-green', checksum: `sha256:${'ab'.repeat(32)}` });
    const record = {
      job_id: id,
      service_name: 'fresh',
      operation: 'deploy',
      version: '1.1.0',
      old_version: null,
      strategy: 'blue-green',
      phase: 'Pending',
      stage: null,
      step: null,
      weight: null,
      actual_weight: null,
      reason: null,
      message: '',
      artifact: { url: 'fresh:1.1.0', type: 'image', checksum: `sha256:${'ab'.repeat(32)}` },
      requested_by: 'webhook',
      created_at: expect.stringMatching(ISO_WITH_OFFSET),
      started_at: null,
      finished_at: null,
      analysis: [],
    };
    expect((await delivery.get(pathOf(id))).body).toEqual(record);
    expect(await listed('service_name=fresh')).toEqual([record]);
  });

  test('what the operator writes is what is read', async () => {
    const id = await deploy('described');
    await setStatus(delivery.jobs, id, {
      phase: 'Verifying',
      stage: 'StepVerifying',
      step: 1,
      weight: 25,
      actualWeight: 33,
      reason: 'Checking',
      message: 'Checks run',
      oldVersion: '1.0.0',
      startedAt: '2026-11-20T12:00:00Z',
      analysis: [{ name: 'errors', measurements: 3, failures: 1, message: '0.2 is too much' }],
    });
    await untilSeen(id, {
      phase: 'Verifying',
      stage: 'StepVerifying',
      step: 1,
      weight: 25,
      actual_weight: 33,
      reason: 'Checking',
      message: 'Checks run',
      old_version: '1.0.0',
      started_at: '2026-11-20T12:00:00.000+00:00',
      analysis: [{ name: 'errors', measurements: 3, failures: 1, message: '0.2 is too much' }],
    });
    await setStatus(delivery.jobs, id, {
      phase: 'RolledBack',
      reason: 'RolledBack',
      message: 'The old version runs',
      failure: { reason: 'AnalysisFailed', message: 'errors failed' },
      finishedAt: '2026-11-20T12:01:00Z',
    });
    await untilSeen(id, { phase: 'RolledBack' });
    const { body } = await delivery.get(pathOf(id));
    expect(body).toMatchObject({ reason: 'AnalysisFailed', message: 'errors failed' });
  });

  test('a job without a strategy of its own has that of its policy: its own, else the one for all', async () => {
    const policies = resourceClient(delivery.connection, deliveryPolicyKind, namespace.name);
    const id = await deploy('policed');
    expect((await delivery.get(pathOf(id))).body['strategy']).toBeNull();
    for (const [name, serviceName, strategy] of [
      ['all', '*', 'BlueGreen'],
      ['mine', 'policed', 'Canary'],
    ] as const) {
      const manifest = { apiVersion: 'rollcall.dev/v1alpha1', kind: 'DeliveryPolicy', metadata: { name } };
      await namespace.kubectl(['apply', '-f', '-'], {
        stdin: JSON.stringify({ ...manifest, spec: { serviceName, strategy } }),
      });
      await untilSeen(id, { strategy: strategy === 'Canary' ? 'canary' : 'blue-green' });
    }
    await policies.delete('mine');
    await policies.delete('all');
    await expect.poll(async () => (await delivery.get(pathOf(id))).body['strategy'], eventually).toBeNull();
  });

  test('what the operator has decided counts, be it otherwise than asked, whatever the policy says by then', async () => {
    const id = await deploy('decided', { strategy: 'canary' });
    await setStatus(delivery.jobs, id, { phase: 'Pending', stage: 'Queued', strategy: 'Canary' });
    await untilSeen(id, { stage: 'Queued', strategy: 'canary' });
    await using stream = await openEventStream(`${delivery.url}${pathOf(id)}/events`);
    await stream.next();
    await setStatus(delivery.jobs, id, { phase: 'Progressing', strategy: 'Rolling' });
    expect(await stream.next()).toMatchObject({ data: { strategy: 'rolling' } });
    const manifest = {
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'DeliveryPolicy',
      metadata: { name: 'later' },
      spec: { serviceName: '*', strategy: 'BlueGreen' },
    };
    await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
    const waiting = await deploy('undecided');
    await untilSeen(waiting, { strategy: 'blue-green' });
    await setStatus(delivery.jobs, id, { phase: 'Succeeded' });
    await setStatus(delivery.jobs, waiting, { phase: 'Failed', reason: 'WorkloadNotFound' });
    await untilSeen(id, { phase: 'Succeeded', strategy: 'rolling' });
    await untilSeen(waiting, { phase: 'Failed', strategy: null });
    await expect.poll(async () => (await delivery.jobs.get(id)).metadata.finalizers ?? [], eventually).toEqual([]);
    await delivery.jobs.delete(id);
    await expect.poll(() => listed('service_name=decided'), eventually).toEqual([]);
    expect((await delivery.get(pathOf(id))).body).toMatchObject({ phase: 'Succeeded', strategy: 'rolling' });
    await namespace.kubectl(['delete', 'deliverypolicy', 'later']);
  });

  test('ids that are no object names can be read, promoted and aborted', async () => {
    const id = await deploy('Größe', { version: '1.0.0+5', artifact_url: 'size:1' });
    expect((await delivery.get(pathOf(id))).body).toMatchObject({ job_id: id, service_name: 'Größe' });
    expect((await delivery.post(`${pathOf(id)}/promote`, {})).status).toBe(409);
    expect((await delivery.post(`${pathOf(id)}/abort`, {})).body).toMatchObject({ status: 'accepted', job_id: id });
  });

  test('the list is newest first, filtered, limited, and not sent again to who has it', async () => {
    for (const [i, name] of ['list-a', 'list-b', 'list-c'].entries()) {
      await delivery.jobs.create(newJob(name, { serviceName: 'listed', version: `1.${i}` }));
      await delay(1100);
    }
    await setStatus(delivery.jobs, 'list-b', { phase: 'Failed' });
    await untilSeen('list-b', { phase: 'Failed' });
    expect(ids(await listed('service_name=listed'))).toEqual(['list-c', 'list-b', 'list-a']);
    expect(ids(await listed('service_name=listed&phase=Pending'))).toEqual(['list-c', 'list-a']);
    const { body, headers } = await delivery.get('/jobs?service_name=listed&limit=1');
    expect(body).toMatchObject({ jobs: [{ job_id: 'list-c' }], total: 3 });
    const etag = headers.get('etag') ?? '';
    const again = await delivery.get('/jobs?service_name=listed&limit=1', { 'if-none-match': etag });
    expect([again.status, again.text]).toEqual([304, '']);
    for (const query of ['phase=Lost', 'limit=0', 'limit=1001', 'limit=x', 'service_name=a%20b']) {
      expect((await delivery.get(`/jobs?${query}`)).status).toBe(400);
    }
  });

  test('an unknown job is 404, however it is asked for', async () => {
    const unknown = { status: 404, body: { error: 'Job not found', message: expect.any(String) } };
    for (const id of ['nobody', 'deploy-x-1-1', '%20', 'Ä', 'x'.repeat(500), '\0', 'deploy-x-1-1\0']) {
      const path = `/jobs/${encodeURIComponent(id)}`;
      expect(await delivery.get(path)).toMatchObject(unknown);
      expect(await delivery.get(`${path}/events`)).toMatchObject(unknown);
      expect(await delivery.post(`${path}/promote`, {})).toMatchObject(unknown);
      expect(await delivery.post(`${path}/abort`, undefined)).toMatchObject(unknown);
    }
  });

  test('a job that has finished and is gone is read from the history', async () => {
    const id = await deploy('past', { version: '2.0+x', strategy: 'canary' });
    const { metadata } = (await delivery.jobs.find((await objectOf(id)) ?? '')) ?? { metadata: { name: '' } };
    await setStatus(delivery.jobs, metadata.name, {
      phase: 'Failed',
      reason: 'Failed',
      message: 'It did not work',
      oldVersion: '1.0.0',
      step: 1,
      startedAt: '2026-11-20T12:00:00Z',
      finishedAt: '2026-11-20T12:01:00Z',
    });
    await untilSeen(id, { phase: 'Failed' });
    const before = (await delivery.get(pathOf(id))).body;
    await expect
      .poll(async () => (await delivery.jobs.find(metadata.name))?.metadata.finalizers ?? [], eventually)
      .toEqual([]);
    await delivery.jobs.delete(metadata.name);
    await expect.poll(() => listed('service_name=past'), eventually).toEqual([]);
    expect((await delivery.get(pathOf(id))).body).toEqual({ ...before, step: null });
    for (const command of ['promote', 'abort']) {
      const answer = await delivery.post(`${pathOf(id)}/${command}`, {});
      expect(answer).toMatchObject({ status: 409, body: { error: 'Job has finished' } });
    }
    await using stream = await openEventStream(`${delivery.url}${pathOf(id)}/events`);
    expect(await stream.next()).toMatchObject({ type: 'job', data: { job_id: id, phase: 'Failed' } });
    await expect(stream.next()).rejects.toThrow('ended');
  });
});

function steer(id: string, command: 'promote' | 'abort', body?: object): Promise<Answer> {
  return delivery.post(`${pathOf(id)}/${command}`, body);
}

function open(id: string, lastEventId?: string): Promise<EventStream> {
  return openEventStream(`${delivery.url}${pathOf(id)}/events`, lastEventId);
}

async function objectOf(id: string): Promise<string | undefined> {
  const { items } = JSON.parse(await namespace.kubectl(['get', 'deliveryjobs', '-o', 'json']));
  const found = items.find(
    (item: { metadata: { name: string; annotations?: Record<string, string> } }) =>
      (item.metadata.annotations?.['rollcall.dev/job-id'] ?? item.metadata.name) === id,
  );
  return found?.metadata.name;
}

describe('promote and abort', () => {
  const finished = { status: 409, body: { error: 'Job has finished', message: expect.any(String) } };
  test('a paused job is promoted, once or twice', async () => {
    const id = await deploy('paused');
    await setStatus(delivery.jobs, id, { phase: 'Paused' });
    for (const body of [undefined, {}, { job_id: id, action: 'promote' }]) {
      const answer = await steer(id, 'promote', body);
      expect(answer).toMatchObject({
        status: 200,
        body: { status: 'accepted', job_id: id, message: expect.any(String) },
      });
    }
    expect((await delivery.jobs.get(id)).spec).toMatchObject({ promote: true, abort: false });
  });

  test('a promotion that was acted on and not yet cleared does not stand for the next', async () => {
    const id = await deploy('paused-again');
    await setStatus(delivery.jobs, id, { phase: 'Paused' });
    expect((await steer(id, 'promote')).status).toBe(200);
    const { metadata: first } = await delivery.jobs.get(id);
    const promotedGeneration = first.generation ?? 0;
    await setStatus(delivery.jobs, id, { phase: 'Paused', promotedGeneration });
    expect((await steer(id, 'promote')).status).toBe(200);
    const { metadata: second, spec } = await delivery.jobs.get(id);
    expect(spec.promote).toBe(true);
    expect(second.generation).toBeGreaterThan(promotedGeneration);
    // The same one twice is one.
    expect((await steer(id, 'promote')).status).toBe(200);
    expect((await delivery.jobs.get(id)).metadata.generation).toBe(second.generation);
  });

  test.each(['Pending', 'Progressing', 'Verifying', 'Promoting', 'RollingBack'] as const)(
    'a job that is %s cannot be promoted, and can be aborted',
    async (phase) => {
      const id = await deploy(`steer-${phase.toLowerCase()}`);
      await setStatus(delivery.jobs, id, { phase });
      const answer = await steer(id, 'promote');
      expect(answer).toMatchObject({ status: 409, body: { error: 'Job is not paused' } });
      expect((await delivery.jobs.get(id)).spec.promote).toBe(false);
      expect((await steer(id, 'abort')).status).toBe(200);
      expect((await steer(id, 'abort')).status).toBe(200);
      expect((await delivery.jobs.get(id)).spec.abort).toBe(true);
    },
  );

  test('a job that nobody has observed yet can be cancelled', async () => {
    const id = await deploy('waiting');
    expect((await steer(id, 'abort')).status).toBe(200);
    expect((await delivery.jobs.get(id)).spec.abort).toBe(true);
  });

  test.each(['Succeeded', 'RolledBack', 'Failed'] as const)('a job that is %s can be neither', async (phase) => {
    const id = await deploy(`ended-${phase.toLowerCase()}`);
    await setStatus(delivery.jobs, id, { phase });
    expect(await steer(id, 'promote')).toMatchObject(finished);
    expect(await steer(id, 'abort')).toMatchObject(finished);
    expect((await delivery.jobs.get(id)).spec).toMatchObject({ promote: false, abort: false });
  });

  test('while the operator writes all the time, every command is carried out', async () => {
    const ids = await Promise.all(Array.from({ length: 6 }, (_, i) => deploy(`busy-${i}`)));
    for (const id of ids) await setStatus(delivery.jobs, id, { phase: 'Paused' });
    const writing = new AbortController();
    const writer = (async () => {
      for (let i = 0; !writing.signal.aborted; i += 1) {
        for (const id of ids) await setStatus(delivery.jobs, id, { phase: 'Paused', message: `${i}` });
      }
    })();
    const answers = await Promise.all(ids.map((id) => steer(id, 'promote')));
    writing.abort();
    await writer;
    for (const [i, answer] of answers.entries()) {
      // It may keep changing for longer than it is tried: then nothing was done, and it says so.
      expect([200, 503]).toContain(answer.status);
      expect((await delivery.jobs.get(ids[i] ?? '')).spec.promote).toBe(answer.status === 200);
    }
    expect(answers.some(({ status }) => status === 200)).toBe(true);
  });

  test('a service with a secret wants it, or a signature', async () => {
    const configured = { service_name: 'locked', endpoints: {}, secret: 'k3y-and-long-enough' };
    expect((await delivery.post('/webhooks/config', configured)).status).toBe(200);
    const id = await deploy('locked', { webhook_secret: 'k3y-and-long-enough' });
    await setStatus(delivery.jobs, id, { phase: 'Paused' });
    const bodyOf = (action: string) => JSON.stringify({ job_id: id, action });
    for (const command of ['promote', 'abort'] as const) {
      const body = bodyOf(command);
      const path = `${pathOf(id)}/${command}`;
      for (const answer of [
        await delivery.post(path, undefined),
        await delivery.post(path, { webhook_secret: 'other-and-long-enough' }),
        await delivery.postRaw(path, body, { 'x-webhook-signature': sign('other-and-long-enough', body) }),
        await delivery.postRaw(path, body, { 'x-webhook-signature': sign('k3y-and-long-enough', '{}') }),
        await delivery.postRaw(path, '{}', { 'x-webhook-signature': sign('k3y-and-long-enough', '{}') }),
        await delivery.postRaw(path, '', { 'x-webhook-signature': sign('k3y-and-long-enough', '') }),
      ]) {
        expect(answer).toMatchObject({ status: 401, body: { error: 'Invalid signature' } });
      }
    }
    expect((await delivery.jobs.get(id)).spec).toMatchObject({ promote: false, abort: false });
    const sendSigned = (command: 'promote' | 'abort') =>
      delivery.postRaw(`${pathOf(id)}/${command}`, bodyOf(command), {
        'x-webhook-signature': sign('k3y-and-long-enough', bodyOf(command)),
      });
    expect((await sendSigned('promote')).status).toBe(200);
    expect((await steer(id, 'abort', { webhook_secret: 'k3y-and-long-enough' })).status).toBe(200);
    expect((await sendSigned('abort')).status).toBe(200);
    expect((await delivery.jobs.get(id)).spec).toMatchObject({ promote: true, abort: true });
  });

  test('a body that names another job or another command is 400', async () => {
    const id = await deploy('named');
    for (const body of [{ job_id: 'other' }, { action: 'promote' }, { action: 'x' }, { job_id: 5 }, [], 'x']) {
      expect((await delivery.post(`${pathOf(id)}/abort`, body)).status).toBe(400);
    }
    expect((await delivery.jobs.get(id)).spec.abort).toBe(false);
  });
});

describe('following', () => {
  test('a job is reported as it is, at every change, and its end is the end', async () => {
    const id = await deploy('followed');
    await using stream = await open(id);
    expect(await stream.next()).toMatchObject({ type: 'job', data: { job_id: id, phase: 'Pending' } });
    const versions: number[] = [];
    for (const step of [0, 1]) {
      const { metadata } = await setStatus(delivery.jobs, id, { phase: 'Progressing', step });
      const event = await stream.next();
      expect(event).toMatchObject({ type: 'job', data: { phase: 'Progressing', step } });
      expect(event.id).toBe(metadata.resourceVersion);
      versions.push(Number(event.id));
    }
    expect(versions).toEqual(versions.toSorted((a, b) => a - b));
    await setStatus(delivery.jobs, id, { phase: 'Succeeded', finishedAt: '2026-11-20T12:00:00Z' });
    expect(await stream.next()).toMatchObject({ type: 'job', data: { phase: 'Succeeded' } });
    await expect(stream.next()).rejects.toThrow('ended');
  });

  test('who comes back learns of what changed since, and of an end in any case', async () => {
    const id = await deploy('resumed');
    const { metadata } = await setStatus(delivery.jobs, id, { phase: 'Progressing', step: 0 });
    await untilSeen(id, { step: 0 });
    await using resumed = await open(id, metadata.resourceVersion);
    const { metadata: changed } = await setStatus(delivery.jobs, id, { phase: 'Progressing', step: 1 });
    expect(await resumed.next()).toMatchObject({ id: changed.resourceVersion, data: { step: 1 } });
    await using late = await open(id, metadata.resourceVersion);
    expect(await late.next()).toMatchObject({ id: changed.resourceVersion, data: { step: 1 } });
    const { metadata: last } = await setStatus(delivery.jobs, id, { phase: 'Failed' });
    for (const stream of [resumed, late]) expect(await stream.next()).toMatchObject({ data: { phase: 'Failed' } });
    await untilSeen(id, { phase: 'Failed' });
    await using after = await open(id, last.resourceVersion);
    expect(await after.next()).toMatchObject({ data: { phase: 'Failed' } });
    await expect(after.next()).rejects.toThrow('ended');
  });

  test('a job that is deleted before it started is removed, and that is the end', async () => {
    const id = await deploy('withdrawn');
    await using stream = await open(id);
    expect(await stream.next()).toMatchObject({ type: 'job' });
    await delivery.jobs.delete(id);
    expect((await stream.until('removed')).at(-1)).toMatchObject({ type: 'removed', data: { job_id: id } });
    await expect(stream.next()).rejects.toThrow('ended');
    expect((await delivery.get(pathOf(id))).status).toBe(404);
  });

  test('what nobody can see is not reported', async () => {
    const id = await deploy('quiet');
    await using stream = await open(id);
    await stream.next();
    await delivery.jobs.patch(id, { metadata: { labels: { x: 'y' } } });
    await setStatus(delivery.jobs, id, { phase: 'Progressing', stage: 'Preparing' });
    expect(await stream.next()).toMatchObject({ data: { stage: 'Preparing' } });
  });
});
