import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { projectedToken } from '@rollcall/client/projected-token.ts';
import { type RegisterOptions, type Registration, register } from '@rollcall/client/registration.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { describe, expect, it, vi } from 'vitest';
import { type ContractServer, freePort, startContractServer } from './contract-server.ts';

/** Quick enough for a test; what is tested does not depend on the times. */
const quick = { heartbeatIntervalMs: 40, retry: { baseMs: 10, maxMs: 40 }, timeoutMs: 2000 } as const;

function registerShop(server: ContractServer | string, options: Partial<RegisterOptions> = {}): Registration {
  const servers = typeof server === 'string' ? server : server.url;
  return register({ servers, name: 'shop', url: 'http://shop:8080', ...quick, ...options });
}

/** Everything the registration reports, in order, as short sentences. */
function heardFrom(registration: Registration): string[] {
  const heard: string[] = [];
  registration.on('registered', ({ again }) => heard.push(again ? 'registered again' : 'registered'));
  registration.on('heartbeat', () => heard.push('heartbeat'));
  registration.on('lost', ({ reason }) => heard.push(`lost ${reason}`));
  registration.on('error', ({ retryInMs }) => heard.push(retryInMs === undefined ? 'failed' : 'error'));
  return heard;
}

describe('register', () => {
  it('registers, sends heartbeats, and removes the registration at the end', async () => {
    await using server = await startContractServer();
    const registration = registerShop(server, { capabilities: ['rest', 'grpc'] });
    expect(registration.state()).toBe('registering');
    expect(await registration.registered).toMatchObject({ service_name: 'shop', ttl: 60 });
    expect(server.services.get('shop')).toMatchObject({
      service_url: 'http://shop:8080',
      capabilities: ['rest', 'grpc'],
    });
    await vi.waitFor(() => expect(server.callsOf('POST /services/shop/heartbeat').length).toBeGreaterThan(3), {
      timeout: 30_000,
    });
    expect(registration.state()).toBe('registered');
    await registration.unregister();
    expect(registration.state()).toBe('stopped');
    expect(server.services.size).toBe(0);
    const calls = server.calls.length;
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(server.calls.length).toBe(calls);
  });

  it('waits for a registry that starts later', async () => {
    const port = await freePort();
    const registration = registerShop(`http://127.0.0.1:${port}`);
    const heard = heardFrom(registration);
    await vi.waitFor(() => expect(heard.length).toBeGreaterThan(2), { timeout: 30_000 });
    expect(new Set(heard)).toEqual(new Set(['error']));
    await using server = await startContractServer({ port });
    await registration.registered;
    expect(server.services.has('shop')).toBe(true);
    await registration.unregister();
  });

  it('registers again when the registration expired', async () => {
    await using server = await startContractServer();
    await using registration = registerShop(server);
    const heard = heardFrom(registration);
    const { service_id: first } = await registration.registered;
    server.expire('shop');
    await vi.waitFor(() => expect(heard).toContain('registered again'), { timeout: 30_000 });
    expect(heard.slice(heard.indexOf('lost expired'))[1]).toBe('registered again');
    expect(server.services.get('shop')?.service_id).not.toBe(first);
  });

  it('says that it is lost after a TTL without an acknowledged heartbeat, and recovers', async () => {
    await using server = await startContractServer({ ttl: 1 });
    await using registration = registerShop(server);
    const heard = heardFrom(registration);
    await registration.registered;
    server.misbehave('POST /services/shop/heartbeat', { status: 503, body: { error: 'x', message: 'x' } });
    await vi.waitFor(() => expect(heard).toContain('lost unreachable'), { timeout: 30_000 });
    expect(registration.state()).toBe('lost');
    server.misbehave('POST /services/shop/heartbeat', undefined);
    await vi.waitFor(() => expect(registration.state()).toBe('registered'), { timeout: 30_000 });
    expect(heard.at(-1)).toBe('heartbeat');
    expect(heard.filter((event) => event === 'lost unreachable')).toHaveLength(1);
  });

  it('follows a registry through a restart that forgot everything', async () => {
    const port = await freePort();
    const first = await startContractServer({ port });
    const registration = registerShop(first);
    const heard = heardFrom(registration);
    await registration.registered;
    await first[Symbol.asyncDispose]();
    await vi.waitFor(() => expect(heard).toContain('error'), { timeout: 30_000 });
    await using second = await startContractServer({ port });
    await vi.waitFor(() => expect(second.services.has('shop')).toBe(true), { timeout: 30_000 });
    await registration.unregister();
    expect(second.services.size).toBe(0);
  });

  it.each(['refuses connections', 'hangs', 'cuts connections', 'is unavailable'])(
    'uses the second registry when the first %s',
    async (fault) => {
      await using first = await startContractServer();
      await using second = await startContractServer();
      if (fault === 'refuses connections') await first[Symbol.asyncDispose]();
      if (fault === 'hangs') first.misbehave('', 'hang');
      if (fault === 'cuts connections') first.misbehave('', 'cut');
      if (fault === 'is unavailable') first.misbehave('', { status: 503, body: { error: 'x', message: 'x' } });
      await using registration = registerShop('', { servers: [first.url, second.url] });
      const heard = heardFrom(registration);
      await registration.registered;
      await vi.waitFor(() => expect(heard).toContain('heartbeat'), { timeout: 30_000 });
      expect(heard).not.toContain('error');
      expect(first.calls.length).toBeLessThanOrEqual(1);
    },
  );

  it('gives up when the registry says that the registration is wrong', async () => {
    await using server = await startContractServer();
    server.misbehave('POST /services/register', {
      status: 400,
      body: { error: 'Invalid service name', message: 'no colon' },
    });
    const registration = registerShop(server);
    const heard = heardFrom(registration);
    await expect(registration.registered).rejects.toMatchObject({ status: 400, error: 'Invalid service name' });
    expect(registration.state()).toBe('refused');
    await new Promise((resolve) => setTimeout(resolve, 100));
    expect(heard).toEqual(['failed']);
    await registration.unregister();
    expect(server.calls).toHaveLength(1);
  });

  it('does not mistake a lost registration for a wrong one', async () => {
    await using server = await startContractServer();
    await using registration = registerShop(server);
    const heard = heardFrom(registration);
    await registration.registered;
    server.misbehave('POST /services/register', { status: 400, body: { error: 'Invalid request', message: 'x' } });
    server.expire('shop');
    await vi.waitFor(() => expect(heard.filter((event) => event === 'error').length).toBeGreaterThan(2), {
      timeout: 30_000,
    });
    server.misbehave('POST /services/register', undefined);
    await vi.waitFor(() => expect(heard).toContain('registered again'), { timeout: 30_000 });
  });

  it('reads the token file for every request', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-token-'));
    const file = join(directory, 'token');
    await writeFile(file, 'old\n');
    await using server = await startContractServer();
    server.misbehave('POST', { status: 401, body: { error: 'Unauthenticated', message: 'expired' } });
    await using registration = registerShop(server, { token: projectedToken({ ROLLCALL_TOKEN_FILE: file }) });
    const heard = heardFrom(registration);
    await vi.waitFor(() => expect(heard.length).toBeGreaterThan(1), { timeout: 30_000 });
    await writeFile(file, 'new\n');
    server.misbehave('POST', undefined);
    await registration.registered;
    // The one that is on its way when the file changes may bear the old one still.
    await vi.waitFor(() => expect(server.calls.at(-1)?.headers.authorization).toBe('Bearer new'), { timeout: 30_000 });
    await rm(directory, { recursive: true });
    const before = heard.length;
    await vi.waitFor(() => expect(heard.slice(before + 1)).toContain('heartbeat'), { timeout: 30_000 });
    expect(server.calls[0]?.headers.authorization).toBe('Bearer old');
    expect(server.calls.at(-1)?.headers.authorization).toBe('Bearer new');
  });

  it('finds the token that Kubernetes projects into a pod by itself', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'rollcall-token-'));
    const file = join(directory, 'token');
    await using server = await startContractServer();
    const sent = () => server.calls.at(-1)?.headers.authorization;
    vi.stubEnv('ROLLCALL_TOKEN_FILE', file);
    try {
      const client = createRegistryClient({ servers: server.url });
      // As long as there is none, calls go without.
      await client.listServices();
      expect(sent()).toBeUndefined();
      await writeFile(file, 'projected\n');
      await client.listServices();
      expect(sent()).toBe('Bearer projected');
      await rm(file);
      await client.listServices();
      expect(sent()).toBe('Bearer projected');
      await createRegistryClient({ servers: server.url, token: 'given' }).listServices();
      expect(sent()).toBe('Bearer given');
      vi.stubEnv('ROLLCALL_TOKEN_FILE', '');
      await createRegistryClient({ servers: server.url }).listServices();
      expect(sent()).toBeUndefined();
    } finally {
      vi.unstubAllEnvs();
      await rm(directory, { recursive: true });
    }
  });

  it.each([{ heartbeatIntervalMs: 0 }, { heartbeatIntervalMs: Number.NaN }])('refuses %o', (options) => {
    expect(() => registerShop('http://127.0.0.1:1', options)).toThrow(RangeError);
  });
});

describe('unregister', () => {
  it('leaves the name to an instance that has taken it over', async () => {
    await using server = await startContractServer();
    const old = registerShop(server);
    await old.registered;
    server.put('shop', { url: 'http://new-shop:8080' });
    await old.unregister();
    expect(server.services.get('shop')?.service_url).toBe('http://new-shop:8080');
  });

  it('leaves the name to a registration made after ours had expired', async () => {
    await using server = await startContractServer();
    const old = registerShop(server, { heartbeatIntervalMs: 10_000 });
    await old.registered;
    server.expire('shop');
    server.put('shop', { url: 'http://shop:8080' });
    await old.unregister();
    expect(server.services.has('shop')).toBe(true);
  });

  it('is content when the registration is gone already', async () => {
    await using server = await startContractServer();
    const registration = registerShop(server, { heartbeatIntervalMs: 10_000 });
    await registration.registered;
    server.expire('shop');
    await registration.unregister();
    await registration.unregister();
    expect(server.callsOf('DELETE')).toEqual([]);
  });

  it('waits for a registration in flight, so that the removal is the last word', async () => {
    await using server = await startContractServer();
    const registration = registerShop(server);
    await registration.unregister();
    expect(server.calls.map(({ what }) => what)).toEqual([
      'POST /services/register',
      'GET /services/shop',
      'DELETE /services/shop',
    ]);
    expect(server.services.size).toBe(0);
  });

  it('before the registry was ever reached ends at once', async () => {
    const registration = registerShop(`http://127.0.0.1:${await freePort()}`);
    await registration.unregister();
    await expect(registration.registered).rejects.toThrow('unregistered');
  });

  it('tries again for a while', async () => {
    await using server = await startContractServer();
    const registration = registerShop(server);
    await registration.registered;
    server.misbehave('DELETE', 'cut');
    const unregistered = registration.unregister();
    await vi.waitFor(() => expect(server.callsOf('DELETE').length).toBeGreaterThan(2), { timeout: 30_000 });
    server.misbehave('DELETE', undefined);
    await unregistered;
    expect(server.services.size).toBe(0);
  });

  it('fails in the end, as an exception or, when disposed of, as an event', async () => {
    await using server = await startContractServer();
    const registration = registerShop(server);
    const heard = heardFrom(registration);
    await registration.registered;
    server.misbehave('', 'hang');
    await Promise.all([
      expect(registration.unregister()).rejects.toMatchObject({ error: 'Registry unreachable' }),
      registration[Symbol.asyncDispose](),
    ]);
    expect(heard.at(-1)).toBe('failed');
  });
});

const client = (file: string) => JSON.stringify(import.meta.resolve(`@rollcall/client/${file}.ts`));

function run(server: ContractServer, lines: readonly string[]) {
  const source = [
    `import { register } from ${client('registration')};`,
    `import { unregisterOnSignals } from ${client('unregister-on-signals')};`,
    `const options = { servers: '${server.url}', name: 'shop', url: 'http://shop' };`,
    ...lines,
  ].join('\n');
  return spawn(process.execPath, ['--input-type=module-typescript', '--eval', source], {
    stdio: ['ignore', 'inherit', 'inherit'],
  });
}

describe('in a process of its own', () => {
  it('unregisters at a signal and then ends by it', async () => {
    await using server = await startContractServer();
    const child = run(server, ['unregisterOnSignals(register(options));']);
    await vi.waitFor(() => expect(server.services.size).toBe(1), { timeout: 10_000 });
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
    expect(server.services.size).toBe(0);
  });

  it('leaves the end to another listener of the signal', async () => {
    await using server = await startContractServer();
    const child = run(server, [
      'unregisterOnSignals(register(options));',
      "process.on('SIGTERM', () => setTimeout(() => process.exit(7), 500));",
    ]);
    await vi.waitFor(() => expect(server.services.size).toBe(1), { timeout: 10_000 });
    child.kill('SIGTERM');
    expect(await once(child, 'exit')).toEqual([7, null]);
    expect(server.services.size).toBe(0);
  });

  it('keeps the process alive, unless unref is set', async () => {
    await using server = await startContractServer();
    const child = run(server, ['await register({ ...options, unref: true }).registered;']);
    expect(await once(child, 'exit')).toEqual([0, null]);
    const alive = run(server, ['await register(options).registered;']);
    await expect(
      Promise.race([once(alive, 'exit'), new Promise((resolve) => setTimeout(resolve, 1500, 'alive'))]),
    ).resolves.toBe('alive');
    alive.kill('SIGKILL');
    await once(alive, 'exit');
  });
});
