import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import type { EndpointSlice } from '@rollcall/platform/kube/builtin-kinds.ts';
import { listObjects } from '@rollcall/platform/kube/list.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, test } from 'vitest';
import { createWorld, startOperator, until, untilPhase, type World } from './fixtures.ts';

const TTL_MS = 3000;
const settings = { ROLLCALL_IMPORT_TTL_SECONDS: '3', ROLLCALL_RETENTION_SECONDS: '600' };

type Endpoint = NonNullable<EndpointSlice['endpoints']>[number];

function createService(world: World, name: string, annotations: Record<string, string> = {}) {
  const asked = { 'rollcall.dev/register': 'true', 'rollcall.dev/instances': 'endpoints', ...annotations };
  return world.services.create({
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace: world.namespace, annotations: asked },
    spec: {
      ports: [
        { name: 'metrics', port: 9090 },
        { name: 'http', port: 80 },
      ],
    },
  });
}

/** The Services have no selector, so nobody else looks after their slices. */
async function setEndpoints(world: World, slice: string, endpoints: Endpoint[]): Promise<void> {
  if ((await world.endpointSlices.find(slice)) !== undefined) {
    await world.endpointSlices.patch(slice, { endpoints });
    return;
  }
  const service = slice.split('.')[0] ?? slice;
  await world.endpointSlices.create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: slice, namespace: world.namespace, labels: { 'kubernetes.io/service-name': service } },
    addressType: 'IPv4',
    ports: [
      { name: 'http', port: 8080 },
      { name: 'metrics', port: 9090 },
    ],
    endpoints,
  });
}

const pod = (name: string, address: string, ready = true): Endpoint => ({
  addresses: [address],
  conditions: { ready },
  targetRef: { kind: 'Pod', name },
  zone: 'eu-1a',
});

const pods = (slice: number): Endpoint[] =>
  Array.from({ length: 100 }, (_, at) => pod(`pod-${slice}-${at}`, `198.51.${100 + slice}.${at + 1}`));

const list = (world: World): Promise<readonly ServiceRegistration[]> =>
  listObjects(world.connection, world.registrations.kind, { namespace: world.namespace });

const names = async (world: World): Promise<string[]> =>
  (await list(world)).map(({ metadata }) => metadata.name).toSorted();

function untilThereAre(world: World, ...expected: string[]): Promise<void> {
  return until(`there are ${expected.join()}`, async () => (await names(world)).join() === expected.join());
}

describe.concurrent('a Service of endpoints', () => {
  test('has an instance for each, with the id of the name, while it is there', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings });
    await createService(world, 'shop');
    await setEndpoints(world, 'shop', [pod('a', '192.0.2.1'), { addresses: ['192.0.2.2'] }]);
    await untilThereAre(world, 'shop.i.192-0-2-2', 'shop.i.a');
    await setEndpoints(world, 'shop', [
      pod('a', '192.0.2.1'),
      { addresses: ['192.0.2.2'] },
      pod('b', '192.0.2.3'),
      pod('c', '192.0.2.4', false),
    ]);
    await untilThereAre(world, 'shop.i.192-0-2-2', 'shop.i.a', 'shop.i.b');
    const [first, second, third] = await list(world);
    expect(first?.spec.serviceId).toBeUndefined();
    for (const each of [second, third]) expect(each?.spec.serviceId).toBe(first?.metadata.uid);
    expect(second).toMatchObject({
      metadata: {
        labels: { 'rollcall.dev/service': 'shop' },
        annotations: { 'rollcall.dev/imported-from': `${world.namespace}/shop` },
      },
      spec: { instanceId: 'a', url: 'http://192.0.2.1:8080', zone: 'eu-1a', source: 'KubernetesService' },
    });

    await setEndpoints(world, 'shop', [pod('a', '192.0.2.9')]);
    await untilThereAre(world, 'shop.i.a');
    await until('the address is new', async () => {
      const { metadata, spec } = await world.registrations.get('shop.i.a');
      return spec.url === 'http://192.0.2.9:8080' && metadata.uid === second?.metadata.uid;
    });
    await world.services.delete('shop');
    await untilThereAre(world);
  });

  test('loses one a TTL after it was last ready, and has it anew when it is', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings });
    await createService(world, 'shop');
    await setEndpoints(world, 'shop', [pod('a', '192.0.2.1'), pod('b', '192.0.2.2')]);
    await untilPhase(world, 'shop.i.a', 'Registered');
    const before = await untilPhase(world, 'shop.i.b', 'Registered');
    await sleep(TTL_MS);
    await setEndpoints(world, 'shop', [pod('a', '192.0.2.1'), pod('b', '192.0.2.2', false)]);
    const unreadyAtMs = performance.now();
    await until('its check fails', async () => {
      const { phase, check } = (await world.registrations.get('shop.i.b')).status ?? {};
      return phase === 'Registered' && check?.status === 'Failing';
    });
    const expired = await untilPhase(world, 'shop.i.b', 'Expired');
    expect(expired.seenAtMs - unreadyAtMs).toBeGreaterThan(TTL_MS - 500);
    expect(expired.status?.conditions).toMatchObject([{ message: 'The endpoint was not ready for 3 s' }]);
    expect((await world.registrations.get('shop.i.a')).status).toMatchObject({
      phase: 'Registered',
      check: { status: 'Passing' },
    });
    await setEndpoints(world, 'shop', [pod('a', '192.0.2.1'), pod('b', '192.0.2.2')]);
    await until('it is registered anew', async () => {
      const { metadata, spec } = (await world.registrations.find('shop.i.b')) ?? before;
      return metadata.uid !== before.metadata.uid && spec.serviceId === before.spec.serviceId;
    });
  });

  test('takes over from the Service itself, and hands back, without the name being gone', async (context) => {
    const world = await createWorld(context);
    await startOperator(world, { settings });
    await createService(world, 'shop', { 'rollcall.dev/instances': 'service' });
    await setEndpoints(world, 'shop', [pod('a', '192.0.2.1'), pod('b', '192.0.2.2')]);
    const whole = await untilPhase(world, 'shop', 'Registered');
    let missing = 0;
    const over = new AbortController();
    const watching = (async () => {
      while (!over.signal.aborted) if ((await names(world)).length === 0) missing += 1;
    })();
    const annotate = (instances: string | null) =>
      world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/instances': instances } } });
    await annotate('endpoints');
    await untilThereAre(world, 'shop.i.a', 'shop.i.b');
    for (const { spec } of await list(world)) expect(spec.serviceId).toBe(whole.metadata.uid);
    await annotate(null);
    await untilThereAre(world, 'shop');
    expect((await world.registrations.get('shop')).spec.serviceId).toBe(whole.metadata.uid);
    over.abort();
    await watching;
    expect(missing).toBe(0);

    await annotate('pods');
    await until('a warning', async () =>
      (await world.events('shop')).some(({ reason }) => reason === 'InvalidRegistration'),
    );
    await world.services.patch('shop', { metadata: { annotations: { 'rollcall.dev/register': null } } });
    await untilThereAre(world);
  });

  test('of 300 is written as far as it changes, and left alone by the next operator', async (context) => {
    const world = await createWorld(context);
    const operator = await startOperator(world, { settings });
    const slices = ['shop.0', 'shop.1', 'shop.2'];
    await Promise.all(slices.map((slice, at) => setEndpoints(world, slice, pods(at))));
    await createService(world, 'shop');
    const areRegistered = (count: number) => async () => {
      await sleep(200);
      const registered = (await list(world)).filter(({ status }) => status?.phase === 'Registered');
      return registered.length === count;
    };
    await until('300 are registered', areRegistered(300), 60_000);
    expect(new Set((await list(world)).map(({ metadata, spec }) => spec.serviceId ?? metadata.uid)).size).toBe(1);
    await operator.stop();

    const before = new Map((await list(world)).map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
    await setEndpoints(world, 'shop.1', pods(1).slice(1));
    await startOperator(world, { settings });
    await until('one is removed', areRegistered(299));
    await sleep(TTL_MS + 1000);
    for (const { metadata } of await list(world)) expect(metadata.resourceVersion).toBe(before.get(metadata.name));
    expect(await names(world)).not.toContain('shop.i.pod-1-0');
  }, 120_000);
});
