import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openEventStream } from '../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createGrpcClient, type GrpcClient } from './grpc-client.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let first: RunningService;
let second: RunningService;
let grpc: GrpcClient;

beforeAll(async () => {
  namespace = await createNamespace('instances');
  database = await createDatabase();
  const [port = 0] = await freePorts(1);
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [first, second] = await Promise.all([
    startRegistry({ ...options, settings: { ROLLCALL_GRPC_PORT: String(port) } }),
    startRegistry(options),
  ]);
  grpc = createGrpcClient(port);
});

afterAll(async () => {
  grpc[Symbol.dispose]();
  await Promise.all([first[Symbol.asyncDispose](), second[Symbol.asyncDispose]()]);
  await database[Symbol.asyncDispose]();
});

interface Instance {
  readonly service_name: string;
  /** Undefined: none is sent. */
  readonly instance_id?: string;
}

async function register(at: RunningService, instance: Instance, more: object = {}): Promise<Record<string, unknown>> {
  const service_url = `http://${instance.instance_id ?? 'none'}.${instance.service_name}`;
  const { status, body } = await at.call('POST', '/services/register', { ...instance, service_url, ...more });
  expect({ status, body }).toMatchObject({ status: 200 });
  return body ?? {};
}

const instancesOf = async (at: RunningService, name: string) => {
  const { status, body } = await at.call('GET', `/services/${name}/instances`);
  if (status !== 200) return status;
  const { instances } = body as { instances: { instance_id?: string }[] };
  return instances.map(({ instance_id = '' }) => instance_id);
};

const urlOf = async (at: RunningService, name: string) =>
  (await at.call('GET', `/services/${name}`)).body?.['service_url'];

test('a name is there as long as one of its instances is, with one id', async () => {
  const a = await register(first, { service_name: 'shop', instance_id: 'a' });
  const b = await register(second, { service_name: 'shop', instance_id: 'b' });
  expect(a).toMatchObject({ instance_id: 'a', service_url: 'http://a.shop', ttl: 60 });
  expect(b).toMatchObject({ instance_id: 'b', service_url: 'http://b.shop', service_id: a['service_id'] });
  await expect.poll(() => instancesOf(first, 'shop')).toEqual(['a', 'b']);
  expect(await urlOf(first, 'shop')).toBe('http://a.shop');
  expect((await first.call('GET', '/services')).body).toMatchObject({ total: 1 });

  expect((await first.call('DELETE', '/services/shop/instances/a')).status).toBe(200);
  expect((await first.call('GET', '/services/shop/instances/a')).status).toBe(404);
  const left = await first.call('GET', '/services/shop');
  expect(left.body).toMatchObject({ service_url: 'http://b.shop', service_id: a['service_id'] });

  expect((await first.call('DELETE', '/services/shop?instance_id=b')).status).toBe(200);
  expect((await first.call('GET', '/services/shop')).status).toBe(404);
  expect(await instancesOf(first, 'shop')).toBe(404);
  const again = await register(first, { service_name: 'shop', instance_id: 'a' });
  expect(again['service_id']).not.toBe(a['service_id']);
});

test('heartbeats and reports are those of one instance', async () => {
  const service_name = 'beating';
  for (const instance_id of ['a', 'b']) await register(first, { service_name, instance_id });
  const beat = (path: string) => first.call('POST', `/services/${service_name}/heartbeat${path}`);
  expect((await beat('?instance_id=b')).status).toBe(200);
  expect((await beat('?instance_id=c')).status).toBe(400);
  const beatOf = (body: object) => first.call('POST', `/services/${service_name}/heartbeat`, body);
  expect((await beatOf({ instance_id: 'b' })).status).toBe(200);
  expect((await beatOf({ instance_id: 'c' })).status).toBe(400);
  expect(await beatOf({ instance_id: 5 })).toMatchObject({ status: 400, body: { error: 'Invalid instance id' } });
  const hint = "All instances of 'beating' have ids: name one by instance_id";
  expect(await beat('')).toMatchObject({ status: 400, body: { error: 'Service not found', message: hint } });
  expect(await first.call('DELETE', '/services/beating')).toMatchObject({ status: 404, body: { message: hint } });
  const unnamed = await first.call('POST', '/webhooks/health', { service_name, status: 'healthy' });
  expect(unnamed).toMatchObject({ status: 404, body: { message: expect.stringContaining('name one by instance_id') } });
  const health = { service_name, instance_id: 'a', status: 'draining', details: { version: '2' } };
  expect((await first.call('POST', '/webhooks/health', health)).status).toBe(200);
  const a = await first.call('GET', `/services/${service_name}/instances/a`);
  expect(a.body).toMatchObject({ instance_id: 'a', health: 'draining', version: '2' });
  // What drains gets no new requests while another one is there.
  expect(await urlOf(first, service_name)).toBe('http://b.beating');
  await first.call('POST', '/webhooks/health', { ...health, status: 'healthy' });
  expect(await urlOf(first, service_name)).toBe('http://a.beating');
});

test('a report that names no instance is of the only one', async () => {
  const service_name = 'sidecar';
  await register(first, { service_name, instance_id: 'pod-1' });
  const report = { service_name, status: 'healthy', details: { version: '3' } };
  expect((await first.call('POST', '/webhooks/health', report)).status).toBe(200);
  const { body } = await first.call('GET', `/services/${service_name}/instances/pod-1`);
  expect(body).toMatchObject({ health: 'healthy', version: '3' });
});

test('a report never replaces one that was made after it, at whichever replica', async () => {
  const service_name = 'reported';
  await register(first, { service_name, instance_id: 'a' });
  const report = (at: RunningService, status: string, second: number) =>
    at.call('POST', '/webhooks/health', {
      service_name,
      instance_id: 'a',
      status,
      timestamp: `2026-11-26T10:00:${second}Z`,
      details: { version: status },
    });
  const statuses = [30, 10, 50, 20, 40].map((at, index) => report(index % 2 === 0 ? first : second, `at-${at}`, at));
  for (const { status } of await Promise.all(statuses)) expect(status).toBe(200);
  expect((await report(second, 'at-45', 45)).status).toBe(200);
  for (const at of [first, second]) {
    const health = async () => (await at.call('GET', `/services/${service_name}/instances/a`)).body?.['health'];
    await expect.poll(health).toBe('at-50');
  }
});

test('a report from the future counts as of now, and keeps no later one out', async () => {
  const service_name = 'ahead';
  await register(first, { service_name, instance_id: 'a' });
  const report = (status: string, timestamp?: string) =>
    first.call('POST', '/webhooks/health', { service_name, instance_id: 'a', status, ...(timestamp && { timestamp }) });
  await report('unhealthy', '2999-01-01T00:00:00Z');
  expect((await first.call('GET', `/services/${service_name}/instances/a`)).body?.['healthy']).toBe(false);
  await report('healthy');
  expect((await first.call('GET', `/services/${service_name}/instances/a`)).body?.['healthy']).toBe(true);
});

test('the ETag of a list of instances stays through heartbeats, and changes with what they say', async () => {
  const service_name = 'tagged';
  await register(first, { service_name, instance_id: 'a' });
  const url = `${first.url}/api/v1/services/${service_name}/instances`;
  const tag = async () => (await fetch(url)).headers.get('etag') ?? '';
  await expect.poll(async () => (await tag()) === (await tag())).toBe(true);
  const known = await tag();
  await first.call('POST', `/services/${service_name}/heartbeat?instance_id=a`);
  expect((await fetch(url, { headers: { 'if-none-match': known } })).status).toBe(304);
  await first.call('POST', '/webhooks/health', { service_name, instance_id: 'a', status: 'draining' });
  expect((await fetch(url, { headers: { 'if-none-match': known } })).status).toBe(200);
});

const watchUrl = (query: string) => `${first.url}/api/v1/services/watch${query}`;

const listed = async (query: string) => {
  const { status, body } = await first.call('GET', `/services?prefix=told&${query}`);
  if (status !== 200) return status;
  const { services } = body as { services: { service_url: string }[] };
  return services.map(({ service_url }) => service_url.replace('http://', ''));
};

/** Each would lead elsewhere, or to what the caller did not mean. */
const NO_PATHS = [
  'graphql',
  '//evil.example/graphql',
  '///graphql',
  'http://evil.example/graphql',
  '\\\\evil.example',
  '/\\evil.example',
  '/graphql?a=b',
  '/graphql#a',
  '/a/../graphql',
  '/./graphql',
  '/%2e%2E/graphql',
  '/graph ql',
  '/graphql\r\nHost: evil.example',
  '/graphql\0',
  '/%zz',
];

describe('what an instance says of itself', () => {
  const service_name = 'told';
  const blue = { metadata: { color: 'blue', 'a b': 'c=d' }, zone: 'eu-1', weight: 300, graphql_path: '/graphql' };

  beforeAll(async () => {
    await register(first, { service_name, instance_id: 'blue' }, { ...blue, capabilities: ['graphql'] });
    await register(first, { service_name, instance_id: 'green' }, { metadata: { color: 'green' }, zone: 'eu-2' });
    await register(first, { service_name: 'told-not' });
    const report = { service_name, instance_id: 'blue', status: 'degraded' };
    await first.call('POST', '/webhooks/health', report);
  });

  test('is kept, shown with it, and replaced when it registers anew', async () => {
    const shown = await first.call('GET', `/services/${service_name}/instances/blue`);
    expect(shown.body).toMatchObject(blue);
    const other = { metadata: { size: 'xl' }, zone: 'eu-3' };
    await register(second, { service_name: 'retold', instance_id: 'a' }, blue);
    await register(second, { service_name: 'retold', instance_id: 'a' }, other);
    const { body } = await second.call('GET', '/services/retold/instances/a');
    expect(body).toMatchObject(other);
    expect(body).not.toHaveProperty('weight');
    expect(Object.keys(body?.['metadata'] as object)).toEqual(['size']);
    await register(second, { service_name: 'retold', instance_id: 'a' });
    const bare = await second.call('GET', '/services/retold/instances/a');
    expect(bare.body).not.toHaveProperty('metadata');
  });

  test.each([
    ['', ['green.told', 'none.told-not']],
    ['healthy=true', ['green.told', 'none.told-not']],
    ['metadata.color=blue', ['blue.told']],
    ['metadata.color=blue&healthy=true', []],
    ['metadata.color=green&zone=eu-2', ['green.told']],
    ['metadata.color=green&zone=eu-1', []],
    ['metadata.a+b=c%3Dd', ['blue.told']],
    ['zone=eu-1', ['blue.told']],
    ['capability=graphql', ['blue.told']],
    ['metadata.none=', []],
    ['healthy=maybe', 400],
    ['metadata=blue', 400],
    ['metadata.=blue', 400],
    ['metadata[color]=blue', 400],
    ['metdata.color=blue', 400],
    ['Metadata.color=blue', 400],
    ['colour=blue', ['green.told', 'none.told-not']],
  ])('services are found by it: %s', async (query, expected) => {
    expect(await listed(query)).toEqual(expected);
  });

  test.each<[string, object]>([
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`k${index}`, ''])) }],
    ['metadata', { metadata: Object.fromEntries(Array.from({ length: 5 }, (_, index) => [index, 'x'.repeat(1000)])) }],
    ['metadata', { metadata: { 'a\u0007': 'b' } }],
    ['metadata', { metadata: { '': 'b' } }],
    ['metadata', { metadata: { a: 1 } }],
    ['zone', { zone: 'eu 1' }],
    ['weight', { weight: 0 }],
    ['weight', { weight: 1.5 }],
    ["graphql_path must be an absolute path without a query, '//' at its beginning", { graphql_path: '/../a' }],
    ...NO_PATHS.map((graphql_path): [string, object] => ['graphql_path must be an absolute path', { graphql_path }]),
  ])('%s is refused where it is not as it may be: %j', async (named, facts) => {
    const body = { service_name: 'refused', service_url: 'http://refused', instance_id: 'a', ...facts };
    const answer = await first.call('POST', '/services/register', body);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining(named) } });
  });

  test.each(NO_PATHS)('gRPC refuses the path %j, too', async (graphqlPath) => {
    const request = { serviceName: 'refused', serviceUrl: 'http://refused', instanceId: 'a', graphqlPath };
    const { code, details } = await grpc.call('Register', request);
    expect([code, details]).toEqual([status.INVALID_ARGUMENT, expect.stringContaining('graphql_path')]);
  });

  test('gRPC has it, too', async () => {
    const { message } = await grpc.call('ListInstances', { serviceName: service_name });
    const { graphql_path: graphqlPath, ...rest } = blue;
    expect(message).toMatchObject({
      instances: [{ instanceId: 'blue', ...rest, graphqlPath }, { instanceId: 'green' }],
    });
    const facts = { metadata: { by: 'grpc' }, zone: 'z', weight: 7, graphqlPath: '/g' };
    await grpc.call('Register', { serviceName: 'told-by-grpc', serviceUrl: 'http://a', instanceId: 'a', ...facts });
    const { body } = await first.call('GET', '/services/told-by-grpc/instances/a');
    expect(body).toMatchObject({ metadata: { by: 'grpc' }, zone: 'z', weight: 7, graphql_path: '/g' });
  });
});

describe('a declared check', () => {
  const http = { type: 'http', path: '/health', interval_seconds: 5 };
  const whole = { ...http, timeout_seconds: 2, failure_threshold: 3, success_threshold: 2 };

  test('is kept as it is, with its defaults, until another one or none is declared', async () => {
    const instance = { service_name: 'checked', instance_id: 'a' };
    await register(first, instance, { check: http });
    const shown = async () => (await first.call('GET', '/services/checked/instances/a')).body?.['check'];
    expect(await shown()).toEqual(whole);
    const generation = ['get', 'sreg', 'checked.i.a', '-o', 'jsonpath={.metadata.generation}'];
    const before = await namespace.kubectl(generation);
    await register(first, instance, { check: whole });
    expect(await namespace.kubectl(generation)).toBe(before);
    await register(first, instance, { check: { type: 'grpc', service: 'acme.Shop' } });
    expect(await shown()).toMatchObject({ type: 'grpc', service: 'acme.Shop', interval_seconds: 10 });
    expect(await shown()).not.toHaveProperty('path');
    await register(first, instance);
    expect(await shown()).toBeUndefined();
  });

  test('that fails takes the instance out of the healthy ones, and streams tell', async () => {
    const service_name = 'failing';
    for (const instance_id of ['a', 'b']) await register(first, { service_name, instance_id }, { check: http });
    await using instances = await openEventStream(watchUrl('?instances=true'));
    using watch = grpc.open('Watch', { instances: true });
    await instances.until('synced');
    for (let message = await watch.next(); message['type'] !== 'TYPE_SYNCED'; message = await watch.next());
    const status = { check: { status: 'Failing', since: '2026-11-26T10:00:00Z', message: 'it answered 503' } };
    const patch = ['patch', 'sreg', 'failing.i.a', '--subresource=status', '--type=merge', '-p'];
    await namespace.kubectl([...patch, JSON.stringify({ status })]);
    const result = { status: 'failing', since: '2026-11-26T10:00:00.000+00:00', message: 'it answered 503' };
    const failed = { instance_id: 'a', healthy: false, check: { ...whole, ...result } };
    expect(await instances.next()).toMatchObject({ type: 'modified', data: failed });
    const checkResult = { status: 'STATUS_FAILING', message: 'it answered 503' };
    const modified = { healthy: false, check: { type: 'TYPE_HTTP', path: '/health' }, checkResult };
    expect(await watch.next()).toMatchObject({ type: 'TYPE_MODIFIED', instance: { instanceId: 'a', ...modified } });
    const healthy = await first.call('GET', '/services?prefix=failing&healthy=true');
    expect(healthy.body).toMatchObject({ services: [{ service_url: 'http://b.failing' }] });
    expect(await urlOf(first, service_name)).toBe('http://b.failing');
  });

  test.each<[string, object]>([
    ['check.path', { type: 'tcp', path: '/' }],
    ['check.path', { type: 'http', path: '@evil.example' }],
    ["check.path must be an absolute path without '//' at its beginning", { type: 'http', path: '/%2e%2E/a' }],
    ['check.path must be an absolute path', { type: 'http', path: '//evil.example/a' }],
    ['check.service', { type: 'http', service: 'a' }],
    ['check.interval_seconds', { type: 'tcp', interval_seconds: 1 }],
    ['check.timeout_seconds', { type: 'tcp', timeout_seconds: 61 }],
    ['check.failure_threshold', { type: 'tcp', failure_threshold: 0 }],
    ['type', { type: 'exec' }],
  ])('is refused where %s is not as it may be: %j', async (named, check) => {
    const body = { service_name: 'refused', service_url: 'http://refused', instance_id: 'a', check };
    const answer = await first.call('POST', '/services/register', body);
    expect(answer).toMatchObject({ status: 400, body: { message: expect.stringContaining(named) } });
  });

  test('can be declared over gRPC', async () => {
    const service = { serviceName: 'checked-by-grpc', serviceUrl: 'http://a' };
    await grpc.call('Register', { ...service, check: { type: 'TYPE_GRPC', service: 'acme.Shop' } });
    const { body } = await first.call('GET', '/services/checked-by-grpc/instances');
    expect(body).toMatchObject({ instances: [{ healthy: true, check: { type: 'grpc', service: 'acme.Shop' } }] });
  });
});

test('the header names an instance where nothing else does', async () => {
  const headers = { 'x-instance-id': 'by-header', 'content-type': 'application/json' };
  const post = (path: string, body?: object) =>
    fetch(`${first.url}/api/v1${path}`, {
      method: 'POST',
      headers: body === undefined ? { 'x-instance-id': 'by-header' } : headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const body = { service_name: 'headed', service_url: 'http://headed' };
  expect(await (await post('/services/register', body)).json()).toMatchObject({ instance_id: 'by-header' });
  expect((await post('/services/headed/heartbeat')).status).toBe(200);
  const other = await post('/services/register', { ...body, instance_id: 'other' });
  expect(await other.json()).toMatchObject({ instance_id: 'other' });
  const twice = await first.call('POST', '/services/headed/heartbeat?instance_id=by-header&instance_id=other');
  expect(twice).toMatchObject({ status: 400, body: { error: 'Invalid instance id' } });
  const bad = await first.call('POST', '/services/register', { ...body, instance_id: 'A_b' });
  expect(bad).toMatchObject({ status: 400, body: { error: 'Invalid instance id' } });
});

test('a client that knows no instances is one of its own, beside others', async () => {
  const service_name = 'mixed';
  const old = await register(first, { service_name });
  expect(old).not.toHaveProperty('instance_id');
  const named = await register(first, { service_name, instance_id: 'a' });
  expect(named['service_id']).toBe(old['service_id']);
  expect(await instancesOf(first, service_name)).toEqual(['', 'a']);
  expect((await first.call('POST', `/services/${service_name}/heartbeat`)).status).toBe(200);
  expect((await first.call('DELETE', `/services/${service_name}`)).status).toBe(200);
  expect((await first.call('DELETE', `/services/${service_name}`)).status).toBe(404);
  expect(await urlOf(first, service_name)).toBe('http://a.mixed');
});

test('two programs with one id are one instance: the later one counts', async () => {
  const instance = { service_name: 'twins', instance_id: 'a' };
  const one = await register(first, instance);
  const other = await register(second, instance, { service_url: 'http://other' });
  expect(other['service_id']).toBe(one['service_id']);
  await expect.poll(() => urlOf(first, 'twins')).toBe('http://other');
  expect(await instancesOf(first, 'twins')).toEqual(['a']);
  // Neither heartbeat says which of them it is.
  for (const at of [first, second]) {
    expect((await at.call('POST', '/services/twins/heartbeat?instance_id=a')).status).toBe(200);
  }
  expect(await urlOf(second, 'twins')).toBe('http://other');
});

test('however many begin at once, at whichever replica, they have one id', async () => {
  const names = Array.from({ length: 10 }, (_, index) => `at-once-${index}`);
  await Promise.all(
    names.map(async (service_name) => {
      const begun = Array.from({ length: 6 }, (_, index) =>
        register(index % 2 === 0 ? first : second, { service_name, instance_id: `i-${index}` }),
      );
      const ids = new Set((await Promise.all(begun)).map((body) => body['service_id']));
      expect(ids.size).toBe(1);
      for (const at of [first, second]) {
        await expect.poll(async () => (await instancesOf(at, service_name)) as unknown[]).toHaveLength(6);
        expect([...ids]).toEqual([(await at.call('GET', `/services/${service_name}`)).body?.['service_id']]);
      }
    }),
  );
});

test('what was registered at another replica a moment ago is found', async () => {
  for (let round = 0; round < 20; round += 1) {
    const service_name = `found-${round}`;
    await register(first, { service_name, instance_id: 'a' });
    expect((await second.call('GET', `/services/${service_name}`)).status).toBe(200);
    expect((await second.call('POST', `/services/${service_name}/heartbeat?instance_id=a`)).status).toBe(200);
  }
});

test('the end of an instance says when it was last heard', async () => {
  const service_name = 'last-heard';
  await register(first, { service_name, instance_id: 'a' });
  expect((await first.call('POST', `/services/${service_name}/heartbeat?instance_id=a`)).status).toBe(200);
  const { body } = await first.call('GET', `/services/${service_name}/instances/a`);
  await using stream = await openEventStream(watchUrl('?instances=true'));
  await stream.until('synced');
  await first.call('DELETE', `/services/${service_name}/instances/a`);
  const { last_heartbeat } = body ?? {};
  expect((await stream.until('removed')).at(-1)?.data).toMatchObject({ service_name, last_heartbeat });
});

test('streams tell of names, and of instances to who asks', async () => {
  await using names = await openEventStream(watchUrl(''));
  await using instances = await openEventStream(watchUrl('?instances=true'));
  await Promise.all([names.until('synced'), instances.until('synced')]);
  const service_name = 'streamed';
  for (const instance_id of ['a', 'b']) await register(first, { service_name, instance_id });
  await first.call('DELETE', `/services/${service_name}/instances/a`);
  await first.call('DELETE', `/services/${service_name}/instances/b`);
  const told = async (stream: typeof names, count: number) => {
    const events: unknown[] = [];
    while (events.length < count) {
      const { type, data } = await stream.next();
      if (data['service_name'] === service_name) events.push([type, data['instance_id'], data['service_url']]);
    }
    return events;
  };
  expect(await told(names, 3)).toEqual([
    ['added', undefined, 'http://a.streamed'],
    ['modified', undefined, 'http://b.streamed'],
    ['removed', undefined, 'http://b.streamed'],
  ]);
  expect(await told(instances, 4)).toEqual([
    ['added', 'a', 'http://a.streamed'],
    ['added', 'b', 'http://b.streamed'],
    ['removed', 'a', 'http://a.streamed'],
    ['removed', 'b', 'http://b.streamed'],
  ]);
});

test('gRPC has all of it', async () => {
  const shop = { serviceName: 'by-grpc', serviceUrl: 'http://by-grpc' };
  using watch = grpc.open('Watch', { instances: true });
  for (let message = await watch.next(); message['type'] !== 'TYPE_SYNCED'; message = await watch.next());
  const registered = await grpc.call('Register', { ...shop, instanceId: 'a' });
  expect(registered.message).toMatchObject({ serviceName: 'by-grpc', instanceId: 'a' });
  await grpc.call('Register', { ...shop, instanceId: 'b' });
  await grpc.call('ReportHealth', { serviceName: 'by-grpc', instanceId: 'b', status: 'draining' });
  expect((await grpc.call('Heartbeat', { serviceName: 'by-grpc', instanceId: 'b' })).message).toMatchObject({
    ttl: { seconds: 60 },
  });
  const { message } = await grpc.call('ListInstances', { serviceName: 'by-grpc' });
  expect(message).toMatchObject({
    instances: [
      { instanceId: 'a', service: { serviceName: 'by-grpc' }, health: '' },
      { instanceId: 'b', service: { serviceId: registered.message?.['serviceId'] }, health: 'draining' },
    ],
  });
  await grpc.call('Unregister', { serviceName: 'by-grpc', instanceId: 'a' });
  const types: unknown[] = [];
  while (types.length < 4) {
    const { type, instance } = await watch.next();
    const { instanceId, service } = instance as { instanceId: string; service: { serviceName: string } };
    if (service.serviceName === 'by-grpc') types.push([type, instanceId]);
  }
  expect(types).toEqual([
    ['TYPE_ADDED', 'a'],
    ['TYPE_ADDED', 'b'],
    ['TYPE_MODIFIED', 'b'],
    ['TYPE_REMOVED', 'a'],
  ]);
});

test('kubectl shows one object for each, and finds them by the name of the service', async () => {
  for (const instance_id of ['x', 'y']) await register(first, { service_name: 'objects', instance_id });
  await register(first, { service_name: 'Ob_jects', instance_id: 'x' });
  const byLabel = await namespace.kubectl(['get', 'sreg', '-l', 'rollcall.dev/service=objects', '-o', 'name']);
  expect(byLabel.trim().split('\n')).toEqual(
    ['x', 'y'].map((id) => `serviceregistration.rollcall.dev/objects.i.${id}`),
  );
  const byField = ['get', 'sreg', '--field-selector', 'spec.serviceName=objects,spec.instanceId=y', '-o', 'name'];
  expect((await namespace.kubectl(byField)).trim()).toBe('serviceregistration.rollcall.dev/objects.i.y');
  const [header, ...rows] = (await namespace.kubectl(['get', 'sreg'])).trim().split('\n');
  expect(header).toMatch(/NAME +SERVICE +INSTANCE +URL +PHASE +HEALTH +CHECK +SINCE +VERSION +AGE/);
  expect(rows.join('\n')).toMatch(/objects\.i\.x +objects +x +http:\/\/x\.objects/);
});

test('those of an imported Service are declared elsewhere, and ail while their endpoints do', async () => {
  const service_name = 'imported';
  const key = '/services/imported/instances/a';
  const apiVersion = 'rollcall.dev/v1alpha1';
  const objects = ['a', 'b'].map((instanceId) => ({
    apiVersion,
    kind: 'ServiceRegistration',
    metadata: { name: `imported.i.${instanceId}` },
    spec: { serviceName: service_name, instanceId, url: `http://${instanceId}.imported`, source: 'KubernetesService' },
  }));
  const list = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects });
  await namespace.kubectl(['create', '-f', '-'], { stdin: list });
  await expect.poll(() => instancesOf(first, service_name)).toHaveLength(2);
  const refused = {
    status: 400,
    body: { message: expect.stringMatching(/declared by an annotated Kubernetes Service/) },
  };
  expect(await first.call('DELETE', key)).toMatchObject(refused);
  const joining = { service_name, service_url: 'http://c.imported', instance_id: 'c' };
  expect(await first.call('POST', '/services/register', joining)).toMatchObject(refused);
  const check = { status: 'Failing', since: '2026-11-26T10:00:00Z', message: 'The endpoint is not ready' };
  const patch = ['patch', 'sreg', 'imported.i.a', '--subresource=status', '--type=merge', '-p'];
  await namespace.kubectl([...patch, JSON.stringify({ status: { check } })]);
  await expect.poll(async () => (await first.call('GET', key)).body).toMatchObject({ healthy: false });
  expect(await urlOf(first, service_name)).toBe('http://b.imported');
});
