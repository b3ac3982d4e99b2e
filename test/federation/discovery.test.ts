import { createRegistryClient, type RegistryClient } from '@rollcall/client/registry-client.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { type Federation, startFederation, statusesOf } from './federation-service.ts';
import { products, users } from './shop.ts';
import { startSubgraph } from './subgraph-server.ts';

interface World extends Federation {
  readonly registry: RegistryClient;
}

/** Federation that follows a registry of its own. */
async function startWorld(settings: Readonly<Record<string, string>> = {}): Promise<World> {
  const namespace = await createNamespace('federation');
  const database = await createDatabase();
  onTestFinished(() => database[Symbol.asyncDispose]());
  const { url, ...registry } = await startRegistry({ namespace: namespace.name, databaseUrl: database.url });
  onTestFinished(() => registry[Symbol.asyncDispose]());
  const federation = await startFederation({
    ROLLCALL_REGISTRY_URLS: url,
    ROLLCALL_SERVICE_URL: 'http://127.0.0.1:3002',
    ...settings,
  });
  return { ...federation, registry: createRegistryClient({ servers: url }) };
}

test('a service that registers with GraphQL is in the graph, and leaves it after a grace', async () => {
  const { registry, query, call } = await startWorld({ ROLLCALL_SCHEMA_GRACE_SECONDS: '10' });
  const server = await startSubgraph(products);
  await registry.register({ service_name: 'products', service_url: server.base, capabilities: ['rest', 'graphql'] });
  await registry.register({ service_name: 'other', service_url: server.base, capabilities: ['rest'] });
  await expect.poll(() => query('{ product }')).toEqual({ data: { product: 'table' } });
  expect(await statusesOf(call)).toEqual({ products: 'composed' });
  await registry.unregister('products');
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'stale' });
  await expect.poll(() => statusesOf(call)).toEqual({});
});

test('one that comes back within the grace stays, and its graph with it', async () => {
  const { registry, query, call } = await startWorld();
  const server = await startSubgraph(products);
  const registration = { service_name: 'products', service_url: server.base, capabilities: ['graphql'] as const };
  await registry.register(registration);
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'composed' });
  await registry.unregister('products');
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'stale' });
  expect(await query('{ product }')).toEqual({ data: { product: 'table' } });
  await registry.register(registration);
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'composed' });
  expect((await call('GET', '/schemas/history')).body).toMatchObject({ total: 1 });
});

test('its schema is read where it registers, also at a path of its own, and anew as it moves', async () => {
  const { registry, query } = await startWorld();
  const server = await startSubgraph(products, { path: '/graph' });
  const registration = { service_name: 'products', capabilities: ['graphql'] as const };
  await registry.register({ ...registration, service_url: server.base, graphql_path: '/graph' });
  await expect.poll(() => query('{ product }')).toEqual({ data: { product: 'table' } });
  const moved = await startSubgraph(
    { ...products, sdl: `${products.sdl} extend type Query { more: Int }` },
    { path: '/api/graphql' },
  );
  await registry.register({ ...registration, service_url: moved.base });
  await expect.poll(() => query('{ more }')).toEqual({ data: { more: null } });
});

test('one that starts after it has registered is found', async () => {
  const { registry, query, call } = await startWorld();
  const server = await startSubgraph(users);
  server.misbehave((response) => void response.destroy());
  await registry.register({ service_name: 'users', service_url: server.base, capabilities: ['graphql'] });
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'unreachable' });
  server.misbehave(undefined);
  await expect.poll(async () => (await query('{ users { id } }')).data).toEqual({ users: [{ id: '1' }, { id: '2' }] });
});

test('one that somebody removes stays out, although it is registered', async () => {
  const { registry, call } = await startWorld();
  const server = await startSubgraph(users);
  const registration = { service_name: 'users', service_url: server.base, capabilities: ['graphql'] as const };
  await registry.register(registration);
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'composed' });
  expect((await call('DELETE', '/schemas/users')).status).toBe(204);
  const other = await startSubgraph(products);
  await registry.register({ service_name: 'products', service_url: other.base, capabilities: ['graphql'] });
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'composed' });
  expect(await statusesOf(call)).not.toHaveProperty('users');
});

test('what somebody told of stays, whatever the registry says', async () => {
  const { registry, call } = await startWorld({ ROLLCALL_SCHEMA_GRACE_SECONDS: '0' });
  const [told, registered] = [await startSubgraph(users), await startSubgraph(products)];
  await call('POST', '/schemas/introspect', { body: { serviceUrl: told.url, name: 'users' } });
  await registry.register({ service_name: 'users', service_url: registered.base, capabilities: ['graphql'] });
  await registry.register({ service_name: 'products', service_url: registered.base, capabilities: ['graphql'] });
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'composed', products: 'composed' });
  await registry.unregister('users');
  await registry.unregister('products');
  await expect.poll(() => statusesOf(call)).toEqual({ users: 'composed' });
  expect((await call('GET', '/schemas')).body).toMatchObject({ schemas: [{ url: told.url }] });
});

test('calls go to each of its instances, and to the others when one is killed', async () => {
  const { registry, query, call } = await startWorld();
  const servers = [await startSubgraph(products), await startSubgraph(products), await startSubgraph(products)];
  for (const [number, { base }] of servers.entries())
    await registry.register({
      service_name: 'products',
      service_url: base,
      instance_id: `n${number}`,
      capabilities: ['graphql'],
    });
  await expect.poll(() => statusesOf(call)).toEqual({ products: 'composed' });
  const answer = { data: { product: 'table' } };
  await expect
    .poll(async () => {
      expect(await query('{ product }')).toEqual(answer);
      return servers.every(({ asked }) => asked.length > 0);
    })
    .toBe(true);
  await servers[0]?.stop();
  for (let times = 0; times < 12; times += 1) expect(await query('{ product }')).toEqual(answer);
});
