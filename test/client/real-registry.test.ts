import { discover } from '@rollcall/client/discovery.ts';
import { register } from '@rollcall/client/registration.ts';
import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { type ManagedProcess, startProcess } from '@rollcall/local/processes.ts';
import { afterAll, beforeAll, describe, expect, inject, it, vi } from 'vitest';
import { freeze, thaw } from '../support/freeze.ts';
import { type RealRegistry, startRealRegistry } from './real-registry.ts';

const quick = { heartbeatIntervalMs: 300, retry: { baseMs: 20, maxMs: 200 } } as const;

function startSample(registry: string, name: string): Promise<ManagedProcess> {
  return startProcess({
    name,
    command: process.execPath,
    args: ['local/src/sample-service.ts', name, '0', registry, 'rest,grpc', '2.5.0'],
    logFile: `${inject('temporaryDirectory')}/sample-${name}.log`,
  });
}

/** For the tests that leave it running and without services. */
let shared: RealRegistry;
beforeAll(async () => {
  shared = await startRealRegistry();
});
afterAll(() => shared[Symbol.asyncDispose]());

/** Does what it is asked to, and says nothing of a registration. */
const loses: typeof fetch = async (url, init) => {
  const answer = await fetch(url, init);
  if (answer.url.endsWith('/register')) throw new TypeError('the answer is lost');
  return answer;
};

describe('against the real registry', () => {
  it('registers, is found, stays alive, and is gone after unregistering', async () => {
    const registry = shared;
    const client = createRegistryClient({ servers: registry.url });
    const registration = register({
      servers: registry.url,
      name: 'Straße-店',
      url: 'http://10.0.0.7:8080',
      capabilities: ['rest'],
      ...quick,
    });
    const heartbeats = vi.fn<() => void>();
    registration.on('heartbeat', heartbeats);
    const { service_id } = await registration.registered;
    expect(await client.getService('Straße-店')).toMatchObject({
      service_id,
      service_url: 'http://10.0.0.7:8080',
      capabilities: ['rest'],
    });
    await vi.waitFor(() => expect(heartbeats.mock.calls.length).toBeGreaterThan(2), { timeout: 30_000 });
    await registration.unregister();
    await expect(client.getService('Straße-店')).rejects.toMatchObject({ status: 404, error: 'Service not found' });
    await expect(client.heartbeat('Straße-店')).rejects.toMatchObject({ status: 400, error: 'Service not found' });
  });

  it('unregisters its instance though no answer said that it was registered, and no other', async () => {
    const client = createRegistryClient({ servers: shared.url });
    const instance = { servers: shared.url, name: 'lossy', url: 'http://10.0.0.7:8080' };
    await using other = register({ ...instance, instanceId: 'other' });
    await other.registered;
    const registration = register({
      ...instance,
      instanceId: 'unheard',
      fetch: loses,
      retry: { baseMs: 60_000, maxMs: 60_000 },
    });
    await vi.waitFor(() => client.getInstance('lossy', 'unheard'), { timeout: 30_000 });
    await registration.unregister();
    const { instances } = await client.listInstances('lossy');
    expect(instances.map(({ instance_id }) => instance_id)).toEqual(['other']);
  });

  it('ends the report of a program that ran under its id before', async () => {
    const client = createRegistryClient({ servers: shared.url });
    const facts = { service_name: 'again', instance_id: 'a', service_url: 'http://a' };
    await client.register(facts);
    await client.reportHealth({ service_name: 'again', instance_id: 'a', status: 'draining' });
    await using registration = register({ servers: shared.url, name: 'again', instanceId: 'a', url: 'http://a' });
    expect(await registration.registered).toMatchObject({ healthy: false });
    await vi.waitFor(async () => expect(await client.getInstance('again', 'a')).toMatchObject({ healthy: true }), {
      timeout: 30_000,
    });
  });

  it('gives one record to two programs with one instance id, and to the first again when the second leaves', async () => {
    const client = createRegistryClient({ servers: shared.url });
    const twin = { servers: shared.url, name: 'twins', instanceId: 'same', ...quick };
    await using first = register({ ...twin, url: 'http://first' });
    const { service_id } = await first.registered;
    const heard: string[] = [];
    for (const event of ['heartbeat', 'lost', 'registered'] as const) first.on(event, () => heard.push(event));
    const second = register({ ...twin, url: 'http://second' });
    expect((await second.registered).service_id).toBe(service_id);
    const beats = vi.fn<() => void>();
    second.on('heartbeat', beats);
    // Heartbeats of both are good, and nothing goes back and forth.
    await vi.waitFor(() => expect(beats.mock.calls.length).toBeGreaterThan(2), { timeout: 10_000 });
    expect(new Set(heard)).toEqual(new Set(['heartbeat']));
    const { instances } = await client.listInstances('twins');
    expect(instances).toMatchObject([{ instance_id: 'same', service_url: 'http://second', service_id }]);
    await second.unregister();
    const changes = () => heard.filter((event) => event !== 'heartbeat');
    await vi.waitFor(() => expect(changes()).toEqual(['lost', 'registered']), { timeout: 30_000 });
    expect(await client.getInstance('twins', 'same')).toMatchObject({ service_url: 'http://first' });
  });

  it('leaves the record to the program that has one instance id last', async () => {
    const client = createRegistryClient({ servers: shared.url });
    const twin = { servers: shared.url, name: 'replaced', instanceId: 'same', ...quick };
    const first = register({ ...twin, url: 'http://first' });
    await first.registered;
    await using second = register({ ...twin, url: 'http://second' });
    const { service_id } = await second.registered;
    await first.unregister();
    expect(await client.getInstance('replaced', 'same')).toMatchObject({ service_url: 'http://second', service_id });
  });

  it.each([
    { name: 'a:b', url: 'http://x', error: 'Invalid service name' },
    { name: 'shop', url: 'javascript:alert(1)', error: 'Invalid service URL' },
  ])('is refused for good with name $name and URL $url', async ({ name, url, error }) => {
    const registry = shared;
    const registration = register({ servers: registry.url, name, url, ...quick });
    await expect(registration.registered).rejects.toMatchObject({ status: 400, error });
    expect(registration.state()).toBe('refused');
  });

  it('keeps its registration through a crash of the registry', async () => {
    await using registry = await startRealRegistry();
    await using registration = register({ servers: registry.url, name: 'shop', url: 'http://shop', ...quick });
    using directory = discover({ servers: registry.url, retry: quick.retry });
    const changes = vi.fn<() => void>();
    const heard: string[] = [];
    registration.on('error', () => heard.push('error'));
    registration.on('lost', () => heard.push('lost'));
    registration.on('heartbeat', () => heard.push('heartbeat'));
    const { service_id } = await registration.registered;
    await directory.ready;
    await vi.waitFor(() => expect(directory.get('shop').service_id).toBe(service_id), { timeout: 30_000 });
    directory.on('change', changes);

    const lost = new Promise((resolve) => directory.on('disconnected', resolve));
    await registry.kill();
    await lost;
    await vi.waitFor(() => expect(heard).toContain('error'), { timeout: 30_000 });
    expect(directory.get('shop').service_url).toBe('http://shop');
    await registry.restart();
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 10_000 });
    await vi.waitFor(() => expect(heard.at(-1)).toBe('heartbeat'), { timeout: 10_000 });
    expect(heard).not.toContain('lost');
    expect(changes).not.toHaveBeenCalled();
    expect(directory.get('shop').service_id).toBe(service_id);
  });

  it('goes on with another replica when one crashes', async () => {
    await using registry = await startRealRegistry();
    const servers = [registry.url, await registry.addReplica()];
    await using registration = register({ servers, name: 'shop', url: 'http://shop', ...quick });
    using directory = discover({ servers, retry: quick.retry });
    const errors = vi.fn<() => void>();
    registration.on('error', errors);
    await Promise.all([registration.registered, directory.ready]);
    const lost = new Promise((resolve) => directory.on('disconnected', resolve));
    await registry.kill();
    await lost;
    await vi.waitFor(() => expect(directory.state()).toBe('live'), { timeout: 30_000 });
    await createRegistryClient({ servers }).register({ service_name: 'cart', service_url: 'http://cart' });
    await vi.waitFor(() => expect(directory.list()).toHaveLength(2), { timeout: 30_000 });
    expect(errors).not.toHaveBeenCalled();
  });

  it('follows every kind of change, with the facts of the registry', async () => {
    const registry = shared;
    const client = createRegistryClient({ servers: registry.url });
    await client.register({ service_name: 'first', service_url: 'http://first' });
    using directory = discover({ servers: registry.url });
    await directory.ready;
    const changes: string[] = [];
    directory.on('change', ({ type, service }) => changes.push(`${type} ${service.service_name}`));
    await client.register({ service_name: 'shop', service_url: 'http://one' });
    await client.register({ service_name: 'shop', service_url: 'http://two', capabilities: ['grpc'] });
    await client.heartbeat('shop');
    await client.unregister('first');
    await vi.waitFor(() => expect(changes).toEqual(['added shop', 'modified shop', 'removed first']), {
      timeout: 30_000,
    });
    const { last_heartbeat: _, ...facts } = await client.getService('shop');
    expect(directory.get('shop')).toMatchObject(facts);
    await client.unregister('shop');
  });
});

describe('the sample service', () => {
  it('shows its version and health to kubectl, and unregisters when it ends', async () => {
    const registry = shared;
    const client = createRegistryClient({ servers: registry.url });
    const sample = await startSample(registry.url, 'catalog');
    const sreg = ['get', 'sreg', '--selector', 'rollcall.dev/service=catalog'];
    await vi.waitFor(() => client.getService('catalog'), { timeout: 10_000 });
    await vi.waitFor(
      async () => expect(await registry.namespace.kubectl([...sreg, '-o', 'wide'])).toMatch(/catalog.*2\.5\.0.*rest/),
      { timeout: 10_000 },
    );
    const stored = await registry.namespace.kubectl([...sreg, '-o', 'jsonpath={.items[0].status}']);
    expect(JSON.parse(stored)).toMatchObject({
      currentVersion: '2.5.0',
      health: { status: 'healthy' },
      lifecycle: { event: 'started', details: { version: '2.5.0' } },
    });
    const { service_url } = await client.getService('catalog');
    expect(await (await fetch(service_url)).json()).toMatchObject({ service: 'catalog', version: '2.5.0' });
    expect(await (await fetch(`${service_url}/health`)).json()).toEqual({ status: 'healthy' });
    await sample.stop();
    expect(await sample.exited).toEqual({ code: 0, signal: null });
    await expect(client.getService('catalog')).rejects.toMatchObject({ status: 404 });
  });

  it('that was frozen expires, and registers again when it wakes', async () => {
    await using registry = await startRealRegistry({ ttlSeconds: 5, operator: true });
    const client = createRegistryClient({ servers: registry.url });
    const sample = await startSample(registry.url, 'orders');
    using directory = discover({ servers: registry.url });
    const changes: string[] = [];
    directory.on('change', ({ type }) => changes.push(type));
    await vi.waitFor(() => expect(changes).toEqual(['added']), { timeout: 10_000 });
    const first = await client.getService('orders');
    await freeze(sample.pid);
    await vi.waitFor(() => expect(changes).toEqual(['added', 'expired']), { timeout: 20_000, interval: 100 });
    await expect(client.getService('orders')).rejects.toMatchObject({ status: 404 });
    thaw(sample.pid);
    await vi.waitFor(() => expect(changes).toEqual(['added', 'expired', 'added']), { timeout: 10_000 });
    expect((await client.getService('orders')).service_id).not.toBe(first.service_id);
    await sample.stop();
  });
});
