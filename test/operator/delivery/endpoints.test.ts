import { createDirectReads } from '@rollcall/operator/delivery/observe/direct-reads.ts';
import { createEndpointCache } from '@rollcall/operator/delivery/observe/endpoint-cache.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { podKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { expect, inject, test } from 'vitest';
import { connectWith, readCluster } from '../../kube/fixtures.ts';
import { startTcpRelay } from '../../kube/tcp-relay.ts';
import { createPod, createWorld, type World } from '../fixtures.ts';

/* The controller of EndpointSlices runs here, and no kubelet: the tests say what pods report. */

const SERVICE = 'shop';

/** One that publishes its pods whether they are ready or not, and wherever they run. */
function createService({ connection, namespace }: World): Promise<unknown> {
  return connection.request({
    method: 'POST',
    path: `/api/v1/namespaces/${namespace}/services`,
    body: {
      metadata: { name: SERVICE },
      spec: { selector: { app: SERVICE }, ports: [{ port: 80 }], publishNotReadyAddresses: true },
    },
  });
}

/** One that stays while it is being deleted. */
async function runPod(world: World, name: string, podIP: string): Promise<void> {
  const pods = resourceClient(world.connection, podKind, world.namespace);
  await createPod(world, { name, labels: { app: SERVICE }, finalizers: ['rollcall.dev/test'] });
  world.onTestFinished(async () => void (await pods.patch(name, { metadata: { finalizers: null } })));
  const status = { phase: 'Running', podIP, podIPs: [{ ip: podIP }] };
  await pods.patch(name, { status }, { subresource: 'status' });
}

const podsBehind = async ({ connection, namespace }: World) => {
  const endpoints = await createEndpointCache(createDirectReads(connection), systemClock).list(namespace, [SERVICE]);
  return typeof endpoints === 'string' ? endpoints : [...(endpoints.get(SERVICE) ?? [])].toSorted();
};

const conditionsOf = async ({ connection, namespace }: World, pod: string) => {
  const selector = `kubernetes.io/service-name=${SERVICE}`;
  const slices = await createDirectReads(connection).listEndpointSlices(
    namespace,
    selector,
    AbortSignal.timeout(10_000),
  );
  const endpoints = slices.flatMap((slice) => slice.endpoints ?? []);
  return endpoints.find(({ targetRef }) => targetRef?.name === pod)?.conditions;
};

test("slices of a mesh with the Service's name count for nothing", async (context) => {
  const world = await createWorld(context);
  await createService(world);
  await runPod(world, 'here', '10.244.0.1');
  await world.endpointSlices.create({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'shop-other-cluster',
      namespace: world.namespace,
      labels: {
        'kubernetes.io/service-name': SERVICE,
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-mesh-controller.cilium.io',
      },
    },
    addressType: 'IPv4',
    endpoints: [{ addresses: ['10.245.0.1'], conditions: { ready: true }, targetRef: { kind: 'Pod', name: 'there' } }],
  });
  await expect.poll(() => podsBehind(world), { timeout: 20_000 }).toEqual(['here']);
});

test('a pod that ends slowly is behind its Service no longer, though its slice says that it is ready', async (context) => {
  const world = await createWorld(context);
  const { connection, namespace } = world;
  await createService(world);
  await runPod(world, 'ending', '10.244.0.2');
  await runPod(world, 'staying', '10.244.0.3');
  await expect.poll(() => podsBehind(world), { timeout: 20_000 }).toEqual(['ending', 'staying']);
  await resourceClient(connection, podKind, namespace).delete('ending');
  await expect
    .poll(() => conditionsOf(world, 'ending'), { timeout: 20_000 })
    .toMatchObject({ ready: true, terminating: true });
  expect(await podsBehind(world)).toEqual(['staying']);
});

test('an API server that does not answer is not waited for: what is behind a Service is unknown after 2 s', async () => {
  const { cluster, user, port } = await readCluster(inject('kubeconfig'));
  await using relay = await startTcpRelay(port);
  const server = `https://127.0.0.1:${relay.port}`;
  const connection = await connectWith({ cluster: { ...cluster, server }, user });
  const endpoints = createEndpointCache(createDirectReads(connection), systemClock);
  relay.blackHole();
  const startedAtMs = performance.now();
  expect(await endpoints.list('default', [SERVICE])).toBe('unknown');
  expect(performance.now() - startedAtMs).toBeLessThan(20_000);
});
