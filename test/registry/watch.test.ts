import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { openEventStream } from '../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let first: RunningService;
let second: RunningService;

beforeAll(async () => {
  namespace = await createNamespace('watch');
  database = await createDatabase();
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [first, second] = await Promise.all([startRegistry(options), startRegistry(options)]);
});

afterAll(async () => {
  await Promise.all([first[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
  await database[Symbol.asyncDispose]();
});

const watchUrl = (registry: RunningService) => `${registry.url}/api/v1/services/watch`;

async function register(service_name: string, service_url = 'http://a'): Promise<void> {
  expect((await first.call('POST', '/services/register', { service_name, service_url })).status).toBe(200);
}

test('begins with everything, then reports each change with an id that another replica resumes from', async () => {
  await register('before');
  await expect.poll(async () => (await first.call('GET', '/services')).body?.['total']).toBe(1);
  let resumeFrom: string | undefined;
  {
    await using stream = await openEventStream(watchUrl(first));
    const initial = await stream.until('synced');
    expect(initial.map(({ type }) => type)).toEqual(['added', 'synced']);
    expect(initial[0]?.data).toMatchObject({ service_name: 'before', service_url: 'http://a', capabilities: [] });
    await register('during');
    const added = await stream.next();
    expect(added).toMatchObject({
      type: 'added',
      data: { service_name: 'during' },
      id: expect.stringMatching(/^i\d+$/),
    });
    resumeFrom = added.id;
  }
  await register('during', 'http://b');
  await first.call('DELETE', '/services/before');
  for (const registry of [first, second]) {
    await using resumed = await openEventStream(watchUrl(registry), resumeFrom);
    expect(await resumed.next()).toMatchObject({ type: 'modified', data: { service_url: 'http://b' } });
    expect(await resumed.next()).toMatchObject({ type: 'removed', data: { service_name: 'before' } });
  }
});

test('expiry, as the operator writes it, is an event of its own', async () => {
  await register('expiring');
  // Or it would be told of this first.
  await expect.poll(async () => (await second.call('GET', '/services/expiring')).status).toBe(200);
  await using stream = await openEventStream(watchUrl(second));
  await stream.until('synced');
  await namespace.kubectl([
    'patch',
    'sreg',
    'expiring',
    '--subresource=status',
    '--type=merge',
    '-p',
    '{"status":{"phase":"Expired"}}',
  ]);
  expect(await stream.next()).toMatchObject({ type: 'expired', data: { service_name: 'expiring' } });
  expect((await second.call('GET', '/services/expiring')).status).toBe(404);
  expect((await second.call('POST', '/services/expiring/heartbeat')).status).toBe(400);
  // The other replica learns of it by its own watch, and must not do so in the midst of the next
  // test.
  await vi.waitFor(async () => expect((await first.call('GET', '/services/expiring')).status).toBe(404), {
    timeout: 10_000,
  });
});

test('a manifest applied by hand is discovered, and its deletion reported', async () => {
  await using stream = await openEventStream(watchUrl(first));
  await stream.until('synced');
  const manifest = {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ServiceRegistration',
    metadata: { name: 'by-hand' },
    spec: { serviceName: 'by-hand', url: 'http://legacy:8080', capabilities: ['rest'] },
  };
  await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
  expect(await stream.next()).toMatchObject({ type: 'added', data: { service_name: 'by-hand' } });
  expect((await first.call('GET', '/services/by-hand')).body).toMatchObject({ service_url: 'http://legacy:8080' });
  expect((await first.call('POST', '/services/by-hand/heartbeat')).status).toBe(200);
  const answer = await first.call('POST', '/services/register', {
    service_name: 'by-hand',
    service_url: 'http://thief',
  });
  expect(answer.status).toBe(400);
  expect((await first.call('DELETE', '/services/by-hand')).status).toBe(400);
  await namespace.kubectl(['delete', 'sreg', 'by-hand']);
  expect(await stream.next()).toMatchObject({ type: 'removed', data: { service_name: 'by-hand' } });
});

test.each([
  ['that nobody knows', 'i1'],
  ['of a registry from before instances', '999999'],
])('an id %s gets a reset and everything anew', async (_what, id) => {
  await using stream = await openEventStream(watchUrl(first), id);
  expect(await stream.next()).toMatchObject({ type: 'reset' });
  expect((await stream.until('synced')).map(({ data }) => data['service_name'])).toContain('during');
});

test('a service may be called watch', async () => {
  const json = { headers: { accept: 'application/json' } };
  expect((await fetch(watchUrl(first), json)).status).toBe(404);
  await register('watch');
  expect((await first.call('GET', '/services/watch')).body).toMatchObject({ service_name: 'watch' });
  await using stream = await openEventStream(watchUrl(first));
  await stream.until('synced');
});

test('shutdown ends open streams instead of waiting for them', async () => {
  await using stream = await openEventStream(watchUrl(second));
  await stream.until('synced');
  const startedAt = performance.now();
  await second[Symbol.asyncDispose]();
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  await stream.end();
});
