import type { ServiceRegistration, ServiceRegistrationSpec } from '@rollcall/crds/types.gen.ts';
import {
  type EndpointSlice,
  endpointSliceKind,
  type Service,
  serviceKind,
} from '@rollcall/platform/kube/builtin-kinds.ts';
import {
  collectionPath,
  type KubeObject,
  type ResourceClient,
  resourceClient,
} from '@rollcall/platform/kube/resource-client.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { describe, expect, inject, type TestContext, test } from 'vitest';
import { readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { startTcpRelay } from '../kube/tcp-relay.ts';
import { createNamespace } from '../support/kube.ts';
import { createLease, createWorld, startOperator, until, untilPhase, type World } from './fixtures.ts';

/** A world with a namespace for the Services of registered names. */
interface DnsWorld extends World {
  readonly settings: Readonly<Record<string, string>>;
  readonly names: ResourceClient<Service>;
  readonly slices: ResourceClient<EndpointSlice>;
  /** `address port`, with a `-` before where it is not ready; of all slices of a Service. */
  endpoints(service: string): Promise<string[]>;
  slicesOf(service: string): Promise<readonly EndpointSlice[]>;
}

async function createDnsWorld(context: Pick<TestContext, 'onTestFinished'>): Promise<DnsWorld> {
  const world = await createWorld(context);
  const { name: namespace } = await createNamespace('dns');
  async function slicesOf(service: string): Promise<readonly EndpointSlice[]> {
    const { items } = await world.connection.request<{ items: EndpointSlice[] }>({
      method: 'GET',
      path: collectionPath(endpointSliceKind, namespace),
      query: { labelSelector: `kubernetes.io/service-name=${service}` },
    });
    return items;
  }
  return {
    ...world,
    settings: { ROLLCALL_DNS_NAMESPACE: namespace, ROLLCALL_IMPORT: 'false' },
    names: resourceClient(world.connection, serviceKind, namespace),
    slices: resourceClient(world.connection, endpointSliceKind, namespace),
    slicesOf,
    async endpoints(service) {
      const found = (await slicesOf(service)).flatMap(({ endpoints, ports }) =>
        (endpoints ?? []).map(({ addresses, conditions }) => {
          return `${conditions?.ready === true ? '' : '-'}${addresses.join()} ${ports?.[0]?.port}`;
        }),
      );
      return found.toSorted();
    },
  };
}

/** Registers an instance as the registry does; of a service that never expires unless it has a TTL. */
async function registerInstance(
  { registrations, namespace }: World,
  name: string,
  { instanceId = 'a', ...spec }: Partial<ServiceRegistrationSpec> = {},
): Promise<ServiceRegistration> {
  return registrations.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: `${name}.i.${instanceId}`, namespace },
    spec: {
      serviceName: name,
      url: 'http://10.0.0.1:8080',
      capabilities: ['rest'],
      source: 'API',
      instanceId,
      ...spec,
    },
  });
}

const untilEndpoints = (world: DnsWorld, name: string, ...expected: string[]) =>
  until(`${name} has ${expected.join()}`, async () => String(await world.endpoints(name)) === String(expected));

const untilGone = (world: DnsWorld, name: string) =>
  until(`${name} is gone`, async () => {
    return (await world.names.find(name)) === undefined && (await world.slicesOf(name)).length === 0;
  });

const versionsOf = (objects: readonly KubeObject[]) => objects.map(({ metadata }) => metadata.resourceVersion);

describe.concurrent('registered names in DNS', () => {
  test('are headless Services with the living instances, and go with the last one', async (context) => {
    const world = await createDnsWorld(context);
    await startOperator(world, world);
    const { uid: serviceId = '' } = (await registerInstance(world, 'shop', { zone: 'z1' })).metadata;
    await registerInstance(world, 'shop', { instanceId: 'b', url: 'http://[fd00::2]:9090', serviceId });
    await untilEndpoints(world, 'shop', '10.0.0.1 8080', 'fd00::2 9090');
    expect(await world.names.get('shop')).toMatchObject({
      metadata: {
        labels: {
          'app.kubernetes.io/managed-by': 'rollcall',
          'rollcall.dev/mirrored-from': world.namespace,
          'rollcall.dev/service': 'shop',
        },
      },
      spec: { clusterIP: 'None', ports: [{ name: 'http', port: 8080, appProtocol: 'http' }] },
    });
    expect((await world.names.get('shop')).spec?.selector).toBeUndefined();
    const [slice] = (await world.slicesOf('shop')).filter(({ addressType }) => addressType === 'IPv4');
    expect(slice).toMatchObject({
      endpoints: [{ zone: 'z1' }],
      metadata: { ownerReferences: [{ kind: 'Service', name: 'shop' }] },
    });

    await world.registrations.patch('shop.i.a', { spec: { url: 'http://10.0.0.3:8081' } });
    await untilEndpoints(world, 'shop', '10.0.0.3 8081', 'fd00::2 9090');
    expect((await world.names.get('shop')).spec?.ports).toMatchObject([{ port: 8081 }]);
    const health = { status: 'draining', reportedAt: new Date().toISOString() };
    await world.registrations.patch('shop.i.a', { status: { health } }, { subresource: 'status' });
    await untilEndpoints(world, 'shop', '-10.0.0.3 8081', 'fd00::2 9090');
    await world.registrations.delete('shop.i.b');
    await untilEndpoints(world, 'shop', '10.0.0.3 8081');
    await world.registrations.delete('shop.i.a');
    await untilGone(world, 'shop');
  });

  test('an instance that has expired is gone', async (context) => {
    const world = await createDnsWorld(context);
    await startOperator(world, world);
    await createLease(world, await registerInstance(world, 'shop', { ttlSeconds: 5 }));
    await registerInstance(world, 'shop', { instanceId: 'b', url: 'http://10.0.0.2' });
    await untilEndpoints(world, 'shop', '10.0.0.1 8080', '10.0.0.2 80');
    await untilPhase(world, 'shop.i.a', 'Expired');
    await untilEndpoints(world, 'shop', '10.0.0.2 80');
    expect((await world.names.get('shop')).spec?.ports).toMatchObject([{ port: 80 }]);
  });

  test('a host name is an ExternalName, and turns into addresses and back', async (context) => {
    const world = await createDnsWorld(context);
    await startOperator(world, { settings: { ...world.settings, ROLLCALL_CLUSTER_DOMAIN: 'example.internal' } });
    const said = async () => {
      const { type, clusterIP, externalName } = (await world.names.find('shop'))?.spec ?? {};
      return JSON.stringify({ type, clusterIP, externalName });
    };
    const external = JSON.stringify({ type: 'ExternalName', externalName: 'shop.team.svc.example.internal' });
    await registerInstance(world, 'shop', { url: 'http://shop.team.svc:8080' });
    await until('it is an alias', async () => (await said()) === external);
    await registerInstance(world, 'shop', { instanceId: 'b' });
    await untilEndpoints(world, 'shop', '10.0.0.1 8080');
    expect(await said()).toBe(JSON.stringify({ type: 'ClusterIP', clusterIP: 'None' }));
    await until('who has a host name is told', async () => {
      return (await world.events('shop.i.a')).some(({ reason }) => reason === 'HostNotPossible');
    });
    await world.registrations.delete('shop.i.b');
    await until('it is an alias again', async () => (await said()) === external);
    await untilEndpoints(world, 'shop');
  });

  test("nothing of a user's own is touched, and what they take over or add stays", async (context) => {
    const world = await createDnsWorld(context);
    const spec = { selector: { app: 'mine' }, ports: [{ port: 80 }] };
    const mine = await world.names.create({ apiVersion: 'v1', kind: 'Service', metadata: { name: 'shop' }, spec });
    const slice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      addressType: 'IPv4',
      endpoints: [],
    } as const;
    const metadata = { name: 'cart-ipv4-8080-1', labels: { 'kubernetes.io/service-name': 'cart' } };
    const ownSlice = await world.slices.create({ ...slice, metadata });
    await startOperator(world, world);
    await registerInstance(world, 'shop');
    await registerInstance(world, 'cart');
    await untilEndpoints(world, 'cart', '10.0.0.1 8080');
    await until('the instance is told', async () => {
      return (await world.events('shop.i.a')).some(({ reason }) => reason === 'NameTaken');
    });
    expect((await world.names.get('shop')).metadata.resourceVersion).toBe(mine.metadata.resourceVersion);

    await world.names.patch('cart', { metadata: { labels: { team: 'a' } }, spec: { publishNotReadyAddresses: true } });
    await registerInstance(world, 'cart', { instanceId: 'b', url: 'http://10.0.0.2:8080' });
    await untilEndpoints(world, 'cart', '10.0.0.1 8080', '10.0.0.2 8080');
    expect(await world.names.get('cart')).toMatchObject({
      metadata: { labels: { team: 'a' } },
      spec: { publishNotReadyAddresses: true },
    });
    const taken = await world.names.patch('cart', {
      metadata: { labels: { 'app.kubernetes.io/managed-by': null } },
    });
    await untilEndpoints(world, 'cart');
    for (const id of ['a', 'b']) await world.registrations.delete(`cart.i.${id}`);
    await world.registrations.delete('shop.i.a');
    await registerInstance(world, 'later');
    await untilEndpoints(world, 'later', '10.0.0.1 8080');
    expect((await world.names.get('cart')).metadata.resourceVersion).toBe(taken.metadata.resourceVersion);
    expect((await world.names.get('shop')).metadata.resourceVersion).toBe(mine.metadata.resourceVersion);
    expect((await world.slices.get(metadata.name)).metadata.resourceVersion).toBe(ownSlice.metadata.resourceVersion);

    // A name that is free again is ours.
    await registerInstance(world, 'shop');
    await world.names.delete('shop');
    await untilEndpoints(world, 'shop', '10.0.0.1 8080');
  });

  test('many instances fill few slices, and one that joins is one write', async (context) => {
    const world = await createDnsWorld(context);
    const numbers = Array.from({ length: 250 }, (_, number) => number);
    for (let from = 0; from < numbers.length; from += 50) {
      const some = numbers.slice(from, from + 50);
      await Promise.all(
        some.map((id) => registerInstance(world, 'shop', { instanceId: `i${id}`, url: `http://10.1.0.${id}:8080` })),
      );
    }
    const operator = await startOperator(world, world);
    await until('all are there', async () => (await world.endpoints('shop')).length === 250);
    const before = await world.slicesOf('shop');
    expect(before).toHaveLength(3);
    const service = await world.names.get('shop');
    await world.registrations.delete('shop.i.i0');
    await until('one has left', async () => (await world.endpoints('shop')).length === 249);
    await registerInstance(world, 'shop', { instanceId: 'new', url: 'http://10.1.1.1:8080' });
    await until('one has joined', async () => (await world.endpoints('shop')).length === 250);
    const after = await world.slicesOf('shop');
    expect(versionsOf(after).filter((version) => !versionsOf(before).includes(version))).toHaveLength(1);
    expect((await world.names.get('shop')).metadata.resourceVersion).toBe(service.metadata.resourceVersion);
    expect(await operator.metric('controller_runtime_reconcile_errors_total{controller="dns"')).toBe(0);
  });

  test('what changed while nobody mirrored is made up for, and the next leader writes nothing anew', async (context) => {
    const world = await createDnsWorld(context);
    const first = await startOperator(world, world);
    for (const name of ['goes', 'stays']) await registerInstance(world, name);
    await untilEndpoints(world, 'goes', '10.0.0.1 8080');
    await untilEndpoints(world, 'stays', '10.0.0.1 8080');
    const versions = async () => versionsOf([await world.names.get('stays'), ...(await world.slicesOf('stays'))]);
    const before = await versions();
    const standby = await startOperator(world, world);
    await first.stop();
    await registerInstance(world, 'next');
    await untilEndpoints(world, 'next', '10.0.0.1 8080');
    expect(await versions()).toEqual(before);
    await standby.stop();

    const off = await startOperator(world, { settings: { ROLLCALL_IMPORT: 'false' } });
    await world.registrations.delete('goes.i.a');
    await registerInstance(world, 'comes');
    await untilPhase(world, 'comes.i.a', 'Registered');
    expect(await world.endpoints('goes')).toEqual(['10.0.0.1 8080']);
    await off.stop();
    await startOperator(world, world);
    await untilGone(world, 'goes');
    await untilEndpoints(world, 'comes', '10.0.0.1 8080');
    expect(await versions()).toEqual(before);
  });

  test('without an API server nothing is removed, and then all goes on', async (context) => {
    const world = await createDnsWorld(context);
    const { cluster, user, port } = await readCluster(inject('kubeconfig'));
    await using relay = await startTcpRelay(port);
    const throughRelay = { ...cluster, server: `https://127.0.0.1:${relay.port}` };
    const access = { KUBECONFIG: await writeKubeconfig({ cluster: throughRelay, user }) };
    await startOperator(world, { ...world, access });
    await registerInstance(world, 'shop');
    await untilEndpoints(world, 'shop', '10.0.0.1 8080');
    relay.hold();
    await registerInstance(world, 'shop', { instanceId: 'b', url: 'http://10.0.0.2:8080' });
    await sleep(2000);
    expect(await world.endpoints('shop')).toEqual(['10.0.0.1 8080']);
    relay.release();
    await untilEndpoints(world, 'shop', '10.0.0.1 8080', '10.0.0.2 8080');
  });
});
