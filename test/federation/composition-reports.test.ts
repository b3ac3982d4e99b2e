import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { startFederation } from './federation-service.ts';
import { reviews, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

test('registrations say by a condition how services stand with the graph', async () => {
  const namespace = await createNamespace('compositions');
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const registry = await startRegistry({ namespace: namespace.name, databaseUrl: database.url });
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const client = createRegistryClient({ servers: registry.url });
  const { call } = await startFederation({
    ROLLCALL_REGISTRY_URLS: registry.url,
    ROLLCALL_SERVICE_URL: 'http://127.0.0.1:3002',
  });

  async function composed(name: string) {
    const text = await namespace.kubectl(['get', 'serviceregistrations', name, '--output=json']);
    const { status } = JSON.parse(text) as {
      status?: { conditions?: readonly { type: string; status: string; reason: string; message: string }[] };
    };
    return status?.conditions?.find(({ type }) => type === 'Composed');
  }
  const inGraph = { status: 'True', reason: 'InGraph', message: 'Its newest schema is in the graph' };

  // What people said is of no use without who they are.
  const capabilities = ['graphql'] as const;
  const said = await startSubgraph(reviews);
  await client.register({ service_name: 'reviews', service_url: said.base, capabilities });
  await expect.poll(() => composed('reviews')).toMatchObject({ status: 'False', reason: 'Held' });
  expect((await composed('reviews'))?.message).toMatch(/^[A-Z_]+: \S/);

  const people = await startSubgraph(users);
  const registration = { service_name: 'users', service_url: people.base, capabilities };
  await client.register({ ...registration, instance_id: 'a' });
  await expect.poll(() => composed('users.i.a')).toMatchObject(inGraph);
  await expect.poll(() => composed('reviews')).toMatchObject(inGraph);
  await client.register({ ...registration, instance_id: 'b' });
  await expect.poll(() => composed('users.i.b')).toMatchObject(inGraph);

  people.misbehave((response) => response.writeHead(500).end());
  await call('POST', '/schemas/refresh', { body: {} });
  await expect.poll(() => composed('users.i.a')).toMatchObject({ status: 'False', reason: 'Unreachable' });
  expect((await call('DELETE', '/schemas/reviews')).status).toBe(204);
  await expect.poll(() => composed('reviews')).toMatchObject({ status: 'False', reason: 'Removed' });
});
