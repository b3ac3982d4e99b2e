import { randomUUID } from 'node:crypto';
import { heartbeatOf } from '@rollcall/crds/heartbeat-lease.ts';
import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ServiceRegistration } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { type Lease, leaseKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createRegistrationStore } from '@rollcall/registry/registrations/store/registrations.ts';
import { beforeAll, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';

/** Of a heartbeat that was absorbed, written when its window has ended. */
const LATE_MS = 10_000;

let namespace: TestNamespace;

beforeAll(async () => {
  namespace = await createNamespace('late-heartbeats');
});

const NEW = { url: 'http://shop', capabilities: [], owner: undefined, serviceId: undefined, ttlSeconds: 60 };

/** The store of one replica, whose watch brings it nothing: it knows what it has written itself. */
async function startReplica() {
  const clock = systemClock;
  const log = createLogger('test', 'silent');
  const connection = await connectByFile(inject('kubeconfig'), { clock, requestTimeoutMs: 20_000, maxSockets: 4 });
  const common = { connection, namespace: namespace.name, clock, log };
  const registrations = createInformer<ServiceRegistration>({ ...common, kind: serviceRegistrationKind });
  const leases = createInformer<Lease>({ ...common, kind: leaseKind });
  const known: string[] = [];
  leases.onChange((change) => void known.push(heartbeatOf(change.object).renewTime ?? ''));
  const store = createRegistrationStore({
    ...common,
    registrations,
    leases,
    streamed: async () => [],
    onChange: () => undefined,
  });
  return { store, known, at: (ageMs: number) => ({ at: new Date(clock.now().getTime() - ageMs), ageMs }) };
}

/**
 * Two replicas, and a registration of which one made the Lease and the other asks the API server
 * for it.
 */
async function setUp() {
  const [one, other] = await Promise.all([startReplica(), startReplica()]);
  const request = { serviceName: `shop-${randomUUID()}`, ...NEW };
  const life = await one.store.create(request);
  const stored = async () =>
    heartbeatOf(JSON.parse(await namespace.kubectl(['get', 'lease', request.serviceName, '-o', 'json'])));
  return { one, other, life, stored };
}

test('a heartbeat that is written late leaves a newer one of another replica where it is, and learns of it', async () => {
  const { one, other, life, stored } = await setUp();
  const late = one.at(LATE_MS);
  expect(await other.store.renew(life, other.at(0))).toBe(true);
  const newer = await stored();
  expect(await one.store.renew(life, late)).toBe(true);
  expect(await stored()).toEqual(newer);
  expect(one.known.at(-1)).toBe(newer.renewTime);
});

test('a newer heartbeat replaces an older one of another replica that was written meanwhile', async () => {
  const { one, other, life, stored } = await setUp();
  expect(await other.store.renew(life, other.at(LATE_MS))).toBe(true);
  const fresh = one.at(0);
  expect(await one.store.renew(life, fresh)).toBe(true);
  expect(await stored()).toMatchObject({
    ageMs: 0,
    renewTime: expect.stringContaining(fresh.at.toISOString().slice(0, -1)),
  });
});

test('a heartbeat of another life, and of none, is not written', async () => {
  const { one, other, life } = await setUp();
  expect(await one.store.remove(life)).toBe(true);
  expect(await other.store.renew(life, other.at(0))).toBe(false);
  const next = await one.store.create({ serviceName: life.serviceName, ...NEW });
  expect(await other.store.renew(life, other.at(0))).toBe(false);
  expect(await other.store.renew(next, other.at(0))).toBe(true);
});
