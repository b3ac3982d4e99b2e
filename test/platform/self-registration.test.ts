import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { selfRegistration } from '@rollcall/platform/service/self-registration.ts';
import { expect, onTestFinished, test } from 'vitest';
import { startRealRegistry } from '../client/real-registry.ts';

test('a service tells the registry of its health whenever it changes, also after the registry was away', async () => {
  const registry = await startRealRegistry();
  onTestFinished(() => registry[Symbol.asyncDispose]());
  let isConnected = true;
  const actor = selfRegistration({
    registries: [registry.url],
    name: 'ledger-of-tests',
    url: 'http://10.0.0.7:8080',
    capabilities: ['rest'],
    version: '1.2.3',
    healthParts: [{ name: 'database', isNeeded: true, isConnected: () => isConnected }],
    log: createLogger('test', 'silent'),
  });
  await actor.start();
  onTestFinished(() => actor.stop());
  const client = createRegistryClient({ servers: registry.url });
  const shown = async () => {
    const { instances } = await client.listInstances('ledger-of-tests');
    return instances.map(({ health, healthy }) => [health, healthy]);
  };
  const until = (expected: readonly unknown[]) =>
    expect.poll(() => shown().catch(() => undefined), { timeout: 30_000 }).toEqual([expected]);
  await until(['healthy', true]);
  isConnected = false;
  await until(['unhealthy', false]);
  await registry.kill();
  isConnected = true;
  await registry.restart();
  await until(['healthy', true]);
});
