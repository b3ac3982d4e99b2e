import { createHmac } from 'node:crypto';
import type { FollowJobOptions } from '@rollcall/client/job-follow.ts';
import type { JobRecord } from '@rollcall/client/job-types.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { describe, expect, it, vi } from 'vitest';
import { freePort } from './contract-server.ts';
import { type JobServer, startJobServer } from './job-server.ts';

const ID = 'deploy-shop-1.4.0-1795257600';
const quick = { baseMs: 10, maxMs: 100 } as const;

const clientOf = (...servers: JobServer[]) => createRegistryClient({ servers: servers.map(({ url }) => url) });

/** Follows the job in the background and collects its records. */
function follow(client: ReturnType<typeof clientOf>, options: FollowJobOptions = {}) {
  const records: JobRecord[] = [];
  const run = async () => {
    for await (const record of client.followJob(ID, { retry: quick, ...options })) records.push(record);
    return records.map(({ message }) => message);
  };
  const ended = run();
  ended.catch(() => undefined);
  return { records, ended, messages: () => records.map(({ message }) => message) };
}

describe('the calls for jobs', () => {
  it('deploys, lists, shows, promotes and aborts, signed with the secret', async () => {
    await using server = await startJobServer();
    const client = clientOf(server);
    const request = { service_name: 'shop', version: '1.4.0', artifact_url: 'shop:1.4.0' };
    const { job_id } = await client.deploy({ ...request, strategy: 'canary' }, { secret: 'top secret' });
    expect(await client.getJob(job_id)).toMatchObject({ job_id, phase: 'Pending', version: '1.4.0' });
    expect(await client.listJobs()).toMatchObject({ total: 1, jobs: [{ job_id }] });
    expect(await client.listJobs({ service_name: 'cart' })).toEqual({ total: 0, jobs: [] });
    expect(await client.promoteJob(job_id, { secret: 'top secret' })).toMatchObject({ status: 'accepted', job_id });
    expect(await client.abortJob(job_id, { secret: 'top secret' })).toMatchObject({ status: 'accepted', job_id });
    const writes = server.callsOf('POST');
    expect(writes.map(({ what }) => what)).toEqual([
      'POST /webhooks/deploy',
      `POST /jobs/${job_id}/promote`,
      `POST /jobs/${job_id}/abort`,
    ]);
    for (const { what, body, headers } of writes) {
      const signed = `${String(headers['x-webhook-timestamp'])}./api/v1${what.replace('POST ', '')}.${body}`;
      const mac = createHmac('sha256', 'top secret').update(signed).digest('hex');
      expect(headers['x-webhook-signature']).toBe(`sha256=${mac}`);
    }
  });

  it('passes filters and unusual ids on', async () => {
    await using server = await startJobServer();
    const client = clientOf(server);
    server.put('deploy-Straße/店-1-2');
    await client.listJobs({ service_name: 'a&b', phase: 'Failed', limit: 5 });
    expect(await client.getJob('deploy-Straße/店-1-2')).toMatchObject({ job_id: 'deploy-Straße/店-1-2' });
    expect(server.calls.map(({ what }) => what)).toEqual([
      'GET /jobs?service_name=a%26b&phase=Failed&limit=5',
      'GET /jobs/deploy-Stra%C3%9Fe%2F%E5%BA%97-1-2',
    ]);
  });

  it.each(['', '.', '..'])('sends nothing for the id %j', async (id) => {
    await using server = await startJobServer();
    const client = clientOf(server);
    for (const call of [client.getJob, client.promoteJob, client.abortJob]) {
      await expect(call(id)).rejects.toMatchObject({ status: 404, error: 'Job not found' });
    }
    await expect(client.followJob(id).next()).rejects.toMatchObject({ status: 404, error: 'Job not found' });
    expect(server.calls).toEqual([]);
  });

  it('does not promote twice: the second time it might end another pause', async () => {
    await using first = await startJobServer();
    await using second = await startJobServer();
    const client = clientOf(first, second);
    first.breakCalls('cut');
    await expect(client.promoteJob(ID)).rejects.toMatchObject({ error: 'Registry unreachable' });
    expect(second.calls).toEqual([]);
  });

  it('aborts by another registry when one is cut off', async () => {
    await using first = await startJobServer();
    await using second = await startJobServer();
    first.breakCalls('cut');
    second.put(ID);
    expect(await clientOf(first, second).abortJob(ID)).toMatchObject({ status: 'accepted' });
  });
});

describe('following a job', () => {
  it('reports the record as it is, then every change, to the end', async () => {
    await using server = await startJobServer();
    server.put(ID, { message: 'waits' });
    const following = follow(clientOf(server));
    await vi.waitFor(() => expect(following.records).toHaveLength(1), { timeout: 30_000 });
    server.put(ID, { phase: 'Progressing', message: 'starts', old_version: '1.3.0', strategy: 'canary' });
    server.put(ID, { step: 0, weight: 25, message: 'step' });
    const last = server.put(ID, { phase: 'Succeeded', message: 'done' });
    expect(await following.ended).toEqual(['waits', 'starts', 'step', 'done']);
    expect(following.records.at(-1)).toEqual(last);
    expect(server.calls).toHaveLength(1);
  });

  it('reports a job that has ended before', async () => {
    await using server = await startJobServer();
    server.put(ID, { phase: 'Failed', reason: 'WorkloadNotFound', message: 'no Deployment' });
    expect(await follow(clientOf(server)).ended).toEqual(['no Deployment']);
  });

  it('resumes streams that are cut in the middle of a message, or ended', async () => {
    await using server = await startJobServer();
    server.put(ID, { message: 'a' });
    const following = follow(clientOf(server));
    for (const [message, loss] of [
      ['b', 'cutStreams'],
      ['c', 'endStreams'],
      ['d', 'cutStreams'],
    ] as const) {
      await vi.waitFor(() => expect(server.streams()).toBe(1), { timeout: 30_000 });
      server[loss]();
      server.put(ID, { message });
      await vi.waitFor(() => expect(following.messages().at(-1)).toBe(message), { timeout: 30_000 });
    }
    server.put(ID, { phase: 'Succeeded', message: 'e' });
    expect(await following.ended).toEqual(['a', 'b', 'c', 'd', 'e']);
    // Every stream but the first says after which event it wants to go on.
    const [first, ...later] = server.resumedFrom();
    expect(first).toBeUndefined();
    expect(later.length).toBeGreaterThanOrEqual(3);
    expect(later.every((id) => Number(id) > 100)).toBe(true);
    // The half message that a cut left behind has not become the event to go on from.
    expect(later).not.toContain('1');
  });

  it('opens another stream where one is silent', async () => {
    await using server = await startJobServer();
    server.breakStreams('silent');
    server.put(ID, { message: 'a' });
    const following = follow(clientOf(server), { silenceMs: 50 });
    await vi.waitFor(() => expect(server.streams()).toBe(1), { timeout: 30_000 });
    server.breakStreams(undefined);
    await vi.waitFor(() => expect(following.messages()).toEqual(['a']), { timeout: 30_000 });
    server.put(ID, { phase: 'Succeeded', message: 'b' });
    expect(await following.ended).toEqual(['a', 'b']);
  });

  it('waits out an outage, and reports its beginning and its end', async () => {
    await using server = await startJobServer();
    server.put(ID, { message: 'a' });
    const onDisconnected = vi.fn<() => void>();
    const onConnected = vi.fn<() => void>();
    const following = follow(clientOf(server), { onDisconnected, onConnected });
    await vi.waitFor(() => expect(server.streams()).toBe(1), { timeout: 30_000 });
    server.breakStreams('cut');
    server.breakCalls('cut');
    server.cutStreams();
    await vi.waitFor(() => expect(onDisconnected).toHaveBeenCalledOnce(), { timeout: 30_000 });
    expect(onDisconnected.mock.lastCall).toMatchObject([{ error: 'Registry unreachable' }]);
    expect(onConnected).not.toHaveBeenCalled();
    server.put(ID, { message: 'b' });
    server.breakCalls(undefined);
    server.breakStreams(undefined);
    await vi.waitFor(() => expect(following.messages()).toEqual(['a', 'b']), { timeout: 30_000 });
    expect(onConnected).toHaveBeenCalledOnce();
    server.put(ID, { phase: 'Succeeded', message: 'c' });
    await following.ended;
  });

  it('goes on at another registry, and accepts nothing older from it', async () => {
    await using first = await startJobServer();
    await using second = await startJobServer();
    // Resource versions are the same at all replicas: here the second lags by one event.
    second.put(ID, { message: 'a' });
    first.put(ID, { message: 'a' });
    first.put(ID, { message: 'b' });
    const following = follow(clientOf(first, second));
    await vi.waitFor(() => expect(following.messages()).toEqual(['b']), { timeout: 30_000 });
    first.breakStreams('cut');
    first.breakCalls('cut');
    first.cutStreams();
    await vi.waitFor(() => expect(second.streams()).toBe(1), { timeout: 30_000 });
    second.put(ID, { message: 'b' });
    second.put(ID, { phase: 'Succeeded', message: 'c' });
    expect(await following.ended).toEqual(['b', 'c']);
    expect(second.resumedFrom()[0]).toBe('102');
  });

  it('says so where there is no such job', async () => {
    await using server = await startJobServer();
    await expect(follow(clientOf(server)).ended).rejects.toMatchObject({ status: 404, error: 'Job not found' });
  });

  it('ends with an error when the job is gone before it has ended', async () => {
    await using server = await startJobServer();
    server.put(ID);
    const following = follow(clientOf(server));
    await vi.waitFor(() => expect(server.streams()).toBe(1), { timeout: 30_000 });
    server.forget(ID);
    server.endStreams();
    await expect(following.ended).rejects.toMatchObject({ status: 404 });
  });

  it.each([
    [401, 'Unauthenticated'],
    [403, 'Forbidden'],
  ])('does not insist where it is refused with %d', async (status, error) => {
    await using server = await startJobServer();
    server.breakStreams({ status, body: { error, message: 'no' } });
    await expect(follow(clientOf(server)).ended).rejects.toMatchObject({ status, error });
    expect(server.calls).toHaveLength(1);
  });

  it('can be called off: while it listens, and while no registry answers', async () => {
    await using server = await startJobServer();
    server.put(ID);
    const listening = new AbortController();
    const following = follow(clientOf(server), { signal: listening.signal });
    await vi.waitFor(() => expect(following.records).toHaveLength(1), { timeout: 30_000 });
    listening.abort(new Error('enough'));
    await expect(following.ended).rejects.toThrow('enough');
    await vi.waitFor(() => expect(server.streams()).toBe(0), { timeout: 30_000 });

    const client = createRegistryClient({ servers: `http://127.0.0.1:${await freePort()}` });
    const waiting = new AbortController();
    const lost = Promise.withResolvers<void>();
    const retry = { baseMs: 10, maxMs: 60_000 };
    const vain = follow(client, { signal: waiting.signal, retry, onDisconnected: () => lost.resolve() });
    await lost.promise;
    waiting.abort(new Error('enough'));
    await expect(vain.ended).rejects.toThrow('enough');
  });

  it('closes its connection when nobody listens any more', async () => {
    await using server = await startJobServer();
    server.put(ID);
    for await (const record of clientOf(server).followJob(ID)) {
      expect(record.job_id).toBe(ID);
      break;
    }
    await vi.waitFor(() => expect(server.streams()).toBe(0), { timeout: 30_000 });
  });
});
