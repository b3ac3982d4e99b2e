import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';
import { createEchoClient, startBackend, statusOf } from './grpc-fixture.ts';

const ATTEMPTS = 7;
const hello = Buffer.from('hello');

let registry: RunningService;
let gateway: RunningService;
let token: string;
let grpcPort = 0;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('grpc-and-rest');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  [grpcPort = 0] = await freePorts(1);
  const settings = { ROLLCALL_GRPC_PORT: String(grpcPort) };
  gateway = stack.use(await startGateway({ namespace, registry: registry.url, settings }));
  token = await tokenOf(
    gateway,
    await createClient(namespace, { id: 'both', tier: 'Premium', scopes: ['registrations:read'] }),
  );
});

afterAll(() => stack.disposeAsync());

async function register(port: number, capabilities: readonly string[], instance = {}): Promise<void> {
  const service = { service_name: 'rollcall.test', service_url: `http://127.0.0.1:${port}`, capabilities, ...instance };
  await registry.call('POST', '/services/register', service);
}

async function get(): Promise<number> {
  const answer = await fetch(`${gateway.url}/api/v1/rollcall.test/x`, {
    headers: { authorization: `Bearer ${token}` },
  });
  return answer.status;
}

async function call(): Promise<number> {
  using client = createEchoClient(grpcPort, { token });
  return (await client.unary(hello)).error?.code ?? status.OK;
}

async function times<T>(work: () => Promise<T>): Promise<Set<T>> {
  const results = new Set<T>();
  for (let count = 0; count < ATTEMPTS; count += 1) results.add(await work());
  return results;
}

test('requests to a service that speaks gRPC alone keep no call from it', async () => {
  await using backend = await startBackend();
  await register(backend.port, ['grpc']);
  await expect.poll(call, { timeout: 10_000 }).toBe(status.OK);
  // Until the breaker of requests is open.
  expect(await times(get)).toEqual(new Set([502, 503]));
  expect(await times(call)).toEqual(new Set([status.OK]));
});

test('calls to a service that speaks REST alone keep no request from it', async () => {
  const server = createServer((_request, response) => response.end('ok'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  stack.defer(() => void server.close());
  await register((server.address() as AddressInfo).port, ['grpc', 'rest']);
  await expect.poll(get, { timeout: 10_000 }).toBe(200);
  expect(await times(call)).toEqual(new Set([status.UNAVAILABLE]));
  expect(await times(get)).toEqual(new Set([200]));
});

test('a stream at an instance that drains goes on, and new calls go to another instance', async () => {
  await registry.call('DELETE', '/services/rollcall.test');
  await using old = await startBackend();
  await using next = await startBackend();
  await register(old.port, ['grpc'], { instance_id: 'old' });
  await expect.poll(call, { timeout: 10_000 }).toBe(status.OK);
  using client = createEchoClient(grpcPort, { token });
  using atOld = createEchoClient(old.port);
  const stream = client.bidi();
  const ended = statusOf(stream);
  const echo = async (text: string) => {
    const answered = once(stream, 'data');
    stream.write(Buffer.from(text));
    return String((await answered)[0]);
  };
  expect(await echo('before')).toBe('before');
  await register(next.port, ['grpc'], { instance_id: 'next' });
  const report = { service_name: 'rollcall.test', instance_id: 'old', status: 'draining' };
  await registry.call('POST', '/webhooks/health', report);
  const callsOfOld = async () => {
    const before = (await atOld.stats()).unary;
    expect(await times(call)).toEqual(new Set([status.OK]));
    return (await atOld.stats()).unary - before;
  };
  await expect.poll(callsOfOld, { timeout: 10_000 }).toBe(0);
  expect(await echo('after')).toBe('after');
  stream.end();
  expect((await ended).code).toBe(status.OK);
});
