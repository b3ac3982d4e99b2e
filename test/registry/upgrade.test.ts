import { objectNameFor } from '@rollcall/crds/kinds.ts';
import { microTime } from '@rollcall/platform/kube/micro-time.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { expect, test } from 'vitest';
import { createLease, createWorld, startOperator, until, untilPhase, type World } from '../operator/fixtures.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';

const TTL_SECONDS = 5;
/** How long nobody has been there to hear heartbeats or to look for them. */
const DOWN_MS = 60_000;
const NAMES = ['shop', 'Straße-店', ...Array.from({ length: 10 }, (_, index) => `service-${index}`)];
/** It has sent its last heartbeat to the version before. */
const DEAD = 'dead';

/**
 * Writes a registration that lives, as version 0.1.0 did before names had instances: without a label
 * and with nothing that tells of an instance.
 *
 * @returns its uid, by which its clients know it.
 */
async function writeEarlier(world: World, serviceName: string): Promise<string> {
  const { registrations } = world;
  const name = objectNameFor(serviceName);
  const registration = await registrations.create({
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name },
    spec: { serviceName, url: 'http://10.0.0.1', capabilities: ['rest'], ttlSeconds: TTL_SECONDS, source: 'API' },
  });
  const { uid = '', creationTimestamp = '' } = registration.metadata;
  const at = { phaseSince: creationTimestamp, registeredAt: creationTimestamp, observedGeneration: 1 };
  await registrations.apply(
    { metadata: { name, uid }, status: { phase: 'Registered', ...at } },
    { fieldManager: 'rollcall-operator', force: true, subresource: 'status' },
  );
  await createLease(world, registration, microTime(new Date(Date.now() - DOWN_MS)));
  return uid;
}

test('registrations of before names had instances live on, with their ids, and get instances beside them', async (context) => {
  const world = await createWorld(context);
  const ids = new Map<string, string>();
  for (const name of [...NAMES, DEAD]) ids.set(name, await writeEarlier(world, name));
  const database = await createDatabase();
  context.onTestFinished(() => database[Symbol.asyncDispose]());
  const settings = { ROLLCALL_TTL_SECONDS: String(TTL_SECONDS) };
  const options = { namespace: world.namespace, databaseUrl: database.url, settings };
  const [registry] = await Promise.all([startRegistry(options), startOperator(world)]);
  context.onTestFinished(() => registry[Symbol.asyncDispose]());
  const refused: unknown[] = [];
  const beat = async () => {
    for (const name of NAMES) {
      const { status } = await registry.call('POST', `/services/${encodeURIComponent(name)}/heartbeat`);
      if (status !== 200) refused.push([name, status]);
    }
  };
  const register = { service_name: 'shop', service_url: 'http://10.0.0.2', instance_id: 'a' };
  const { body: joined } = await registry.call('POST', '/services/register', register);
  expect(joined).toMatchObject({ instance_id: 'a', service_id: ids.get('shop') });

  const over = new AbortController();
  const beating = (async () => {
    for (; !over.signal.aborted; await sleep(1000)) await beat();
  })();
  await untilPhase(world, DEAD, 'Expired');
  // Whoever else was to be expired by mistake would be a TTL later.
  await sleep(TTL_SECONDS * 1000);
  over.abort();
  await beating;
  expect(refused).toEqual([]);
  for (const name of NAMES) {
    const { body } = await registry.call('GET', `/services/${encodeURIComponent(name)}`);
    expect(body).toMatchObject({ service_id: ids.get(name), service_url: 'http://10.0.0.1' });
    const { metadata, status } = (await world.registrations.find(objectNameFor(name))) ?? {};
    // None is rewritten.
    expect({ generation: metadata?.generation, phase: status?.phase }).toEqual({ generation: 1, phase: 'Registered' });
  }
  // Its program sends no heartbeats.
  await until(
    'the instance has expired',
    async () => (await registry.call('GET', '/services/shop/instances/a')).status === 404,
  );

  // A client of before registers again, as the one without an id.
  const again = { service_name: 'shop', service_url: 'http://10.0.0.3' };
  const { body } = await registry.call('POST', '/services/register', again);
  expect(body).toMatchObject({ service_id: ids.get('shop'), service_url: 'http://10.0.0.3' });
  expect(body).not.toHaveProperty('instance_id');
});
