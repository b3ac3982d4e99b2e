import { createInterface } from 'node:readline';
import { serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile } from '@rollcall/platform/kube/connection.ts';
import { collectionPath } from '@rollcall/platform/kube/resource-client.ts';
import { constantFrom, integer, record, sample } from 'fast-check';
import { afterAll, beforeAll, expect, inject, type TestContext, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry, startRegistryProcess } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { startReadyReplica } from '../support/replica.ts';

const NAMES = ['a', 'B', 'c'];
const OPERATIONS = 400;
const CALLERS = 12;
const TTL_MS = 5000;

let namespace: TestNamespace;
let database: TestDatabase;
let replicas: RunningService[];

beforeAll(async () => {
  namespace = await createNamespace('replicas');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  replicas = await Promise.all([startRegistry(options), startRegistry(options)]);
});

afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
  await database[Symbol.asyncDispose]();
});

interface StoredRegistration {
  readonly metadata: { readonly uid: string; readonly name: string; readonly resourceVersion: string };
  readonly spec: { readonly serviceName: string; readonly url: string };
  readonly status?: { readonly phase?: string };
}

interface StoredLease {
  readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly uid: string }[] };
}

async function stored<T>(resource: string, of: TestNamespace = namespace): Promise<T[]> {
  return (JSON.parse(await of.kubectl(['get', resource, '-o', 'json'])) as { items: T[] }).items;
}

interface Change {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly object: StoredRegistration;
  readonly seenAtMs: number;
}

/** All events of the API server about the registrations of a namespace from now on, in order. */
async function follow(
  namespaceName: string,
  { onTestFinished }: Pick<TestContext, 'onTestFinished'>,
): Promise<Change[]> {
  const options = { clock: systemClock, requestTimeoutMs: 20_000, maxSockets: 4 };
  const connection = await connectByFile(inject('kubeconfig'), options);
  const path = collectionPath(serviceRegistrationKind, namespaceName);
  const { metadata } = await connection.request<{ metadata: { resourceVersion: string } }>({ method: 'GET', path });
  const stop = new AbortController();
  const { resourceVersion } = metadata;
  const lines = createInterface({
    input: await connection.stream(path, { watch: true, resourceVersion }, stop.signal),
  });
  const changes: Change[] = [];
  const over = (async () => {
    for await (const line of lines) {
      const { type, object } = JSON.parse(line) as Pick<Change, 'type' | 'object'>;
      changes.push({ type, object, seenAtMs: performance.now() });
    }
  })().catch(() => undefined);
  onTestFinished(async () => {
    stop.abort();
    lines.close();
    await Promise.all([over, connection.close()]);
  });
  return changes;
}

interface Acknowledged {
  /** By name, of every registering: the id, and when it was asked for. */
  readonly registered: Map<string, { readonly id: string; readonly askedAtMs: number }[]>;
  /** By name, how often a removal was. */
  readonly removed: Map<string, number>;
  readonly unexpected: string[];
}

/** Registers, removes and beats at both replicas at once. */
async function hammer(registries: readonly RunningService[], seed: number, into: Acknowledged): Promise<void> {
  const random = sample(
    record({
      name: constantFrom(...NAMES),
      registry: constantFrom(...registries),
      operation: constantFrom('register', 'register', 'delete', 'heartbeat', 'heartbeat'),
      port: integer({ min: 1, max: 9999 }),
    }),
    { numRuns: OPERATIONS, seed },
  );
  const next = random.values();
  const { registered, removed, unexpected } = into;
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (const { name, registry, operation, port } of next) {
        const askedAtMs = performance.now();
        if (operation === 'register') {
          const body = { service_name: name, service_url: `http://host:${port}` };
          const { status, body: answer } = await registry.call('POST', '/services/register', body);
          if (status !== 200) unexpected.push(`register ${status} ${JSON.stringify(answer)}`);
          else
            registered.set(name, [...(registered.get(name) ?? []), { id: String(answer?.['service_id']), askedAtMs }]);
        } else if (operation === 'delete') {
          const { status } = await registry.call('DELETE', `/services/${name}`);
          if (status === 200) removed.set(name, (removed.get(name) ?? 0) + 1);
          else if (status !== 404) unexpected.push(`delete ${status}`);
        } else {
          const { status } = await registry.call('POST', `/services/${name}/heartbeat`);
          if (status !== 200 && status !== 400) unexpected.push(`heartbeat ${status}`);
        }
      }
    }),
  );
}

test('two replicas and an operator hammered with the same names: every life that was acknowledged is accounted for', async (context) => {
  const own = await createNamespace('hammered');
  const settings = { ROLLCALL_TTL_SECONDS: String(TTL_MS / 1000) };
  const options = { namespace: own.name, databaseUrl: database.url, settings };
  const operator = await startReadyReplica('operator/src/main.ts', {
    logDirectory: inject('temporaryDirectory'),
    access: inject('podEnvironment'),
    namespace: own.name,
    settings: { ROLLCALL_IMPORT: 'false' },
  });
  context.onTestFinished(() => operator[Symbol.asyncDispose]());
  const registries = await Promise.all([startRegistryProcess(options), startRegistryProcess(options)]);
  for (const registry of registries) context.onTestFinished(() => registry[Symbol.asyncDispose]());
  const changes = await follow(own.name, context);
  const acknowledged: Acknowledged = { registered: new Map(), removed: new Map(), unexpected: [] };

  await hammer(registries, 7, acknowledged);
  // Whatever the first round left expires, so that the second one registers over it.
  await registries[0]?.call('POST', '/services/register', { service_name: 'a', service_url: 'http://left' });
  await expect
    .poll(async () => new Set((await stored<StoredRegistration>('sreg', own)).map(({ status }) => status?.phase)), {
      timeout: 40_000,
    })
    .toEqual(new Set(['Expired']));
  await hammer(registries, 8, acknowledged);
  expect(acknowledged.unexpected).toEqual([]);

  // The last word on every name, so that there is something to compare.
  for (const name of NAMES) {
    await registries[0]?.call('POST', '/services/register', { service_name: name, service_url: 'http://last' });
  }
  const registrations = await stored<StoredRegistration>('sreg', own);
  const leases = await stored<StoredLease>('leases', own);
  expect(registrations.map(({ spec }) => spec.serviceName).sort()).toEqual([...NAMES].sort());
  for (const { metadata } of registrations) {
    const owned = leases.filter((lease) => lease.metadata.ownerReferences?.[0]?.uid === metadata.uid);
    expect(owned.map((lease) => lease.metadata.name)).toEqual([metadata.name]);
  }
  const expected = registrations.map(({ metadata, spec }) => `${spec.serviceName} ${metadata.uid} ${spec.url}`).sort();
  for (const registry of registries) {
    await expect.poll(() => servicesOf(registry)).toEqual(expected);
  }
  const versions = registrations.map(({ metadata }) => metadata.resourceVersion);
  await expect
    .poll(
      () => versions.every((version) => changes.some(({ object }) => object.metadata.resourceVersion === version)),
      {
        timeout: 20_000,
      },
    )
    .toBe(true);
  for (const name of NAMES) checkLives(name, { changes, acknowledged, current: registrations });
}, 300_000);

async function servicesOf(registry: RunningService): Promise<string[]> {
  const { body } = await registry.call('GET', '/services');
  const services = body?.['services'] as { service_name: string; service_id: string; service_url: string }[];
  return services.map((each) => `${each.service_name} ${each.service_id} ${each.service_url}`).sort();
}

interface Evidence {
  readonly changes: readonly Change[];
  readonly acknowledged: Acknowledged;
  readonly current: readonly StoredRegistration[];
}

function idsOf(changes: readonly Change[]): Set<string> {
  return new Set(changes.map(({ object }) => object.metadata.uid));
}

/**
 * Each life ended by an acknowledged removal or by expiry, or it is the current one; and none
 * expired before its time.
 */
function checkLives(name: string, { changes, acknowledged, current }: Evidence): void {
  const own = changes.filter(({ object }) => object.spec.serviceName === name);
  const expiries = own.filter(({ type, object }) => type === 'MODIFIED' && object.status?.phase === 'Expired');
  const expired = idsOf(expiries);
  const gone = idsOf(own.filter(({ type }) => type === 'DELETED'));
  const living = new Set(current.filter(({ spec }) => spec.serviceName === name).map(({ metadata }) => metadata.uid));
  const registered = acknowledged.registered.get(name) ?? [];

  const unaccounted = registered.filter(({ id }) => !living.has(id) && !gone.has(id));
  expect(unaccounted).toEqual([]);
  expect(gone.difference(expired).size).toBe(acknowledged.removed.get(name) ?? 0);
  const early = registered.filter(({ id, askedAtMs }) =>
    expiries.some(({ object, seenAtMs }) => object.metadata.uid === id && seenAtMs < askedAtMs + TTL_MS),
  );
  expect(early).toEqual([]);
  // The rounds were real ones.
  expect(gone.size).toBeGreaterThan(5);
}

test('what one replica acknowledged is there on the other soon, heartbeats included', async () => {
  const [one, two] = replicas;
  if (one === undefined || two === undefined) throw new Error('two replicas are needed');
  await one.call('POST', '/services/register', { service_name: 'seen', service_url: 'http://a' });
  expect((await two.call('GET', '/services/seen')).status).toBe(200);
  expect((await two.call('POST', '/services/seen/heartbeat')).status).toBe(200);
  await one.call('DELETE', '/services/seen');
  await expect.poll(async () => (await two.call('GET', '/services/seen')).status).toBe(404);
});

test('a replica killed with SIGKILL under load loses nothing that it acknowledged', { timeout: 120_000 }, async () => {
  const doomed = await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url });
  const acknowledged = new Map<string, boolean>();
  const killed = new AbortController();
  const load = Array.from({ length: 8 }, async (_, caller) => {
    for (let index = 0; !killed.signal.aborted; index += 1) {
      const name = `load-${caller}-${index}`;
      try {
        const { status } = await doomed.call('POST', '/services/register', {
          service_name: name,
          service_url: 'http://a',
        });
        if (status === 200) acknowledged.set(name, true);
        if (index % 3 !== 0) continue;
        if ((await doomed.call('DELETE', `/services/${name}`)).status === 200) acknowledged.set(name, false);
        else acknowledged.delete(name);
      } catch {
        // Cut off in the middle: whether this one took effect is not known.
        acknowledged.delete(name);
        return;
      }
    }
  });
  await expect.poll(() => acknowledged.size, { timeout: 60_000 }).toBeGreaterThan(40);
  await doomed.kill();
  killed.abort();
  await Promise.all(load);
  const present = new Set(
    (await stored<StoredRegistration>('serviceregistrations')).map(({ spec }) => spec.serviceName),
  );
  const wrong = [...acknowledged].filter(([name, registered]) => present.has(name) !== registered);
  expect(wrong).toEqual([]);
  await expect.poll(async () => (await replicas[0]?.call('GET', '/services'))?.body?.['total']).toBe(present.size);
});
