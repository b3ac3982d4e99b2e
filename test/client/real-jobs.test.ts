import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type RealRegistry, startRealRegistry } from './real-registry.ts';
import { printed, rollcall, startRollcall } from './rollcall-process.ts';

/** Each test runs the command several times, on a machine that may have other things to do. */
vi.setConfig({ testTimeout: 180_000 });

let registry: RealRegistry;
beforeAll(async () => {
  registry = await startRealRegistry();
});
afterAll(() => registry[Symbol.asyncDispose]());

const client = () => createRegistryClient({ servers: registry.url });
const settings = (env: Readonly<Record<string, string>> = {}) => ({ env: { ROLLCALL_SERVER: registry.url, ...env } });
const run = (...args: string[]) => rollcall(args, settings());

/** Writes what an operator would: no operator runs here. */
function setStatus(
  jobId: string,
  status: Readonly<Record<string, unknown>>,
  { namespace } = registry,
): Promise<string> {
  const patch = ['--subresource=status', '--type=merge', '--patch', JSON.stringify({ status })];
  return namespace.kubectl(['patch', 'deliveryjob', jobId, ...patch]);
}

function specOf(jobId: string, field: string): Promise<string> {
  return registry.namespace.kubectl(['get', 'deliveryjob', jobId, '-o', `jsonpath={.spec.${field}}`]);
}

async function deploy(service: string, version = '1.4.0'): Promise<string> {
  const { job_id } = await client().deploy({
    service_name: service,
    version,
    artifact_url: `registry.example/${service}:${version}`,
    strategy: 'canary',
  });
  return job_id;
}

const startedAt = '2026-11-20T10:00:00Z';
const finishedAt = '2026-11-20T10:02:13Z';

describe('against the real registry', () => {
  it('a deploy is followed from its acceptance to its success', async () => {
    const args = ['deploy', 'shop', '1.4.0', '--image', 'registry.example/shop:1.4.0', '--strategy', 'canary'];
    const running = startRollcall([...args, '--wait', '-o', 'json'], settings());
    await printed(running, '"Pending"');
    const { jobs } = await client().listJobs({ service_name: 'shop' });
    const [{ job_id } = { job_id: '' }] = jobs;
    expect(job_id).toMatch(/^deploy-shop-1\.4\.0-\d+$/);
    await setStatus(job_id, { phase: 'Progressing', oldVersion: '1.3.0', step: 0, weight: 25, startedAt });
    await printed(running, '"Progressing"');
    await setStatus(job_id, { phase: 'Succeeded', weight: 100, finishedAt, message: 'done' });
    const { code, out } = await running.ended;
    expect(code).toBe(0);
    const records = out
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as unknown);
    expect(records).toEqual([
      expect.objectContaining({ job_id, phase: 'Pending', strategy: 'canary', old_version: null, weight: null }),
      expect.objectContaining({ phase: 'Progressing', old_version: '1.3.0', step: 0, weight: 25 }),
      expect.objectContaining({ phase: 'Succeeded', weight: 100, message: 'done' }),
    ]);
    expect(records.at(-1)).toEqual(await client().getJob(job_id));
  });

  it('a job that fails fails the command, with reason and message', async () => {
    const jobId = await deploy('failing');
    const running = startRollcall(['job', jobId, '--wait'], settings());
    await vi.waitFor(() => expect(running.err()).toContain('Pending'), { timeout: 60_000 });
    const failure = { reason: 'ImagePullFailed', message: 'the image cannot be pulled' };
    await setStatus(jobId, { phase: 'RolledBack', ...failure, failure, startedAt, finishedAt });
    const { code, err } = await running.ended;
    expect(code).toBe(1);
    expect(err).toMatch(
      /\nrollcall: version 1\.4\.0 of 'failing' was rolled back after 2m13s \(ImagePullFailed: the image cannot be pulled\)\n$/,
    );
  });

  it('is listed, shown, and promoted or aborted by writing to its object', async () => {
    const jobId = await deploy('steered');
    expect((await run('promote', jobId)).code).toBe(1);
    await setStatus(jobId, { phase: 'Paused', step: 1, weight: 50, startedAt });
    await vi.waitFor(async () => expect((await client().getJob(jobId)).phase).toBe('Paused'), { timeout: 60_000 });
    expect((await run('jobs', 'steered')).out).toMatch(
      /\ndeploy-steered-1\.4\.0-\d+ +steered +- +1\.4\.0 +canary +Paused +50% /,
    );
    expect((await run('jobs', 'steered', '--phase', 'Failed')).out).toBe('');
    expect((await run('job', jobId)).out).toMatch(/\nPhase: +Paused\n/);
    expect(await run('promote', jobId)).toMatchObject({ code: 0, err: '' });
    expect(await specOf(jobId, 'promote')).toBe('true');
    const aborting = startRollcall(['abort', jobId, '--wait'], settings());
    await vi.waitFor(async () => expect(await specOf(jobId, 'abort')).toBe('true'), { timeout: 60_000 });
    await setStatus(jobId, { phase: 'RolledBack', reason: 'Aborted', message: 'as asked for', finishedAt });
    expect(await aborting.ended).toMatchObject({ code: 0, err: expect.stringContaining('Aborted: as asked for') });
    expect(await run('abort', jobId)).toMatchObject({ code: 1, err: expect.stringContaining('finished') });
  });

  it('calls are signed where the service has a secret', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-secret-'));
    try {
      const file = join(directory, 'secret');
      await writeFile(file, 'a long top secret\n');
      const signed = ['--secret-file', file];
      await fetch(`${registry.url}/api/v1/webhooks/config`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ service_name: 'guarded', endpoints: {}, secret: 'a long top secret' }),
      });
      const args = ['deploy', 'guarded', '1', '--image', 'guarded:1'];
      expect(await run(...args)).toMatchObject({ code: 1, out: '' });
      expect((await client().listJobs({ service_name: 'guarded' })).total).toBe(0);
      const { code, out } = await run(...args, ...signed);
      expect(code).toBe(0);
      const jobId = out.trim();
      await setStatus(jobId, { phase: 'Paused', startedAt });
      await vi.waitFor(async () => expect((await client().getJob(jobId)).phase).toBe('Paused'), { timeout: 60_000 });
      expect((await run('promote', jobId)).code).toBe(1);
      expect((await run('abort', jobId)).code).toBe(1);
      expect([await specOf(jobId, 'promote'), await specOf(jobId, 'abort')]).toEqual(['false', 'false']);
      expect((await run('promote', jobId, ...signed)).code).toBe(0);
      const env = { ROLLCALL_WEBHOOK_SECRET: 'a long top secret' };
      expect((await rollcall(['abort', jobId], settings(env))).code).toBe(0);
      expect([await specOf(jobId, 'promote'), await specOf(jobId, 'abort')]).toEqual(['true', 'true']);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('a job that has ended and whose object is gone is still found', async () => {
    const jobId = await deploy('gone');
    await setStatus(jobId, { phase: 'Succeeded', oldVersion: '1.3.0', startedAt, finishedAt });
    await vi.waitFor(async () => expect((await client().serviceHistory('gone')).total).toBe(1), { timeout: 60_000 });
    await registry.namespace.kubectl(['delete', 'deliveryjob', jobId]);
    await vi.waitFor(async () => expect((await client().listJobs({ service_name: 'gone' })).total).toBe(0), {
      timeout: 60_000,
    });
    expect(await run('job', jobId, '--wait')).toMatchObject({
      code: 0,
      err: expect.stringContaining("rollcall: version 1.4.0 of 'gone' was delivered after 2m13s\n"),
    });
  });

  it('a rollback asks for a version that was delivered, and no other', async () => {
    await deploy('back', '1.3.0');
    const { code, out } = await run('rollback', 'back', '1.3.0');
    expect(code).toBe(0);
    expect(await client().getJob(out.trim())).toMatchObject({
      operation: 'rollback',
      version: '1.3.0',
      artifact: { url: 'registry.example/back:1.3.0', type: 'image' },
    });
    expect(await run('rollback', 'back', '9')).toMatchObject({ code: 1, out: '', err: expect.stringContaining('9') });
  });

  it('following goes on through a crash of the registry, and misses no end', async () => {
    await using crashing = await startRealRegistry();
    const jobs = createRegistryClient({ servers: crashing.url });
    const { job_id } = await jobs.deploy({ service_name: 'shop', version: '2', artifact_url: 'shop:2' });
    const waiting = startRollcall(['job', job_id, '--wait', '--server', crashing.url]);
    await vi.waitFor(() => expect(waiting.err()).toContain('Pending'), { timeout: 60_000 });
    await crashing.kill();
    await vi.waitFor(() => expect(waiting.err()).toContain('trying to connect again'), { timeout: 60_000 });
    await setStatus(job_id, { phase: 'Progressing', message: 'unheard', startedAt }, crashing);
    await setStatus(job_id, { phase: 'Succeeded', message: 'done', finishedAt }, crashing);
    await crashing.restart();
    expect(await waiting.ended).toMatchObject({ code: 0, err: expect.stringContaining('connected again') });
  });
});
