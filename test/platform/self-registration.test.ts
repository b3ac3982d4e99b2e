import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { selfRegistration } from '@rollcall/platform/service/self-registration.ts';
import { expect, onTestFinished, test } from 'vitest';
import { startContractServer } from '../client/contract-server.ts';
import { startRealRegistry } from '../client/real-registry.ts';

/** Keeps a service of tests registered, until the test is over. */
async function startRegistration(registry: string, isConnected: () => boolean): Promise<void> {
  const actor = selfRegistration({
    registries: [registry],
    name: 'ledger-of-tests',
    url: 'http://10.0.0.7:8080',
    capabilities: ['rest'],
    version: '1.2.3',
    healthParts: [{ name: 'database', isNeeded: true, isConnected }],
    log: createLogger('test', 'silent'),
  });
  await actor.start();
  onTestFinished(() => actor.stop());
}

test('a service tells the registry of its health whenever it changes, also after the registry was away', {
  timeout: 400_000,
}, async () => {
  const registry = await startRealRegistry();
  onTestFinished(() => registry[Symbol.asyncDispose]());
  let isConnected = true;
  await startRegistration(registry.url, () => isConnected);
  const client = createRegistryClient({ servers: registry.url });
  const shown = async () => {
    const { instances } = await client.listInstances('ledger-of-tests');
    return instances.map(({ health, healthy }) => [health, healthy]);
  };
  const until = (expected: readonly unknown[]) =>
    expect.poll(() => shown().catch(() => undefined), { timeout: 120_000 }).toEqual([expected]);
  await until(['healthy', true]);
  isConnected = false;
  await until(['unhealthy', false]);
  await registry.kill();
  isConnected = true;
  await registry.restart();
  await until(['healthy', true]);
});

test('it asks a registry that does not take its health less and less often', async () => {
  const registry = await startContractServer();
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const reports = 'POST /webhooks/health';
  registry.misbehave(reports, { status: 503, body: { error: 'Unavailable', message: 'It is away' } });
  await startRegistration(registry.url, () => true);
  await expect.poll(() => registry.callsOf(reports).length, { timeout: 50_000 }).toBeGreaterThanOrEqual(3);
  const [, second = 0, third = 0] = registry.callsOf(reports).map(({ atMs }) => atMs);
  // Every two seconds it would be without back-off.
  expect(third - second).toBeGreaterThan(3900);
});

test('it does so, too, where it could not reach the registry for longer than the TTL', async () => {
  const registry = await startContractServer({ ttl: 1 });
  onTestFinished(() => registry[Symbol.asyncDispose]());
  registry.misbehave('POST /webhooks/health', { status: 200, body: {} });
  let isConnected = true;
  await startRegistration(registry.url, () => isConnected);
  const reported = () => registry.callsOf('POST /webhooks/health').map(({ body }) => JSON.parse(body).status);
  await expect.poll(reported).toEqual(['healthy']);
  registry.misbehave('POST /services/', 'cut');
  await sleep(1500);
  const { length: before } = registry.callsOf('POST /services/');
  // Before the second one is made, the first one has failed.
  await expect.poll(() => registry.callsOf('POST /services/').length).toBeGreaterThanOrEqual(before + 2);
  registry.misbehave('POST /services/', undefined);
  isConnected = false;
  await expect.poll(reported).toEqual(['healthy', 'unhealthy']);
});

test('it says again what is so where the registry may have taken a report without an answer', async () => {
  const registry = await startContractServer();
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const reports = 'POST /webhooks/health';
  registry.misbehave(reports, { status: 200, body: {} });
  let isConnected = true;
  await startRegistration(registry.url, () => isConnected);
  const reported = () => registry.callsOf(reports).map(({ body }) => JSON.parse(body).status);
  await expect.poll(reported).toEqual(['healthy']);
  registry.misbehave(reports, 'cut');
  isConnected = false;
  await expect.poll(() => reported().at(-1)).toBe('unhealthy');
  isConnected = true;
  registry.misbehave(reports, { status: 200, body: {} });
  await expect.poll(() => reported().at(-1)).toBe('healthy');
});
