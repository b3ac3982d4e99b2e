import { constantFrom, integer, record, sample } from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry, type TestRegistry } from '../support/registry.ts';

const NAMES = ['a', 'B', 'c'];
const OPERATIONS = 600;
const CALLERS = 12;

let namespace: TestNamespace;
let database: TestDatabase;
let replicas: TestRegistry[];

beforeAll(async () => {
  namespace = await createNamespace('replicas');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  replicas = await Promise.all([startRegistry(options), startRegistry(options)]);
});

afterAll(async () => {
  await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()));
  await database[Symbol.asyncDispose]();
  await namespace[Symbol.asyncDispose]();
});

interface StoredRegistration {
  readonly metadata: { readonly uid: string; readonly name: string };
  readonly spec: { readonly serviceName: string; readonly url: string };
}

interface StoredLease {
  readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly uid: string }[] };
}

async function stored<T>(resource: string): Promise<T[]> {
  return (JSON.parse(await namespace.kubectl(['get', resource, '-o', 'json'])) as { items: T[] }).items;
}

test('two replicas hammered with the same names agree with the API server in the end', async () => {
  const random = sample(
    record({
      name: constantFrom(...NAMES),
      replica: constantFrom(0, 1),
      operation: constantFrom('register', 'register', 'delete', 'heartbeat', 'heartbeat'),
      port: integer({ min: 1, max: 9999 }),
    }),
    { numRuns: OPERATIONS, seed: 7 },
  );
  const next = random.values();
  const unexpected: string[] = [];
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (const { name, replica, operation, port } of next) {
        const registry = replicas[replica];
        if (registry === undefined) throw new Error('no such replica');
        if (operation === 'register') {
          const body = { service_name: name, service_url: `http://host:${port}` };
          const { status, body: answer } = await registry.call('POST', '/services/register', body);
          if (status !== 200) unexpected.push(`register ${status} ${JSON.stringify(answer)}`);
        } else if (operation === 'delete') {
          const { status } = await registry.call('DELETE', `/services/${name}`);
          if (status !== 200 && status !== 404) unexpected.push(`delete ${status}`);
        } else {
          const { status } = await registry.call('POST', `/services/${name}/heartbeat`);
          if (status !== 200 && status !== 400) unexpected.push(`heartbeat ${status}`);
        }
      }
    }),
  );
  expect(unexpected).toEqual([]);

  // The last word on every name, so that there is something to compare.
  for (const name of NAMES)
    await replicas[0]?.call('POST', '/services/register', { service_name: name, service_url: 'http://last' });
  const registrations = await stored<StoredRegistration>('serviceregistrations');
  expect(registrations.map(({ spec }) => spec.serviceName).sort()).toEqual([...NAMES].sort());
  const leases = await stored<StoredLease>('leases');
  for (const { metadata } of registrations) {
    const owned = leases.filter((lease) => lease.metadata.ownerReferences?.[0]?.uid === metadata.uid);
    expect(owned.map((lease) => lease.metadata.name)).toEqual([metadata.name]);
  }
  for (const replica of replicas) {
    await expect
      .poll(async () => {
        const { body } = await replica.call('GET', '/services');
        const services = body?.['services'] as { service_name: string; service_id: string; service_url: string }[];
        return services.map((each) => `${each.service_name} ${each.service_id} ${each.service_url}`).sort();
      })
      .toEqual(registrations.map(({ metadata, spec }) => `${spec.serviceName} ${metadata.uid} ${spec.url}`).sort());
  }
});

test('what one replica acknowledged is there on the other within a second, heartbeats included', async () => {
  const [one, two] = replicas;
  if (one === undefined || two === undefined) throw new Error('two replicas are needed');
  await one.call('POST', '/services/register', { service_name: 'seen', service_url: 'http://a' });
  expect((await two.call('GET', '/services/seen')).status).toBe(200);
  expect((await two.call('POST', '/services/seen/heartbeat')).status).toBe(200);
  await one.call('DELETE', '/services/seen');
  await expect.poll(async () => (await two.call('GET', '/services/seen')).status, { timeout: 1000 }).toBe(404);
});

test('a replica killed with SIGKILL under load loses nothing that it acknowledged', async () => {
  const doomed = await startRegistry({ namespace: namespace.name, databaseUrl: database.url });
  const acknowledged = new Map<string, boolean>();
  const deadline = performance.now() + 1500;
  const load = Array.from({ length: 8 }, async (_, caller) => {
    for (let index = 0; performance.now() < deadline + 1000; index += 1) {
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
  await new Promise((resolve) => setTimeout(resolve, deadline - performance.now()));
  await doomed.kill();
  await Promise.all(load);
  expect(acknowledged.size).toBeGreaterThan(20);
  const present = new Set(
    (await stored<StoredRegistration>('serviceregistrations')).map(({ spec }) => spec.serviceName),
  );
  const wrong = [...acknowledged].filter(([name, registered]) => present.has(name) !== registered);
  expect(wrong).toEqual([]);
  await expect.poll(async () => (await replicas[0]?.call('GET', '/services'))?.body?.['total']).toBe(present.size);
});
