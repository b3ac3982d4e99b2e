import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type JobServer, jobRecord, startJobServer } from './job-server.ts';
import { printed, type RollcallProcess, rollcall, startRollcall } from './rollcall-process.ts';

const ID = 'deploy-shop-1.4.0-1795257600';
const image = ['--image', 'registry.example/shop:1.4.0'];

/** Each test runs the command several times, on a machine that may have other things to do. */
vi.setConfig({ testTimeout: 180_000 });

let server: JobServer;
beforeEach(async () => {
  server = await startJobServer();
});
afterEach(() => server[Symbol.asyncDispose]());

const settings = (env: Readonly<Record<string, string>> = {}) => ({ env: { ROLLCALL_SERVER: server.url, ...env } });
const run = (...args: string[]) => rollcall(args, settings());
const start = (...args: string[]) => startRollcall(args, settings());

/** Waits until the process has said this on standard error. */
function said(running: RollcallProcess, text: string): Promise<void> {
  return vi.waitFor(
    () => {
      if (!running.err().includes(text)) throw new Error(`not said: ${text}\n${running.err()}`);
    },
    { timeout: 60_000 },
  );
}

/** Waits until the process follows the job. */
function followed(): Promise<void> {
  return vi.waitFor(() => expect(server.streams()).toBe(1), { timeout: 60_000 });
}

describe('rollcall deploy', () => {
  it('prints the id of the job on standard output, and nothing else there', async () => {
    expect(await run('deploy', 'shop', '1.4.0', ...image)).toMatchObject({
      code: 0,
      out: `${ID}\n`,
      err: "rollcall: deploy of 'shop' was requested\n",
    });
    expect(server.callsOf('POST').map(({ what, body }) => [what, JSON.parse(body)])).toEqual([
      [
        'POST /webhooks/deploy',
        {
          service_name: 'shop',
          version: '1.4.0',
          artifact_url: 'registry.example/shop:1.4.0',
          artifact_type: 'image',
        },
      ],
    ]);
  });

  it('passes a binary, its checksum and the strategy on', async () => {
    const args = ['--binary', 'https://files.example/shop', '--checksum', 'sha256:00', '--strategy', 'blue-green'];
    await run('deploy', 'shop', '1.4.0', ...args);
    expect(JSON.parse(server.callsOf('POST')[0]?.body ?? '')).toEqual({
      service_name: 'shop',
      version: '1.4.0',
      artifact_url: 'https://files.example/shop',
      artifact_type: 'binary',
      checksum: 'sha256:00',
      strategy: 'blue-green',
    });
  });

  it('prints the very body of the API with -o json', async () => {
    const { code, out, err } = await run('deploy', 'shop', '1.4.0', ...image, '-o', 'json');
    expect([code, err]).toEqual([0, '']);
    expect(JSON.parse(out)).toMatchObject({ status: 'accepted', job_id: ID, service_name: 'shop', version: '1.4.0' });
  });

  it('signs with the secret of the variable, or of the file, and shows it nowhere', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-secret-'));
    try {
      const file = join(directory, 'secret');
      await writeFile(file, 'of the file\n');
      const env = { ROLLCALL_WEBHOOK_SECRET: 'of the variable' };
      const byVariable = await rollcall(['deploy', 'shop', '1.4.0', ...image], settings(env));
      const byFile = await rollcall(['rollback', 'shop', '1.3.0', '--secret-file', file], settings(env));
      await rollcall(['abort', ID, '--secret-file', file], settings());
      const macs = server.calls.map(({ headers }) => headers['x-webhook-signature']);
      const secrets = ['of the variable', 'of the file', 'of the file'];
      expect(macs).toEqual(
        server.calls.map(({ what, body, headers }, index) => {
          const secret = secrets[index] ?? '';
          const signed = `${String(headers['x-webhook-timestamp'])}./api/v1${what.replace('POST ', '')}.${body}`;
          return `sha256=${createHmac('sha256', secret).update(signed).digest('hex')}`;
        }),
      );
      expect(JSON.stringify([byVariable, byFile, server.calls])).not.toContain('of the');
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  it('reports why it was refused', async () => {
    server.breakCalls({ status: 401, body: { error: 'Invalid signature', message: 'The call is not signed' } });
    expect(await run('deploy', 'shop', '1.4.0', ...image, '--wait')).toEqual({
      code: 1,
      signal: null,
      out: '',
      err: 'rollcall: The call is not signed\n',
    });
  });
});

describe('rollcall deploy --wait', () => {
  it('prints a line for every change that people can see, and ends with 0 when the job has succeeded', async () => {
    const running = start('deploy', 'shop', '1.4.0', ...image, '--wait');
    await followed();
    server.put(ID, { phase: 'Progressing', step: 0, weight: 25, message: '1 of 3 pods is ready' });
    await said(running, '1 of 3 pods is ready');
    server.put(ID, { stage: 'Stepping' });
    server.cutStreams();
    server.put(ID, { phase: 'Verifying', message: 'checks run' });
    await said(running, 'checks run');
    server.put(ID, {
      phase: 'Succeeded',
      weight: 100,
      message: 'done',
      started_at: '2026-11-20T10:00:00Z',
      finished_at: '2026-11-20T10:02:13Z',
    });
    const { code, out, err } = await running.ended;
    expect([code, out]).toEqual([0, `${ID}\n`]);
    expect(
      err
        .replace(/^\d\d:\d\d:\d\d/gm, 'TIME')
        .replace(/ +/g, ' ')
        .split('\n'),
    ).toEqual([
      "rollcall: deploy of 'shop' was requested",
      'TIME Pending - - waits for its turn',
      'TIME Progressing 25% step 0 1 of 3 pods is ready',
      'TIME Verifying 25% step 0 checks run',
      'TIME Succeeded 100% step 0 done',
      "rollcall: version 1.4.0 of 'shop' was delivered after 2m13s",
      '',
    ]);
  });

  it.each([
    { phase: 'Failed', end: 'failed' },
    { phase: 'RolledBack', end: 'was rolled back' },
  ] as const)('ends with 1 in phase $phase and prints reason and message', async ({ phase, end }) => {
    const running = start('deploy', 'shop', '1.4.0', ...image, '--wait');
    await followed();
    server.put(ID, { phase, reason: 'ImagePullFailed', message: 'the image cannot be pulled' });
    const { code, err } = await running.ended;
    expect(code).toBe(1);
    expect(err).toContain(`rollcall: version 1.4.0 of 'shop' ${end} (ImagePullFailed: the image cannot be pulled)\n`);
  });

  it('prints the record at every change, one a line, with -o json', async () => {
    const running = start('deploy', 'shop', '1.4.0', ...image, '--wait', '-o', 'json');
    await printed(running, '"Pending"');
    const second = server.put(ID, { phase: 'Progressing', message: 'starts' });
    const third = server.put(ID, { phase: 'RolledBack', reason: 'Aborted', message: 'aborted' });
    const { code, out, err } = await running.ended;
    expect(code).toBe(1);
    expect(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toEqual([jobRecord(ID), second, third]);
    expect(err).toBe("rollcall: version 1.4.0 of 'shop' was rolled back (Aborted: aborted)\n");
  });

  it('ends with 3 when the time limit has passed, and says that the job goes on', async () => {
    const { code, out, err } = await run('deploy', 'shop', '1.4.0', ...image, '--wait', '--timeout', '1');
    expect([code, out]).toEqual([3, `${ID}\n`]);
    expect(err).toContain(
      `rollcall: the job has not ended in time and goes on: 'rollcall job ${ID} --wait' follows it, 'rollcall abort ${ID}' returns to the old version\n`,
    );
    expect(server.callsOf('POST')).toHaveLength(1);
  });

  it('ends by Ctrl-C, and leaves the job alone', async () => {
    const running = start('deploy', 'shop', '1.4.0', ...image, '--wait');
    await followed();
    running.child.kill('SIGINT');
    expect(await running.ended).toMatchObject({ signal: 'SIGINT' });
    expect(server.callsOf('POST')).toHaveLength(1);
  });

  it('waits out an outage of the registry', async () => {
    const running = start('deploy', 'shop', '1.4.0', ...image, '--wait');
    await followed();
    server.breakCalls('cut');
    server.breakStreams('cut');
    server.cutStreams();
    await said(running, 'trying to connect again, the job goes on');
    server.put(ID, { phase: 'Succeeded', message: 'done' });
    server.breakCalls(undefined);
    server.breakStreams(undefined);
    const { code, err } = await running.ended;
    expect(code).toBe(0);
    expect(err).toContain('rollcall: connected again\n');
    expect(err.match(/trying to connect again/g)).toHaveLength(1);
  });
});

describe('rollcall rollback', () => {
  it('asks for the version, and follows the job with --wait', async () => {
    const running = start('rollback', 'shop', '1.3.0', '--wait');
    await followed();
    server.put('rollback-shop-1.3.0-1795257600', { phase: 'Succeeded', message: 'done' });
    expect(await running.ended).toMatchObject({
      code: 0,
      out: 'rollback-shop-1.3.0-1795257600\n',
      err: expect.stringContaining("version 1.3.0 of 'shop' was delivered"),
    });
    expect(JSON.parse(server.callsOf('POST')[0]?.body ?? '')).toEqual({ service_name: 'shop', version: '1.3.0' });
  });

  it('accepts an instant way back, or a strategy', async () => {
    await run('rollback', 'shop', '1.3.0', '--now');
    await run('rollback', 'shop', '1.3.0', '--strategy', 'blue-green');
    const back = { service_name: 'shop', version: '1.3.0' };
    expect(server.callsOf('POST').map(({ body }): unknown => JSON.parse(body))).toEqual([
      { ...back, immediate: true },
      { ...back, strategy: 'blue-green' },
    ]);
  });

  it('ends with 1 for a version that was never delivered: 3 is for the time limit', async () => {
    server.breakCalls({ status: 404, body: { error: 'Release not found', message: 'never deployed' } });
    expect(await run('rollback', 'shop', '9', '--wait')).toMatchObject({ code: 1, err: 'rollcall: never deployed\n' });
  });
});

describe('rollcall jobs', () => {
  it('lists jobs, all or those that match', async () => {
    server.put('deploy-cart-2-1', { service_name: 'cart', version: '2', phase: 'Failed', message: 'no Deployment' });
    server.put(ID, {
      strategy: 'canary',
      old_version: '1.3.0',
      phase: 'Paused',
      weight: 25,
      message: 'waits for promote',
    });
    const { code, out } = await run('jobs');
    const [titles = '', ...rows] = out.trimEnd().split('\n');
    expect(code).toBe(0);
    expect(titles).toMatch(/^JOB +SERVICE +FROM +TO +STRATEGY +PHASE +WEIGHT +AGE +MESSAGE$/);
    expect(rows).toEqual([
      expect.stringMatching(
        /^deploy-shop-1\.4\.0-1795257600 +shop +1\.3\.0 +1\.4\.0 +canary +Paused +25% +\S+ +waits for promote$/,
      ),
      expect.stringMatching(/^deploy-cart-2-1 +cart +- +2 +- +Failed +- +\S+ +no Deployment$/),
    ]);
    expect((await run('jobs', 'cart')).out).not.toContain('shop');
    expect((await run('jobs', '--phase', 'Paused', '--limit', '5')).out).not.toContain('cart');
    expect(server.calls.at(-1)?.what).toBe('GET /jobs?phase=Paused&limit=5');
    expect(await run('jobs', 'ghost')).toMatchObject({ code: 0, out: '', err: 'There are no such jobs.\n' });
    expect(JSON.parse((await run('jobs', '-o', 'json')).out)).toMatchObject({ total: 2 });
  });
});

describe('rollcall job, promote and abort', () => {
  it('shows one job', async () => {
    const job = server.put(ID, { phase: 'Verifying', step: 1, weight: 25 });
    expect((await run('job', ID)).out).toMatch(
      /^Job: +deploy-shop-1\.4\.0-1795257600\nService: +shop\n[^]*Step: +step 1\n/,
    );
    expect(JSON.parse((await run('job', ID, '-o', 'json')).out)).toEqual(job);
  });

  it('promotes', async () => {
    server.put(ID, { phase: 'Paused' });
    expect(await run('promote', ID)).toMatchObject({ code: 0, out: `Job '${ID}': promote was requested\n` });
  });

  it.each([
    { phase: 'RolledBack', code: 0 },
    { phase: 'Succeeded', code: 1 },
    { phase: 'Failed', code: 1 },
  ] as const)('abort --wait ends with $code when the job ends in phase $phase', async ({ phase, code }) => {
    server.put(ID, { phase: 'Progressing' });
    const running = start('abort', ID, '--wait');
    await followed();
    server.put(ID, { phase, message: 'the end' });
    expect((await running.ended).code).toBe(code);
    expect(server.callsOf('POST').map(({ what }) => what)).toEqual([`POST /jobs/${ID}/abort`]);
  });

  it('job --wait follows a job to its end', async () => {
    server.put(ID, { phase: 'Progressing' });
    const running = start('job', ID, '--wait');
    await followed();
    server.put(ID, { phase: 'Succeeded', message: 'the end' });
    expect(await running.ended).toMatchObject({ code: 0, out: '', err: expect.stringContaining('the end') });
  });

  it.each([
    { args: ['job', 'ghost'], err: "Job 'ghost' is not known" },
    { args: ['job', 'ghost', '--wait'], err: "Job 'ghost' is not known" },
    { args: ['promote', 'ghost'], err: "Job 'ghost' is not known" },
    { args: ['abort', 'ghost', '--wait'], err: "Job 'ghost' is not known" },
    { args: ['promote', 'done'], err: "Job 'done' has finished" },
    { args: ['abort', 'done'], err: "Job 'done' has finished" },
  ])('$args ends with 1 and says why', async ({ args, err }) => {
    server.put('done', { phase: 'Succeeded' });
    expect(await run(...args)).toMatchObject({ code: 1, out: '', err: `rollcall: ${err}\n` });
  });
});
