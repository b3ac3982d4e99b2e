import { Client, credentials, Metadata, status } from '@grpc/grpc-js';
import type { PackageDefinition } from '@grpc/proto-loader';
import { freePorts } from '@rollcall/local/ports.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { serviceDefinition } from '@rollcall/platform/grpc/protocols.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGrpcClient, type GrpcClient } from '../registry/grpc-client.ts';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';
import { INVENTORY, type InventoryBackend, startBareBackend, startInventoryBackend } from './inventory-backend.ts';
import { openReflection, type ReflectionOptions } from './reflection-client.ts';

const REGISTRY = 'rollcall.registry.v1.Registry';
const CHECK = 'grpc.health.v1.Health/Check';
const WATCH = 'grpc.health.v1.Health/Watch';
/** By a service, whether it has health or not. */
const ANSWERED = new Set<number>([status.OK, status.UNIMPLEMENTED]);

let inventory: InventoryBackend;
let port: number;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('standard');
  const database = stack.use(await createDatabase());
  const [registryPort = 0, gatewayPort = 0] = await freePorts(2);
  port = gatewayPort;
  const registry = stack.use(
    await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_GRPC_PORT: String(registryPort) },
    }),
  );
  const gateway = stack.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: {
        ROLLCALL_GRPC_PORT: String(gatewayPort),
        ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryPort}`,
      },
    }),
  );
  inventory = stack.use(await startInventoryBackend());
  const bare = stack.use(await startBareBackend());
  const registrations = [
    ['inventory', inventory.url, 'grpc'],
    ['bare', bare.url, 'grpc'],
    // Nobody is called over gRPC who has not said that it can.
    ['silent', inventory.url, 'rest'],
  ] as const;
  for (const [service_name, service_url, capability] of registrations) {
    await registry.call('POST', '/services/register', { service_name, service_url, capabilities: [capability] });
  }
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tool', scopes: ['registrations:read'] }));
  for (const service of ['inventory', 'bare']) {
    using caller = callerOf(service);
    const isKnown = async () => ANSWERED.has((await caller.call(CHECK, {})).code);
    await waitUntil(`the gateway knows ${service}`, isKnown, { timeoutMs: 20_000 });
  }
});

afterAll(() => stack.disposeAsync());

function callerOf(service: string): GrpcClient {
  return createGrpcClient(port, token, { 'rollcall-service': service });
}

function reflectionOf(service: string | undefined, version: ReflectionOptions['version'] = 'v1') {
  const override = service === undefined ? {} : { 'rollcall-service': service };
  return openReflection(`127.0.0.1:${port}`, { version, metadata: { authorization: `Bearer ${token}`, ...override } });
}

function protocolFrom(answer: PackageDefinition | number): PackageDefinition {
  if (typeof answer === 'number') throw new Error(`Reflection answered with the error ${answer}`);
  return answer;
}

describe('reflection', () => {
  test.each(['v1', 'v1alpha'] as const)('%s, naming no service, is that of the registry', async (version) => {
    using reflection = reflectionOf(undefined, version);
    const services = await reflection.services();
    expect(services).toContain(REGISTRY);
    expect(services).not.toContain(INVENTORY);
    const protocol = protocolFrom(await reflection.protocolOf(REGISTRY));
    expect(Object.keys(serviceDefinition(protocol, REGISTRY))).toEqual(expect.arrayContaining(['Register', 'Watch']));
    expect(await reflection.protocolOf(INVENTORY)).toBe(status.NOT_FOUND);
  });

  test.each(['v1', 'v1alpha'] as const)('%s, naming a service, is that of the service', async (version) => {
    using reflection = reflectionOf('inventory', version);
    const services = await reflection.services();
    expect(services).toContain(INVENTORY);
    expect(services).not.toContain(REGISTRY);
    expect(await reflection.protocolOf(REGISTRY)).toBe(status.NOT_FOUND);
    const protocol = protocolFrom(await reflection.protocolOf(INVENTORY));
    expect(Object.keys(serviceDefinition(protocol, INVENTORY))).toEqual(['Count']);
  });

  test('gives a tool all that it needs for a call', async () => {
    using reflection = reflectionOf('inventory');
    const protocol = protocolFrom(await reflection.protocolOf(INVENTORY));
    expect(await count(protocol, { article: 'spoon' })).toEqual({ article: 'spoon', pieces: 5 });
  });

  test('of a service that has none is UNIMPLEMENTED', async () => {
    using reflection = reflectionOf('bare');
    await expect(reflection.services()).rejects.toMatchObject({ code: status.UNIMPLEMENTED });
  });

  test.each(['nobody', 'silent'])('of %s, who is not there for gRPC, is UNAVAILABLE', async (service) => {
    using reflection = reflectionOf(service);
    await expect(reflection.services()).rejects.toMatchObject({ code: status.UNAVAILABLE });
  });

  test.each([{}, { 'rollcall-service': 'inventory' }])('needs a token: %j', async (metadata) => {
    using reflection = openReflection(`127.0.0.1:${port}`, { metadata });
    await expect(reflection.services()).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
  });
});

describe('health', () => {
  test.each(['', INVENTORY])('of a service that is named is what the service says of "%s"', async (service) => {
    using caller = callerOf('inventory');
    expect(await caller.call(CHECK, { service })).toMatchObject({ code: 0, message: { status: 'SERVING' } });
    inventory.health.set('NOT_SERVING');
    using gateway = createGrpcClient(port);
    try {
      expect(await caller.call(CHECK, { service })).toMatchObject({ code: 0, message: { status: 'NOT_SERVING' } });
      expect(await gateway.call(CHECK, {})).toMatchObject({ code: 0, message: { status: 'SERVING' } });
    } finally {
      inventory.health.set('SERVING');
    }
  });

  test('of what the service does not know is its NOT_FOUND', async () => {
    using caller = callerOf('inventory');
    expect(await caller.call(CHECK, { service: REGISTRY })).toMatchObject({ code: status.NOT_FOUND });
  });

  test('of the registry is asked for by its name', async () => {
    using caller = callerOf('registry');
    expect(await caller.call(CHECK, { service: REGISTRY })).toMatchObject({ message: { status: 'SERVING' } });
    expect(await caller.call(CHECK, { service: INVENTORY })).toMatchObject({ code: status.NOT_FOUND });
  });

  test('watched: each change comes, and then how the service ends the watch', async () => {
    using caller = callerOf('inventory');
    using watch = caller.open(WATCH, { service: INVENTORY });
    expect(await watch.next()).toEqual({ status: 'SERVING' });
    inventory.health.set('NOT_SERVING');
    expect(await watch.next()).toEqual({ status: 'NOT_SERVING' });
    inventory.health.set('SERVING');
    expect(await watch.next()).toEqual({ status: 'SERVING' });
    inventory.health.closeAll();
    expect(await watch.ended).toMatchObject({ code: status.UNAVAILABLE, details: 'The registry is stopping' });
  });

  test('watched of what the service does not know is SERVICE_UNKNOWN, and stays open', async () => {
    using caller = callerOf('inventory');
    using watch = caller.open(WATCH, { service: REGISTRY });
    expect(await watch.next()).toEqual({ status: 'SERVICE_UNKNOWN' });
    const ended = await Promise.race([watch.ended, new Promise((resolve) => setTimeout(resolve, 500))]);
    expect(ended).toBeUndefined();
  });

  test('of a service that has none is UNIMPLEMENTED', async () => {
    using caller = callerOf('bare');
    expect((await caller.call(CHECK, {})).code).toBe(status.UNIMPLEMENTED);
  });

  test('of a service needs a token; of nobody who is there for gRPC it is UNAVAILABLE', async () => {
    using stranger = createGrpcClient(port, undefined, { 'rollcall-service': 'inventory' });
    expect((await stranger.call(CHECK, {})).code).toBe(status.UNAUTHENTICATED);
    await expect(stranger.open(WATCH, {}).next()).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    for (const service of ['nobody', 'silent']) {
      using caller = callerOf(service);
      expect((await caller.call(CHECK, {})).code).toBe(status.UNAVAILABLE);
    }
  });
});

/** Calls the inventory, by what reflection has described, and by its own name. */
async function count(protocol: PackageDefinition, request: object): Promise<unknown> {
  const method = serviceDefinition(protocol, INVENTORY)['Count'];
  if (method === undefined) throw new Error('Reflection describes no Count');
  const { path, requestSerialize, responseDeserialize } = method;
  const client = new Client(`127.0.0.1:${port}`, credentials.createInsecure());
  const metadata = new Metadata();
  metadata.set('authorization', `Bearer ${token}`);
  const answer = Promise.withResolvers<unknown>();
  client.makeUnaryRequest(path, requestSerialize, responseDeserialize, request, metadata, (error, message) =>
    error === null ? answer.resolve(message) : answer.reject(error),
  );
  return answer.promise.finally(() => client.close());
}
