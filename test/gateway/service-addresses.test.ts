import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, tokenOf } from './gateway.ts';
import { createEchoClient } from './grpc-fixture.ts';

let registry: RunningService;
let strict: RunningService;
let gateway: RunningService;
let backend: Backend;
let token: string;
let grpcPort = 0;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('service-addresses');
  const { url: databaseUrl } = stack.use(await createDatabase());
  const settings = { ROLLCALL_SERVICE_ADDRESSES: 'cluster' };
  [registry, strict, backend] = await Promise.all([
    startRegistry({ namespace: namespace.name, databaseUrl }),
    startRegistry({ namespace: namespace.name, databaseUrl, settings }),
    startBackend(),
  ]);
  stack.use(registry);
  stack.use(strict);
  stack.use(backend);
  [grpcPort = 0] = await freePorts(1);
  gateway = stack.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: { ...settings, ROLLCALL_GRPC_PORT: String(grpcPort) },
    }),
  );
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tests', scopes: ['registrations:read'] }));
});

afterAll(() => stack.disposeAsync());

function call(path: string): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
}

test.each([
  ['a loopback address', (port: string) => `http://127.0.0.1:${port}`],
  ['one of IPv6', (port: string) => `http://[::1]:${port}`],
  ['one of IPv4 in IPv6', (port: string) => `http://[::ffff:127.0.0.1]:${port}`],
  ['a name of this machine', (port: string) => `http://localhost:${port}`],
  ['the address of metadata', () => 'http://169.254.169.254'],
])('a service at %s is not called, and neither is it paused', async (what, urlOf) => {
  const service_name = what.replaceAll(' ', '-');
  const service_url = urlOf(new URL(backend.url).port);
  await registry.call('POST', '/services/register', { service_name, service_url, capabilities: ['rest', 'grpc'] });
  await vi.waitFor(
    async () => expect(await (await call(`/api/v1/${service_name}/x`)).text()).not.toContain('NOT_FOUND'),
    { timeout: 30_000 },
  );
  const asked = backend.requests.length;
  for (let count = 0; count < 7; count += 1) {
    const answer = await call(`/api/v1/${service_name}/x`);
    const { error } = (await answer.json()) as { error: { code: string } };
    expect([answer.status, error.code]).toEqual([502, 'ADDRESS_REFUSED']);
  }
  expect(backend.requests.length).toBe(asked);
});

async function codeOfCall(): Promise<number | undefined> {
  using client = createEchoClient(grpcPort, { token });
  return (await client.unary(Buffer.from('hello'))).error?.code;
}

test.each(['127.0.0.1', 'localhost'])('a gRPC service at %s is not called', async (host) => {
  const service_url = `http://${host}:${new URL(backend.url).port}`;
  const service = { service_name: 'rollcall.test', service_url, capabilities: ['grpc'] };
  await registry.call('POST', '/services/register', service);
  await expect.poll(codeOfCall, { timeout: 10_000 }).toBe(status.FAILED_PRECONDITION);
});

test('the registry is where the configuration says, on this machine as well', async () => {
  expect((await call('/api/v1/registry/services')).status).toBe(200);
});

test('an address at which no service may be cannot be registered', async () => {
  const service_url = backend.url;
  const answer = await strict.call('POST', '/services/register', { service_name: 'here', service_url });
  expect([answer.status, answer.body]).toEqual([
    400,
    { error: 'Invalid service URL', message: expect.stringMatching(/^service_url must not have an address/) },
  ]);
});
