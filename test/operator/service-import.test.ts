import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, test } from 'vitest';
import { createWorld, register, startOperator, until, untilPhase, type World } from './fixtures.ts';

const TTL_MS = 3000;
const settings = { ROLLCALL_IMPORT_TTL_SECONDS: '3', ROLLCALL_RETENTION_SECONDS: '1' };

function createService(world: World, name: string, annotations: Record<string, string> = {}) {
  return world.services.create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: world.namespace, annotations: { 'rollcall.dev/register': 'true', ...annotations } },
    spec: { ports: [{ name: 'http', port: 8080 }] },
  });
}

/** The Services have no selector, so nobody else looks after their slices. */
async function setReady(world: World, service: string, ready: boolean): Promise<void> {
  const endpoints = [{ addresses: ['192.0.2.1'], conditions: { ready } }];
  if ((await world.endpointSlices.find(service)) !== undefined) {
    await world.endpointSlices.patch(service, { endpoints });
    return;
  }
  await world.endpointSlices.create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: service, namespace: world.namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    endpoints,
  });
}

const gone = (world: World, name: string) =>
  until(`${name} is gone`, async () => (await world.registrations.find(name)) === undefined);

describe.concurrent('annotated Services', () => {
  test('are registered, follow their annotations, and go with them', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings });
    await createService(world, 'shop', { 'rollcall.dev/capabilities': 'rest,grpc' });
    await setReady(world, 'shop', true);
    const first = await untilPhase(world, 'shop', 'Registered');
    expect(first).toMatchObject({
      metadata: { annotations: { 'rollcall.dev/imported-from': `${world.namespace}/shop` } },
      spec: {
        serviceName: 'shop',
        url: `http://shop.${world.namespace}.svc:8080`,
        capabilities: ['rest', 'grpc'],
        source: 'KubernetesService',
      },
      status: { conditions: [{ status: 'True', reason: 'EndpointsReady' }] },
    });
    await sleep(TTL_MS + 1500);
    expect((await world.registrations.get('shop')).status?.phase).toBe('Registered');

    await world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/url': 'http://moved.example' } } });
    await until('the URL is new', async () => {
      const { spec, metadata } = await world.registrations.get('shop');
      return spec.url === 'http://moved.example' && metadata.uid === first.metadata.uid;
    });

    await world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/service-name': 'Shop' } } });
    await gone(world, 'shop');
    await until('it has the other name', async () => {
      const { items } = await world.connection.request<{ items: { spec: { serviceName: string } }[] }>({
        method: 'GET',
        path: `/apis/rollcall.dev/v1alpha1/namespaces/${world.namespace}/serviceregistrations`,
      });
      return items.map(({ spec }) => spec.serviceName).join() === 'Shop';
    });

    await world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/service-name': null } } });
    await untilPhase(world, 'shop', 'Registered');
    await world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/register': null } } });
    await gone(world, 'shop');
  });

  test('are Expired a TTL after the last ready endpoint, kept so, and registered anew with the next', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings });
    await createService(world, 'shop');
    await setReady(world, 'shop', true);
    const first = await untilPhase(world, 'shop', 'Registered');
    await sleep(TTL_MS);
    await setReady(world, 'shop', false);
    const unreadyAtMs = performance.now();
    const expired = await untilPhase(world, 'shop', 'Expired');
    expect(expired.seenAtMs - unreadyAtMs).toBeGreaterThan(TTL_MS - 500);
    expect(expired.seenAtMs - unreadyAtMs).toBeLessThan(TTL_MS + 10_000);
    expect(expired.status?.conditions).toMatchObject([{ status: 'False', reason: 'EndpointsNotReady' }]);
    await sleep(2500);
    expect((await world.registrations.get('shop')).metadata.uid).toBe(first.metadata.uid);
    await setReady(world, 'shop', true);
    await until('it is registered anew', async () => {
      const found = await world.registrations.find('shop');
      return found?.status?.phase === 'Registered' && found.metadata.uid !== first.metadata.uid;
    });
    await world.services.delete('shop');
    await gone(world, 'shop');
  });

  test('with faults, or with a name that is taken, get a warning and change nothing', async (context) => {
    const world = await createWorld(context);
    const holder = await register(world, 'taken', { source: 'Manifest' });
    await startOperator(world, { settings });
    await createService(world, 'faulty', { 'rollcall.dev/url': 'ftp://shop', 'rollcall.dev/capabilities': 'soap' });
    // What URL parsers repair silently, and only the API server used to refuse.
    const repaired = { slashes: 'http:///shop', encoded: 'http://sh%6Fp', nobody: 'http://@shop' };
    for (const [name, url] of Object.entries(repaired)) await createService(world, name, { 'rollcall.dev/url': url });
    await createService(world, 'late', { 'rollcall.dev/service-name': 'taken' });
    await world.registrations.create({
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'ServiceRegistration',
      metadata: { name: 'pods.i.pod-1', namespace: world.namespace },
      spec: {
        serviceName: 'pods',
        instanceId: 'pod-1',
        url: 'http://10.0.0.7',
        capabilities: [],
        source: 'API',
        ttlSeconds: 3600,
      },
    });
    await createService(world, 'intruder', { 'rollcall.dev/service-name': 'pods' });
    const warned = ['faulty', ...Object.keys(repaired), 'late', 'intruder'];
    await until('all are warned', async () => {
      const events = await Promise.all(warned.map((name) => world.events(name)));
      return events.every((list) => list.length > 0);
    });
    for (const name of Object.keys(repaired)) {
      expect(await world.events(name)).toMatchObject([{ type: 'Warning', reason: 'InvalidRegistration' }]);
    }
    expect(await world.events('faulty')).toMatchObject([
      { type: 'Warning', reason: 'InvalidRegistration', message: expect.stringMatching(/url.*capabilities/) },
    ]);
    for (const name of ['late', 'intruder']) {
      expect(await world.events(name)).toMatchObject([{ type: 'Warning', reason: 'NameTaken' }]);
    }
    expect(await world.registrations.find('pods')).toBeUndefined();
    const { metadata, spec } = await world.registrations.get('taken');
    expect(metadata.uid).toBe(holder.metadata.uid);
    expect(spec.url).toBe(holder.spec.url);
    expect(await world.registrations.find('faulty')).toBeUndefined();
  });

  test('are found again by the next operator, which removes only what lost its Service meanwhile', async (context) => {
    const world = await createWorld(context);
    const first = await startOperator(world, { settings });
    await Promise.all(['stays', 'leaves'].map((name) => createService(world, name)));
    await Promise.all(['stays', 'leaves'].map((name) => setReady(world, name, true)));
    const before = await untilPhase(world, 'stays', 'Registered');
    await untilPhase(world, 'leaves', 'Registered');
    await first.stop();
    await world.services.delete('leaves');
    await startOperator(world, { settings });
    await gone(world, 'leaves');
    await sleep(TTL_MS + 1000);
    const after = await world.registrations.get('stays');
    expect(after.metadata.uid).toBe(before.metadata.uid);
    expect(after.status?.phase).toBe('Registered');
  });
});
