import { once } from 'node:events';
import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { identityAudience, identityHeaders } from '@rollcall/platform/http/identity.ts';
import { generateKeyPair, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry, startRegistryProcess } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createGrpcClient, type GrpcClient, type GrpcStream } from './grpc-client.ts';

const AUDIENCE = 'rollcall';

let namespace: TestNamespace;
let database: TestDatabase;
let first: RunningService;
let guarded: RunningService;
let ports: readonly [number, number];
let client: GrpcClient;

beforeAll(async () => {
  namespace = await createNamespace('grpc');
  database = await createDatabase();
  const [a = 0, b = 0] = await freePorts(2);
  ports = [a, b];
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [first, guarded] = await Promise.all([
    startRegistry({ ...options, settings: { ROLLCALL_GRPC_PORT: String(a) } }),
    startRegistry({
      ...options,
      settings: {
        ROLLCALL_GRPC_PORT: String(b),
        ROLLCALL_AUTHENTICATION: 'token-review',
        ROLLCALL_TOKEN_AUDIENCE: AUDIENCE,
        ROLLCALL_READS: 'authenticated',
      },
    }),
  ]);
  client = createGrpcClient(a);
});

afterAll(async () => {
  client[Symbol.dispose]();
  await Promise.all([first[Symbol.asyncDispose](), guarded[Symbol.asyncDispose]()]);
  await database[Symbol.asyncDispose]();
});

const shop = { serviceName: 'shop', serviceUrl: 'http://shop', capabilities: ['CAPABILITY_GRPC', 'CAPABILITY_REST'] };

async function tokenOf(account: string): Promise<string> {
  await namespace.kubectl(['create', 'serviceaccount', account]);
  return (await namespace.kubectl(['create', 'token', account, '--audience', AUDIENCE])).trim();
}

test('what comes in by one door is seen through the other', async () => {
  const registered = await client.call('Register', shop);
  expect(registered.message).toMatchObject({ ...shop, ttl: { seconds: 60 } });
  const overHttp = await first.call('GET', '/services/shop');
  expect(overHttp.body).toMatchObject({
    service_id: registered.message?.['serviceId'],
    capabilities: ['grpc', 'rest'],
    service_url: 'http://shop',
  });
  const { message } = await client.call('Get', { serviceName: 'shop' });
  const { registeredAt } = (message ?? {})['service'] as { registeredAt: { seconds: number; nanos: number } };
  const at = new Date(registeredAt.seconds * 1000 + registeredAt.nanos / 1e6);
  expect(at).toEqual(new Date(String(overHttp.body?.['registered_at'])));
  expect((await client.call('Heartbeat', { serviceName: 'shop' })).message).toMatchObject({ ttl: { seconds: 60 } });
  expect((await client.call('Unregister', { serviceName: 'shop' })).code).toBe(status.OK);
  expect((await first.call('GET', '/services/shop')).status).toBe(404);
  expect((await client.call('Get', { serviceName: 'shop' })).code).toBe(status.NOT_FOUND);
});

async function list(request: object) {
  const { message } = await client.call('List', request);
  const { services, nextPageToken } = message as { services: { serviceName: string }[]; nextPageToken: string };
  return { names: services.map(({ serviceName }) => serviceName), nextPageToken };
}

test('lists come by capability and prefix, in pages', async () => {
  for (const name of ['list-a', 'list-b', 'list-c', 'other-d']) {
    const capabilities = name === 'list-b' ? ['CAPABILITY_MCP'] : ['CAPABILITY_REST'];
    const metadata = { team: name };
    await client.call('Register', { serviceName: name, serviceUrl: 'http://a', capabilities, zone: 'a-1', metadata });
  }
  expect(await list({ prefix: 'list-' })).toEqual({ names: ['list-a', 'list-b', 'list-c'], nextPageToken: '' });
  expect((await list({ prefix: 'list-', capability: 'CAPABILITY_MCP' })).names).toEqual(['list-b']);
  expect((await list({ zone: 'a-1', metadata: { team: 'list-c' } })).names).toEqual(['list-c']);
  await client.call('ReportHealth', { serviceName: 'list-a', status: 'draining' });
  expect((await list({ zone: 'a-1', prefix: 'list-', healthy: true })).names).toEqual(['list-b', 'list-c']);
  const page = await list({ prefix: 'list-', pageSize: 2 });
  expect(page.names).toEqual(['list-a', 'list-b']);
  const rest = await list({ prefix: 'list-', pageSize: 2, pageToken: page.nextPageToken });
  expect(rest).toEqual({ names: ['list-c'], nextPageToken: '' });
});

test('what a service reports of itself is kept', async () => {
  await client.call('Register', { ...shop, serviceName: 'reporter' });
  const details = { fields: { version: { stringValue: '1.2.3' }, load: { numberValue: 0.5 } } };
  const timestamp = { seconds: 1_790_000_000, nanos: 0 };
  const reported = await client.call('ReportHealth', {
    serviceName: 'reporter',
    status: 'degraded',
    timestamp,
    details,
  });
  expect(reported.code).toBe(status.OK);
  expect((await client.call('ReportLifecycle', { serviceName: 'reporter', event: 'started' })).code).toBe(status.OK);
  const object = JSON.parse(await namespace.kubectl(['get', 'sreg', 'reporter', '-o', 'json'])) as {
    status: Record<string, unknown>;
  };
  expect(object.status).toMatchObject({
    currentVersion: '1.2.3',
    health: { status: 'degraded' },
    lifecycle: { event: 'started' },
  });
});

describe('what is wrong is reported by its status', () => {
  beforeAll(async () => {
    const manifest = {
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'ServiceRegistration',
      metadata: { name: 'declared' },
      spec: { serviceName: 'declared', url: 'http://declared', capabilities: ['rest'] },
    };
    await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
  });

  const { INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION } = status;

  test.each([
    ['no name', ['Register', { ...shop, serviceName: '' }], [INVALID_ARGUMENT, 'INVALID_SERVICE_NAME']],
    ['a URL that is none', ['Register', { ...shop, serviceUrl: 'shop' }], [INVALID_ARGUMENT, 'INVALID_SERVICE_URL']],
    ['no capability', ['Register', { ...shop, capabilities: [0] }], [INVALID_ARGUMENT, 'INVALID_REQUEST']],
    ['an unknown capability', ['Register', { ...shop, capabilities: [9] }], [INVALID_ARGUMENT, 'INVALID_REQUEST']],
    ['a capability twice', ['Register', { ...shop, capabilities: [1, 1] }], [INVALID_ARGUMENT, 'INVALID_REQUEST']],
    ['a page that is too large', ['List', { pageSize: 10_001 }], [INVALID_ARGUMENT, 'INVALID_REQUEST']],
    ['a heartbeat of nobody', ['Heartbeat', { serviceName: 'nobody' }], [NOT_FOUND, 'SERVICE_NOT_FOUND']],
    ['no such service', ['Unregister', { serviceName: 'nobody' }], [NOT_FOUND, 'SERVICE_NOT_FOUND']],
    [
      'a control character',
      ['ReportHealth', { serviceName: 'shop', status: 'a\nb' }],
      [INVALID_ARGUMENT, 'INVALID_REQUEST'],
    ],
    ['a name that URLs fold', ['Register', { ...shop, serviceName: '..' }], [INVALID_ARGUMENT, 'INVALID_SERVICE_NAME']],
    ['no status', ['ReportHealth', { serviceName: 'shop', status: '' }], [INVALID_ARGUMENT, 'INVALID_REQUEST']],
    [
      'an instant that is none',
      ['ReportHealth', { serviceName: 'shop', status: 'ok', timestamp: { seconds: 1e15 } }],
      [INVALID_ARGUMENT, 'INVALID_REQUEST'],
    ],
    [
      'a name that a manifest has',
      ['Unregister', { serviceName: 'declared' }],
      [FAILED_PRECONDITION, 'MANAGED_ELSEWHERE'],
    ],
  ] as const)('%s', async (_what, [method, request], [code, error]) => {
    const answer = await client.call(method, request);
    expect([answer.code, answer.trailers.get('rollcall-error')]).toEqual([code, [error]]);
  });

  test('a message over the limit', async () => {
    const answer = await client.call('Register', { ...shop, serviceUrl: 'x'.repeat(300_000) });
    expect(answer.code).toBe(status.RESOURCE_EXHAUSTED);
  });

  test('details over the limit', async () => {
    const details = { fields: { text: { stringValue: 'x'.repeat(20_000) } } };
    const answer = await client.call('ReportHealth', { serviceName: 'shop', status: 'ok', details });
    expect(answer.code).toBe(status.INVALID_ARGUMENT);
  });
});

const typeOf = async (stream: GrpcStream) => (await stream.next())['type'];

test('Watch begins with everything, reports each change, and goes on from a cursor', async () => {
  await client.call('Register', { ...shop, serviceName: 'watched' });
  // A stream that begins before the API server has reported it tells of it later.
  await expect.poll(async () => JSON.stringify(await client.call('List', {}))).toContain('"watched"');
  let cursor: unknown;
  {
    using stream = client.open('Watch', {});
    const names: unknown[] = [];
    let message = await stream.next();
    for (; message['type'] === 'TYPE_ADDED'; message = await stream.next()) {
      names.push((message['service'] as Record<string, unknown>)['serviceName']);
    }
    expect(names).toContain('watched');
    expect(message['type']).toBe('TYPE_SYNCED');
    cursor = message['cursor'];
  }
  await client.call('Register', { ...shop, serviceName: 'watched', serviceUrl: 'http://b' });
  using resumed = client.open('Watch', { cursor });
  expect(await resumed.next()).toMatchObject({ type: 'TYPE_MODIFIED', service: { serviceUrl: 'http://b' } });
  await client.call('Unregister', { serviceName: 'watched' });
  expect(await resumed.next()).toMatchObject({ type: 'TYPE_REMOVED', service: { serviceName: 'watched' } });
  for (const old of ['1', 'nonsense']) {
    using anew = client.open('Watch', { cursor: old });
    expect(await typeOf(anew)).toBe('TYPE_RESET');
  }
});

const asItIs = (bytes: Buffer) => bytes;

describe('authentication', () => {
  test('is that of the HTTP API, names belong to who registered them', async () => {
    const [alice, bob] = [await tokenOf('alice'), await tokenOf('bob')];
    using nobody = createGrpcClient(ports[1]);
    using asAlice = createGrpcClient(ports[1], alice);
    using asBob = createGrpcClient(ports[1], bob);
    for (const method of ['Register', 'Unregister', 'Get', 'List', 'Heartbeat', 'ReportHealth', 'ReportLifecycle']) {
      expect([method, (await nobody.call(method, {})).code]).toEqual([method, status.UNAUTHENTICATED]);
    }
    using stream = nobody.open('Watch', {});
    await expect(stream.next()).rejects.toMatchObject({ code: status.UNAUTHENTICATED });
    const owned = { ...shop, serviceName: 'owned' };
    expect((await asAlice.call('Register', owned)).code).toBe(status.OK);
    for (const method of ['Register', 'Heartbeat', 'Unregister']) {
      expect((await asBob.call(method, owned)).code).toBe(status.PERMISSION_DENIED);
    }
    expect((await asBob.call('Get', owned)).code).toBe(status.OK);
    expect((await asAlice.call('Heartbeat', owned)).code).toBe(status.OK);
  });

  test('is asked of writers alone where reads are open', async () => {
    const [port = 0] = await freePorts(1);
    await using open = await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_GRPC_PORT: String(port), ROLLCALL_AUTHENTICATION: 'token-review' },
    });
    expect(open.url).toMatch(/^http/);
    using nobody = createGrpcClient(port);
    for (const method of ['Register', 'Unregister', 'Heartbeat', 'ReportHealth', 'ReportLifecycle']) {
      expect([method, (await nobody.call(method, {})).code]).toEqual([method, status.UNAUTHENTICATED]);
    }
    expect((await nobody.call('List', {})).code).toBe(status.OK);
    expect((await nobody.call('Get', { serviceName: 'nobody' })).code).toBe(status.NOT_FOUND);
    using stream = nobody.open('Watch', {});
    expect(await stream.next()).toHaveProperty('type');
    using liar = createGrpcClient(port, 'no-token');
    expect((await liar.call('List', {})).code).toBe(status.UNAUTHENTICATED);
  });

  test('health and reflection are open', async () => {
    using nobody = createGrpcClient(ports[1]);
    for (const service of ['', 'rollcall.registry.v1.Registry']) {
      const { message } = await nobody.call('grpc.health.v1.Health/Check', { service });
      expect(message).toEqual({ status: 'SERVING' });
    }
    expect((await nobody.call('grpc.health.v1.Health/Check', { service: 'other' })).code).toBe(status.NOT_FOUND);
    const path = '/grpc.reflection.v1.ServerReflection/ServerReflectionInfo';
    const call = nobody.client.makeBidiStreamRequest(path, asItIs, asItIs);
    // ServerReflectionRequest { list_services: "*" }
    call.write(Buffer.from([0x3a, 1, 0x2a]));
    const [listed] = (await once(call, 'data')) as [Buffer];
    call.end();
    expect(listed.toString('latin1')).toContain('rollcall.registry.v1.Registry');
  });
});

test('a replica that stops says so, ends its watches with UNAVAILABLE, and ends', async () => {
  const [port = 0] = await freePorts(1);
  const stopping = await startRegistryProcess({
    namespace: namespace.name,
    databaseUrl: database.url,
    settings: { ROLLCALL_GRPC_PORT: String(port), ROLLCALL_DRAIN_SECONDS: '1' },
  });
  using visitor = createGrpcClient(port);
  using health = visitor.open('grpc.health.v1.Health/Watch', {});
  expect(await health.next()).toEqual({ status: 'SERVING' });
  using watch = visitor.open('Watch', {});
  await watch.next();
  const stopped = stopping.process.stop({ graceMs: 20_000 });
  expect(await health.next()).toEqual({ status: 'NOT_SERVING' });
  const { code, metadata } = await watch.ended;
  expect(code).toBe(status.UNAVAILABLE);
  expect(metadata.get('grpc-retry-pushback-ms')).toEqual(['1000']);
  await stopped;
  expect((await stopping.process.exited).code).toBe(0);
});

/** Signed by nobody whom the registry knows. */
async function identityFor(service: string): Promise<Record<string, string>> {
  const { privateKey } = await generateKeyPair('ES256');
  const claims = new SignJWT({ scope: '*' })
    .setProtectedHeader({ alg: 'ES256' })
    .setAudience(identityAudience(service));
  return { [identityHeaders.token]: await claims.sign(privateKey) };
}

test('a call that the gateway admitted for another service is refused, whether credentials are asked for or not', async () => {
  for (const entries of [await identityFor('alias'), { [identityHeaders.token]: 'x' }]) {
    using other = createGrpcClient(ports[0], undefined, entries);
    expect(await other.call('Get', { serviceName: 'x' })).toMatchObject({ code: status.PERMISSION_DENIED });
    using watch = other.open('Watch', {});
    await expect(watch.next()).rejects.toMatchObject({ code: status.PERMISSION_DENIED });
  }
  using own = createGrpcClient(ports[0], undefined, await identityFor('registry'));
  expect(await own.call('Get', { serviceName: 'x' })).toMatchObject({ code: status.NOT_FOUND });
});
