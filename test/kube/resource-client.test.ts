import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { type Lease, leaseKind, type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import {
  isAlreadyExists,
  isConflict,
  isFieldConflict,
  isInvalid,
  isNotFound,
  isUnavailable,
  KubeApiError,
} from '@rollcall/platform/kube/errors.ts';
import { type KubeObject, type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { connectionOptions, errorOf, leaseManifest } from './fixtures.ts';

let connection: KubeConnection;
let namespace: string;
let leases: ResourceClient<Lease>;
let registrations: ResourceClient<ServiceRegistration>;

beforeAll(async () => {
  connection = await connectByFile(inject('kubeconfig'), connectionOptions);
  namespace = (await createNamespace('client')).name;
  leases = resourceClient(connection, leaseKind, namespace);
  registrations = resourceClient(connection, serviceRegistrationKind, namespace);
  return () => connection.close();
});

function registration(name: string): Parameters<typeof registrations.create>[0] {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name },
    spec: { serviceName: name, url: 'http://127.0.0.1:1', capabilities: [], source: 'API' },
  };
}

/** Which of the errors that callers distinguish it is. */
async function verdict(operation: Promise<unknown>): Promise<string[]> {
  const error = await errorOf(operation);
  const tests = { isNotFound, isAlreadyExists, isConflict, isFieldConflict, isInvalid, isUnavailable };
  return Object.entries(tests).flatMap(([name, is]) => (is(error) ? [name] : []));
}

test('creates, reads, patches and deletes', async () => {
  const created = await leases.create(leaseManifest('plain', { labels: { a: '1', b: '2' } }));
  expect(created).toMatchObject({ kind: 'Lease', metadata: { name: 'plain', namespace, labels: { a: '1' } } });
  const patched = await leases.patch('plain', { metadata: { labels: { a: null } }, spec: { leaseDurationSeconds: 5 } });
  expect(patched.metadata.labels).toEqual({ b: '2' });
  expect(await leases.get('plain')).toEqual(patched);
  const removed = await leases.jsonPatch('plain', [{ op: 'remove', path: '/metadata/labels' }]);
  expect(removed.metadata.labels).toBeUndefined();
  expect(await leases.delete('plain')).toBe(true);
  expect(await leases.delete('plain')).toBe(false);
  expect(await leases.find('plain')).toBeUndefined();
});

test('distinguishes absent, existing, conflicting and invalid', async () => {
  await leases.create(leaseManifest('errors'));
  expect(await verdict(leases.get('absent'))).toEqual(['isNotFound']);
  expect(await verdict(leases.patch('absent', {}))).toEqual(['isNotFound']);
  expect(await verdict(leases.create(leaseManifest('errors')))).toEqual(['isAlreadyExists']);
  expect(await verdict(leases.create(leaseManifest('Not_A_Name')))).toEqual(['isInvalid']);
  expect(await verdict(leases.patch('errors', { spec: 'none' }))).toEqual(['isInvalid']);
  expect(await verdict(leases.jsonPatch('errors', [{ op: 'test', path: '/spec', value: 1 }]))).toEqual(['isInvalid']);
  expect(await verdict(registrations.apply({ metadata: { name: 'wrong' }, spec: {} }, { fieldManager: 'a' }))).toEqual([
    'isInvalid',
  ]);
  const unknown: ResourceKind<KubeObject> = { apiVersion: 'no.such/v1', kind: 'No', plural: 'nos', namespaced: true };
  expect(await verdict(resourceClient(connection, unknown, namespace).get('a'))).toEqual(['isNotFound']);
});

test('whoever writes owns what is written by the name that the connection was given', async () => {
  const owned = await connectByFile(inject('kubeconfig'), { ...connectionOptions, fieldManager: 'rollcall-test' });
  onTestFinished(() => owned.close());
  const own = resourceClient(owned, leaseKind, namespace);
  await own.create(leaseManifest('owned'));
  await own.patch('owned', { spec: { holderIdentity: 'somebody' } });
  const { metadata } = await own.jsonPatch('owned', [{ op: 'add', path: '/metadata/labels', value: { a: 'b' } }]);
  const managers = metadata.managedFields?.map(({ manager }) => manager);
  expect(managers).toEqual(['rollcall-test']);
  await own.delete('owned');
});

interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** Every way to write, as the same question: does it respect this precondition? */
const writes: Record<string, (name: string, given: Preconditions) => Promise<unknown>> = {
  'merge patch': (name, given) => registrations.patch(name, { spec: { url: 'http://127.0.0.1:2' } }, given),
  'merge patch of the status': (name, given) =>
    registrations.patch(name, { status: { phase: 'Expired' } }, { ...given, subresource: 'status' }),
  apply: (name, given) =>
    registrations.apply(
      { metadata: { name, ...given }, spec: registration(name).spec },
      { fieldManager: 'a', force: true },
    ),
  'apply of the status': (name, given) =>
    registrations.apply(
      { metadata: { name, ...given }, status: { phase: 'Expired' } },
      { fieldManager: 'b', subresource: 'status' },
    ),
  delete: (name, given) => registrations.delete(name, given),
};

test.each(Object.entries(writes))(
  '%s has effect only on the object and version it was meant for',
  async (way, write) => {
    const name = way.replaceAll(' ', '-');
    const before = await registrations.create(registration(name));
    await registrations.delete(name);
    const created = await registrations.create(registration(name));
    const old = { resourceVersion: created.metadata.resourceVersion ?? '' };
    await registrations.patch(name, { metadata: { labels: { moved: 'on' } } });
    const current = await registrations.get(name);

    expect(await verdict(write(name, { uid: before.metadata.uid ?? '' }))).toEqual(['isConflict']);
    expect(await verdict(write(name, old))).toEqual(['isConflict']);
    expect(await verdict(write(name, { uid: before.metadata.uid ?? '', ...old }))).toEqual(['isConflict']);
    expect(await registrations.get(name)).toEqual(current);

    await write(name, { uid: current.metadata.uid ?? '' });
    expect(await registrations.find(name)).not.toEqual(current);
  },
);

test('a status write with a uid holds on while others write the same object', async () => {
  const { metadata } = await registrations.create(registration('busy'));
  const uid = metadata.uid ?? '';
  const noise = Array.from({ length: 10 }, (_, i) =>
    registrations.patch('busy', { metadata: { labels: { n: `${i}` } } }),
  );
  const written = registrations.apply(
    { metadata: { name: 'busy', uid }, status: { phase: 'Registered' } },
    { fieldManager: 'x', subresource: 'status' },
  );
  await Promise.all([...noise, written]);
  expect((await registrations.get('busy')).status).toMatchObject({ phase: 'Registered' });
});

test('apply owns its fields, respects those of others, and gets them by force', async () => {
  const spec = registration('applied').spec;
  const created = await registrations.apply({ metadata: { name: 'applied' }, spec }, { fieldManager: 'first' });
  const other = {
    metadata: { name: 'applied', labels: { mine: 'yes' } },
    spec: { ...spec, url: 'http://127.0.0.1:9' },
  };
  expect(await verdict(registrations.apply(other, { fieldManager: 'second' }))).toEqual([
    'isConflict',
    'isFieldConflict',
  ]);
  const forced = await registrations.apply(other, { fieldManager: 'second', force: true });
  expect(forced.spec.url).toBe('http://127.0.0.1:9');
  const withdrawn = await registrations.apply(
    { metadata: { name: 'applied' }, spec: other.spec },
    { fieldManager: 'second' },
  );
  expect(withdrawn.metadata.labels).toBeUndefined();

  const status = await registrations.apply(
    { metadata: { name: 'applied' }, status: { phase: 'Registered' }, spec: { ...spec, url: 'http://127.0.0.1:7' } },
    { fieldManager: 'third', subresource: 'status' },
  );
  expect(status).toMatchObject({ status: { phase: 'Registered' }, spec: { url: 'http://127.0.0.1:9' } });

  await registrations.delete('applied');
  const again = { metadata: { name: 'applied', uid: created.metadata.uid ?? '' }, spec };
  expect(await verdict(registrations.apply(again, { fieldManager: 'first' }))).toEqual(['isConflict']);
});

test('names that need encoding are encoded, and what is no name never reaches the collection', async () => {
  const roleKind: ResourceKind<KubeObject> = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'Role',
    plural: 'roles',
    namespaced: true,
  };
  const roles = resourceClient(connection, roleKind, namespace);
  const name = 'read:all #1?&=+ ü😀';
  await roles.create({ apiVersion: roleKind.apiVersion, kind: 'Role', metadata: { name } });
  expect((await roles.get(name)).metadata.name).toBe(name);
  for (const none of ['', '.', '..', 'a/b', '../..', '%2e%2e', `${name}/status`]) {
    expect(await verdict(roles.get(none))).toEqual(['isNotFound']);
    expect(await verdict(roles.patch(none, {}))).toEqual(['isNotFound']);
    expect(await roles.delete(none)).toBe(false);
  }
  expect((await roles.get(name)).metadata.name).toBe(name);
  expect(await roles.delete(name)).toBe(true);
});

test('a server whose answers are no Kubernetes objects is an error with its status and nothing of its body', async () => {
  const secrets = resourceClient<Secret>(connection, secretKind, namespace);
  await secrets.create({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 's' }, data: { k: 'dmFsdWU=' } });
  expect((await secrets.get('s')).data).toEqual({ k: 'dmFsdWU=' });
  const plain = await errorOf(connection.request({ method: 'GET', path: '/healthz' }));
  expect(plain.message).toBe('The API server could not be reached: the answer is not JSON');
  const missing = await errorOf(connection.request({ method: 'GET', path: '/no/such/path' }));
  expect(missing).toBeInstanceOf(KubeApiError);
  expect(missing).toMatchObject({ code: 404 });
});
