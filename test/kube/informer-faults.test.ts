import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { type ControlPlane, startControlPlane } from '@rollcall/local/control-plane.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isUnavailable, KubeUnreachableError } from '@rollcall/platform/kube/errors.ts';
import type { WatchSilence } from '@rollcall/platform/kube/list-watch.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Change } from '@rollcall/platform/kube/store.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { beforeAll, beforeEach, expect, inject, test } from 'vitest';
import { compactEtcd } from '../support/etcd.ts';
import { freeze, thaw } from '../support/freeze.ts';
import {
  type ClusterParts,
  connectFor,
  connectWith,
  errorOf,
  leaseManifest,
  readCluster,
  startInformer,
  temporaryDirectory,
} from './fixtures.ts';
import { startTcpRelay } from './tcp-relay.ts';

const quickSilence: WatchSilence = { probeAfterMs: 300, probeTimeoutMs: 700, idleTimeoutMs: 60_000 };

let controlPlane: ControlPlane;
let parts: ClusterParts;
let connection: KubeConnection;
let namespace: string;
let leases: ResourceClient<Lease>;

beforeAll(async () => {
  controlPlane = await startControlPlane({
    directory: join(await temporaryDirectory(), 'control-plane'),
    binaries: inject('kubernetesBinaries'),
    workloads: false,
    log: () => undefined,
  });
  parts = await readCluster(controlPlane.kubeconfigPath);
  return () => controlPlane[Symbol.asyncDispose]();
}, 120_000);

beforeEach(async () => {
  connection = await connectFor(controlPlane.kubeconfigPath, { requestTimeoutMs: 2000 });
  namespace = `test-${randomUUID()}`;
  await connection.request({ method: 'POST', path: '/api/v1/namespaces', body: { metadata: { name: namespace } } });
  leases = resourceClient(connection, leaseKind, namespace);
});

/** Stops a process for as long as the work takes; its connections stay open. */
async function whileFrozen(component: 'kube-apiserver' | 'etcd', work: () => Promise<void>): Promise<void> {
  const pid = controlPlane.processes[component];
  if (pid === undefined) throw new Error(`${component} does not run`);
  await freeze(pid);
  try {
    await work();
  } finally {
    thaw(pid);
  }
}

/**
 * Writes all the time, as far as the server is there. Stops, with the names that were acknowledged
 * as deleted.
 */
function startWriter(): () => Promise<ReadonlySet<string>> {
  const deleted = new Set<string>();
  const stopping = new AbortController();
  const work = async (): Promise<void> => {
    for (let round = 0; !stopping.signal.aborted; round += 1) {
      const name = `noise-${round}`;
      try {
        await leases.create(leaseManifest(name));
        await leases.patch(name, { spec: { leaseDurationSeconds: round + 1 } });
        if (round % 2 === 0 && (await leases.delete(name))) deleted.add(name);
      } catch (error) {
        if (!isUnavailable(error)) throw error;
        await sleep(50);
      }
    }
  };
  const done = work();
  return async () => {
    stopping.abort();
    await done;
    return deleted;
  };
}

/**
 * What the changes, reported one by one, add up to, and those that make no sense after those before
 * them.
 */
function replay() {
  const state = new Map<string, Lease>();
  const deletions: string[] = [];
  const faults: string[] = [];
  const onChange = (change: Change<Lease>): void => {
    const { name } = change.object.metadata;
    const known = state.get(name);
    const follows = change.type === 'added' ? known === undefined : known?.metadata.uid === change.object.metadata.uid;
    if (!follows) faults.push(`${change.type} ${name}`);
    if (change.type === 'deleted') {
      state.delete(name);
      deletions.push(name);
    } else state.set(name, change.object);
  };
  return { state, deletions, faults, onChange };
}

function versions(objects: Iterable<Lease>): string[] {
  return [...objects].map(({ metadata }) => `${metadata.name}@${metadata.resourceVersion}`).toSorted();
}

async function listed(): Promise<string[]> {
  const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const { items } = await connection.request<{ items: Lease[] }>({ method: 'GET', path });
  return versions(items);
}

test('an API server that is killed and restarted costs no event and invents none', async () => {
  const { state, deletions, faults, onChange } = replay();
  await leases.create(leaseManifest('stays'));
  const { informer, connectivity } = await startInformer({ connection, namespace, listeners: [onChange] });
  const stopWriter = startWriter();
  for (let kill = 0; kill < 2; kill += 1) {
    await sleep(300);
    await controlPlane.stopApiServer();
    await expect.poll(() => informer.connectivity()).toBe('disconnected');
    await controlPlane.startApiServer();
    await expect.poll(() => informer.connectivity(), { timeout: 10_000 }).toBe('connected');
  }
  await sleep(300);
  const acknowledged = await stopWriter();
  await expect.poll(() => versions(informer.store.values())).toEqual(await listed());
  expect(versions(state.values())).toEqual(await listed());
  expect(faults).toEqual([]);
  expect(connectivity).toEqual(['connected', 'disconnected', 'connected', 'disconnected', 'connected']);
  // A deletion whose answer was lost with the server may have happened all the same.
  const present = new Set([...informer.store.values()].map(({ metadata }) => metadata.name));
  for (const name of acknowledged)
    expect(deletions.filter((deleted) => deleted === name).length).toBeLessThanOrEqual(1);
  for (const name of deletions) expect(present).not.toContain(name);
  expect(present).toContain('stays');
  expect(acknowledged.size).toBeGreaterThan(0);
});

test('what changed while the watch could not be resumed (410) is found by listing again', async () => {
  for (const name of ['deleted', 'changed', 'replaced', 'same']) await leases.create(leaseManifest(name));
  const { state, faults, onChange } = replay();
  await using relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const unreachable = await connectWith({ cluster, user: parts.user }, { requestTimeoutMs: 1000 });
  const failed: string[] = [];
  const { informer, log } = await startInformer({
    connection: unreachable,
    namespace,
    listeners: [onChange],
    silence: quickSilence,
    onFailure: (operation) => void failed.push(operation),
  });
  expect(log.splice(0)).toHaveLength(4);
  relay.blackHole();
  await expect.poll(() => informer.connectivity()).toBe('disconnected');

  await leases.delete('deleted');
  await leases.patch('changed', { spec: { leaseDurationSeconds: 1 } });
  await leases.delete('replaced');
  await leases.create(leaseManifest('replaced'));
  await leases.create(leaseManifest('added'));
  await controlPlane.stopApiServer();
  await compactEtcd(controlPlane.ports.etcd);
  await controlPlane.startApiServer();
  relay.heal();

  await expect.poll(() => informer.connectivity(), { timeout: 15_000 }).toBe('connected');
  expect(log.toSorted()).toEqual([
    'added added',
    'added replaced',
    'deleted deleted',
    'deleted replaced',
    'modified changed',
  ]);
  expect(versions(informer.store.values())).toEqual(await listed());
  expect(versions(state.values())).toEqual(await listed());
  expect(faults).toEqual([]);
  expect(failed).toContain('watch');
  expect(failed).not.toContain('list');
}, 90_000);

test('a network that swallows everything is noticed, although no connection is closed', async () => {
  await using relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const unreachable = await connectWith({ cluster, user: parts.user }, { requestTimeoutMs: 1000 });
  const { informer, log } = await startInformer({ connection: unreachable, namespace, silence: quickSilence });
  await expect.poll(() => informer.connectivity()).toBe('connected');
  relay.blackHole();
  const from = performance.now();
  await expect.poll(() => informer.connectivity()).toBe('disconnected');
  expect(performance.now() - from).toBeLessThan(20_000);
  await leases.create(leaseManifest('unseen'));
  expect(log).toEqual([]);
  relay.heal();
  await expect.poll(() => log).toEqual(['added unseen']);
  expect(informer.connectivity()).toBe('connected');
});

test('a watch that alone is dead is given up after the idle time and resumed where it was', async () => {
  await using relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const unreachable = await connectWith({ cluster, user: parts.user });
  const silence = { ...quickSilence, probeAfterMs: 60_000, idleTimeoutMs: 800 };
  const { informer, log, failures, connectivity } = await startInformer({
    connection: unreachable,
    namespace,
    silence,
  });
  await expect.poll(() => informer.connectivity()).toBe('connected');
  relay.blackHole();
  await leases.create(leaseManifest('unseen'));
  await expect.poll(() => relay.swallowed).toBe(1);
  relay.heal();
  await expect.poll(() => log).toEqual(['added unseen']);
  expect(failures).toEqual(['watch']);
  expect(connectivity).toEqual(['connected', 'disconnected', 'connected']);
});

test.each(['kube-apiserver', 'etcd'] as const)(
  'a frozen %s is noticed in time, and nothing is called connected until it goes on',
  async (component) => {
    const { informer, connectivity } = await startInformer({ connection, namespace, silence: quickSilence });
    await expect.poll(() => informer.connectivity()).toBe('connected');
    const before = informer.lastContactAt();
    await whileFrozen(component, async () => {
      const from = performance.now();
      await expect.poll(() => informer.connectivity()).toBe('disconnected');
      expect(performance.now() - from).toBeLessThan(20_000);
      await sleep(3000);
      expect(connectivity).toEqual(['connected', 'disconnected']);
    });
    await expect.poll(() => informer.connectivity(), { timeout: 20_000 }).toBe('connected');
    expect(informer.lastContactAt()?.getTime()).toBeGreaterThan(before?.getTime() ?? 0);
  },
);

test('requests to a frozen API server fail in time, those that wait for a socket too', async () => {
  const impatient = await connectFor(controlPlane.kubeconfigPath, { requestTimeoutMs: 1000, maxSockets: 2 });
  await impatient.request({ method: 'GET', path: '/version' });
  await whileFrozen('kube-apiserver', async () => {
    const from = performance.now();
    const requests = Array.from({ length: 50 }, () => errorOf(impatient.request({ method: 'GET', path: '/version' })));
    for (const error of await Promise.all(requests)) {
      expect(error).toBeInstanceOf(KubeUnreachableError);
      expect(error.message).toMatch(/reached: no answer in time$/);
    }
    expect(performance.now() - from).toBeLessThan(20_000);
    const stopped = errorOf(impatient.stream('/api/v1/services', { watch: true }, AbortSignal.timeout(200)));
    expect(await stopped).toBeInstanceOf(KubeUnreachableError);
  });
  await expect.poll(() => impatient.request({ method: 'GET', path: '/version' })).toHaveProperty('gitVersion');
});

test('an informer that starts before the API server is up has everything once it is', async () => {
  await leases.create(leaseManifest('early'));
  await controlPlane.stopApiServer();
  const { informer, failures } = await startInformer({ connection, namespace, synced: false });
  await expect.poll(() => failures.length).toBeGreaterThan(2);
  expect(informer.hasSynced()).toBe(false);
  expect(informer.lastContactAt()).toBeUndefined();
  await controlPlane.startApiServer();
  await informer.synced;
  expect(versions(informer.store.values())).toEqual(await listed());
});
