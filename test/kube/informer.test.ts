import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { beforeEach, expect, inject, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { connectFor, connectionOptions, leaseManifest, startInformer } from './fixtures.ts';

let connection: KubeConnection;
let namespace: string;
let leases: ResourceClient<Lease>;

beforeEach(async () => {
  connection = await connectByFile(inject('kubeconfig'), { ...connectionOptions, maxSockets: 32 });
  namespace = (await createNamespace('informer')).name;
  leases = resourceClient(connection, leaseKind, namespace);
  return () => connection.close();
});

test('lists page by page, each object once', async () => {
  const names = Array.from({ length: 1100 }, (_, i) => `many-${i}`);
  await Promise.all(names.map((name) => leases.create(leaseManifest(name))));
  const requests: string[] = [];
  const counting = await connectFor(inject('kubeconfig'), { onRequest: (method) => void requests.push(method) });
  const { informer, log } = await startInformer({ connection: counting, namespace });
  expect(informer.store.size).toBe(1100);
  expect(log.toSorted()).toEqual(names.map((name) => `added ${name}`).toSorted());
  expect(requests.filter((method) => method === 'GET')).toHaveLength(3);
  const cached = informer.store.get(`${namespace}/many-7`);
  expect(cached).toMatchObject({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'many-7' } });
  expect(cached?.metadata).not.toHaveProperty('managedFields');
});

test('reports additions, changes and deletions in order, and only of what the selector selects', async () => {
  await leases.create(leaseManifest('other', { labels: { watched: 'no' } }));
  const { informer, log } = await startInformer({ connection, namespace, labelSelector: 'watched=yes' });
  await leases.create(leaseManifest('a', { labels: { watched: 'yes' } }));
  await leases.patch('other', { metadata: { labels: { watched: 'yes' } } });
  for (let seconds = 1; seconds <= 5; seconds += 1) {
    await leases.patch('a', { spec: { leaseDurationSeconds: seconds } });
  }
  await leases.patch('other', { metadata: { labels: { watched: 'no' } } });
  await leases.delete('a');
  await leases.create(leaseManifest('a', { labels: { watched: 'yes' } }));
  await leases.patch('other', { metadata: { labels: { watched: 'yes' } } });
  await leases.patch('other', { metadata: { labels: { watched: 'no' } } });
  const changes = Array.from({ length: 5 }, () => 'modified a');
  const expected = ['added a', 'added other', ...changes, 'deleted other', 'deleted a', 'added a'];
  expected.push('added other', 'deleted other');
  await expect.poll(() => log).toEqual(expected);
  expect([...informer.store.values()].map((lease) => lease.metadata.name)).toEqual(['a']);
});

test('our own writes are visible at once, and no late event undoes them', async () => {
  const { informer, log } = await startInformer({ connection, namespace });
  const key = `${namespace}/own`;
  for (let round = 0; round < 30; round += 1) {
    const created = await leases.create(leaseManifest('own'));
    informer.recordWrite(created);
    expect(informer.store.get(key)?.metadata.uid).toBe(created.metadata.uid);
    for (let seconds = 1; seconds <= 3; seconds += 1) {
      const patched = await leases.patch('own', { spec: { leaseDurationSeconds: seconds } });
      informer.recordWrite(patched);
      expect(informer.store.get(key)?.spec?.leaseDurationSeconds).toBe(seconds);
    }
    await leases.delete('own');
    informer.recordDelete(created);
    expect(informer.store.get(key)).toBeUndefined();
  }
  await leases.create(leaseManifest('end'));
  await expect.poll(() => log.at(-1)).toBe('added end');
  const round = ['added own', 'modified own', 'modified own', 'modified own', 'deleted own'];
  expect(log).toEqual([...Array.from({ length: 30 }, () => round).flat(), 'added end']);
});

test('a listener that throws harms neither the others nor the watch', async () => {
  const { informer, log } = await startInformer({
    connection,
    namespace,
    listeners: [
      () => {
        throw new Error('a fault of the listener');
      },
    ],
  });
  informer.onConnectivity(() => {
    throw new Error('another');
  });
  await leases.create(leaseManifest('a'));
  await leases.delete('a');
  await expect.poll(() => log).toEqual(['added a', 'deleted a']);
  expect(informer.connectivity()).toBe('connected');
});

test('offers every object again at each resync, and keeps what the transform makes of it', async () => {
  await leases.create({ ...leaseManifest('a'), spec: { leaseDurationSeconds: 60, holderIdentity: 'dropped' } });
  const { informer, log } = await startInformer({
    connection,
    namespace,
    resyncMs: 100,
    transform: (lease) => ({ ...lease, spec: { leaseDurationSeconds: lease.spec?.leaseDurationSeconds ?? 0 } }),
  });
  await expect.poll(() => log.filter((line) => line === 'resync a').length).toBeGreaterThan(2);
  const cached = () => informer.store.get(`${namespace}/a`)?.spec;
  expect(cached()).toEqual({ leaseDurationSeconds: 60 });
  const patched = await leases.patch('a', { spec: { leaseDurationSeconds: 1 } });
  expect(patched.spec).toEqual({ leaseDurationSeconds: 1, holderIdentity: 'dropped' });
  informer.recordWrite(patched);
  expect(cached()).toEqual({ leaseDurationSeconds: 1 });
});

test('once stopped and disconnected, nothing of it keeps a process alive', async () => {
  const script = join(import.meta.dirname, 'follow-and-stop.ts');
  const run = promisify(execFile)(process.execPath, [script, inject('kubeconfig'), namespace], { timeout: 50_000 });
  const { stdout } = await run;
  expect(JSON.parse(stdout.trim())).toEqual({ objects: 0, afterStopMs: expect.any(Number), left: [] });
  expect(JSON.parse(stdout.trim()).afterStopMs).toBeLessThan(10_000);
});

test('stops at once in every state: before it began, while it lists, while it waits to try again', async () => {
  const { informer: idle } = await startInformer({ connection, namespace, synced: false, started: false });
  await idle.stop();
  const { informer: listing } = await startInformer({ connection, namespace, synced: false });
  await listing.stop();
  const closed = await connectByFile(inject('kubeconfig'), connectionOptions);
  await closed.close();
  const { informer: failing, failures } = await startInformer({ connection: closed, namespace, synced: false });
  await expect.poll(() => failures).toContain('list');
  await failing.stop();
  expect(failing.hasSynced()).toBe(false);
});
