import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createGrpcClient } from '../registry/grpc-client.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { createRedis } from '../support/redis.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startBackend, startGateway, startGatewayProcess, tokenOf } from './gateway.ts';
import { connect } from './websocket-client.ts';

let namespace: TestNamespace;
let registry: RunningService;
let gateways: RunningService[];
let grpcPort: number;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('doors');
  const database = stack.use(await createDatabase());
  const redis = stack.use(await createRedis());
  const [registryGrpc = 0, first = 0, second = 0] = await freePorts(3);
  grpcPort = first;
  registry = stack.use(
    await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_GRPC_PORT: String(registryGrpc) },
    }),
  );
  gateways = await Promise.all(
    [first, second].map((port) =>
      startGateway({
        namespace,
        registry: registry.url,
        settings: {
          ROLLCALL_GRPC_PORT: String(port),
          ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpc}`,
          ROLLCALL_REDIS_URL: redis.url,
          // The machine may be busy: what is to be seen is that both count in Redis.
          ROLLCALL_REDIS_TIMEOUT_MS: '5000',
        },
      }),
    ),
  );
  for (const gateway of gateways) stack.use(gateway);
});

afterAll(() => stack.disposeAsync());

function gatewayAt(index: number): RunningService {
  const gateway = gateways[index % gateways.length];
  if (gateway === undefined) throw new Error('No gateway has been started');
  return gateway;
}

test('two replicas and three doors let a caller have its limit together, and no more', async () => {
  const token = await tokenOf(
    gatewayAt(0),
    await createClient(namespace, { id: 'free', tier: 'Free', scopes: ['registrations:read'] }),
  );
  await vi.waitFor(async () => expect(await statusOf(gatewayAt(1), token)).not.toBe(401), { timeout: 10_000 });
  const statuses = await Promise.all(Array.from({ length: 30 }, (_, index) => statusOf(gatewayAt(index), token)));
  // One was used by the question before.
  expect(statuses.filter((status) => status === 200)).toHaveLength(9);
  expect(statuses.filter((status) => status === 429)).toHaveLength(21);
  using grpc = createGrpcClient(grpcPort, token);
  expect(await grpc.call('List', {})).toMatchObject({ code: 8 });
  const refused = await fetch(`${gatewayAt(1).url}/api/v1/registry/services`, {
    headers: { authorization: `Bearer ${token}` },
  });
  expect(await refused.json()).toMatchObject({ error: { code: 'RATE_LIMITED' } });
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(Number(refused.headers.get('x-ratelimit-reset'))).toBeGreaterThan(Date.now() / 1000);
});

async function statusOf(gateway: RunningService, token: string): Promise<number> {
  const answer = await fetch(`${gateway.url}/api/v1/registry/services`, {
    headers: { authorization: `Bearer ${token}` },
  });
  await answer.arrayBuffer();
  return answer.status;
}

test('the registry is called over gRPC with a token, and not without', async () => {
  const token = await tokenOf(
    gatewayAt(0),
    await createClient(namespace, { id: 'rpc', scopes: ['registrations:read'] }),
  );
  using caller = createGrpcClient(grpcPort, token);
  using stranger = createGrpcClient(grpcPort);
  expect(await caller.call('List', {})).toMatchObject({ code: 0 });
  expect(await stranger.call('List', {})).toMatchObject({ code: 16 });
});

test('who may only read registers nothing and deploys nothing, over neither protocol', async () => {
  const reader = await createClient(namespace, { id: 'reading', scopes: ['registrations:read'] });
  const writer = await createClient(namespace, { id: 'writing', scopes: ['registrations:write'] });
  const post = async (token: string, path: string, body: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const url = `${gatewayAt(0).url}/api/v1/registry${path}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
    return { status: answer.status, challenge: answer.headers.get('www-authenticate'), body: await answer.json() };
  };
  const shop = { service_name: 'taken', service_url: 'http://127.0.0.1:9' };
  const readerToken = await tokenOf(gatewayAt(0), reader);
  const writerToken = await tokenOf(gatewayAt(0), writer);
  expect(await post(readerToken, '/services/register', shop)).toMatchObject({
    status: 403,
    challenge: 'Bearer error="insufficient_scope", scope="registrations:write"',
    body: { error: { code: 'INSUFFICIENT_SCOPE', details: { missing: ['registrations:write'] } } },
  });
  const deploy = { service_name: 'taken', version: '1.0.0' };
  expect(await post(writerToken, '/webhooks/deploy', deploy)).toMatchObject({
    status: 403,
    body: { error: { details: { missing: ['jobs:write'] } } },
  });
  expect((await post(writerToken, '/services/register', shop)).status).toBe(200);
  using readingCaller = createGrpcClient(grpcPort, readerToken);
  using writingCaller = createGrpcClient(grpcPort, writerToken);
  expect(await readingCaller.call('Get', { serviceName: 'taken' })).toMatchObject({ code: 0 });
  expect(await readingCaller.call('Heartbeat', { serviceName: 'taken' })).toMatchObject({ code: 7 });
  expect(await writingCaller.call('Heartbeat', { serviceName: 'taken' })).toMatchObject({ code: 0 });
});

async function report(token: string, path: string) {
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const body = JSON.stringify({ service_name: 'reported', status: 'up', event: 'started' });
  const answer = await fetch(`${gatewayAt(0).url}/api/v1/registry${path}`, { method: 'POST', headers, body });
  return { status: answer.status, body: await answer.json() };
}

test('who may register may report, over either protocol, and who may only deploy may not', async () => {
  const registering = await createClient(namespace, { id: 'registering', scopes: ['registrations:write'] });
  const deploying = await createClient(namespace, { id: 'deploying', scopes: ['jobs:read', 'jobs:write'] });
  const reporterToken = await tokenOf(gatewayAt(0), registering);
  const deployerToken = await tokenOf(gatewayAt(0), deploying);
  const shop = { service_name: 'reported', service_url: 'http://127.0.0.1:9' };
  await registry.call('POST', '/services/register', shop);
  for (const path of ['/webhooks/health', '/webhooks/lifecycle']) {
    expect(await report(reporterToken, path)).toMatchObject({ status: 200, body: { status: 'received' } });
    expect(await report(deployerToken, path)).toMatchObject({
      status: 403,
      body: { error: { code: 'INSUFFICIENT_SCOPE', details: { missing: ['registrations:write'] } } },
    });
  }
  using reporter = createGrpcClient(grpcPort, reporterToken);
  using deployer = createGrpcClient(grpcPort, deployerToken);
  const health = { serviceName: 'reported', status: 'up' };
  expect(await reporter.call('ReportHealth', health)).toMatchObject({ code: 0 });
  expect(await deployer.call('ReportHealth', health)).toMatchObject({ code: 7 });
  const lifecycle = { serviceName: 'reported', event: 'started' };
  expect(await reporter.call('ReportLifecycle', lifecycle)).toMatchObject({ code: 0 });
  expect(await deployer.call('ReportLifecycle', lifecycle)).toMatchObject({ code: 7 });
});

test('a registration arrives over the WebSocket, with a token that the gateway has issued', async () => {
  const token = await tokenOf(
    gatewayAt(0),
    await createClient(namespace, { id: 'live', scopes: ['registrations:read'] }),
  );
  const url = `${gatewayAt(0).url.replace('http', 'ws')}/api/ws`;
  await using client = await connect(url, token);
  client.send({ type: 'subscribe', channel: 'registrations' });
  await client.until(({ type }) => type === 'subscribed');
  await using backend = await startBackend();
  await registry.call('POST', '/services/register', { service_name: 'newcomer', service_url: backend.url });
  const event = (await client.until((message) => JSON.stringify(message).includes('newcomer'))).at(-1);
  expect(event).toMatchObject({ type: 'event', channel: 'registrations' });
});

test('what is open ends soon after the deletion of its client: WebSocket with 4401, gRPC with UNAUTHENTICATED', async () => {
  const tookMs: { webSocket: number; grpc: number }[] = [];
  for (let round = 0; round < 3; round += 1) {
    const id = `leaving-${round}`;
    const token = await tokenOf(gatewayAt(0), await createClient(namespace, { id, scopes: ['registrations:read'] }));
    await using socket = await connect(`${gatewayAt(0).url.replace('http', 'ws')}/api/ws`, token);
    using caller = createGrpcClient(grpcPort, token);
    using watch = caller.open('Watch', {});
    await watch.next();
    const ended = [socket.closed, watch.ended].map((end) => end.then(() => performance.now()));
    await namespace.kubectl(['delete', 'apiclient', id]);
    const deletedAtMs = performance.now();
    expect(await socket.closed).toEqual({ code: 4401, reason: 'the token no longer holds' });
    expect(await watch.ended).toMatchObject({ code: status.UNAUTHENTICATED });
    const [webSocket = 0, grpc = 0] = (await Promise.all(ended)).map((atMs) => atMs - deletedAtMs);
    tookMs.push({ webSocket, grpc });
  }
  expect(Math.max(...tookMs.map(({ webSocket }) => webSocket))).toBeLessThan(10_000);
  expect(Math.max(...tookMs.map(({ grpc }) => grpc))).toBeLessThan(10_000);
});

test('a replica is ready once it knows what is registered, and soon also where no registry answers', async () => {
  await using backend = await startBackend((_, response) => void response.end('yes'));
  await registry.call('POST', '/services/register', { service_name: 'early', service_url: backend.url });
  const token = await tokenOf(
    gatewayAt(0),
    await createClient(namespace, { id: 'early', scopes: ['registrations:read'] }),
  );
  const ask = (at: RunningService, path: string) =>
    fetch(`${at.url}${path}`, { headers: { authorization: `Bearer ${token}` } }).then(({ status }) => status);
  await using next = await startGateway({ namespace, registry: registry.url });
  expect(await ask(next, '/api/v1/early/x')).toBe(200);
  await using silent = await startBackend(() => undefined);
  await using alone = await startGateway({ namespace, registry: silent.url });
  expect(await ask(alone, '/api/v1/early/x')).toBe(503);
  expect(await ask(alone, '/api/health')).toBe(200);
}, 120_000);

test('a replica that is to stop still answers, and closes the connections by it', async () => {
  const token = await tokenOf(
    gatewayAt(0),
    await createClient(namespace, { id: 'staying', scopes: ['registrations:read'] }),
  );
  // As long as may be: it is killed before.
  await using leaving = await startGatewayProcess({
    namespace,
    registry: registry.url,
    settings: { ROLLCALL_DRAIN_SECONDS: '20' },
  });
  const ask = async (path: string) => {
    const { status, headers } = await fetch(`${leaving.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    return { status, connection: headers.get('connection') };
  };
  const passedOn = '/api/v1/registry/services';
  expect(await ask(passedOn)).toEqual({ status: 200, connection: 'keep-alive' });
  process.kill(leaving.process.pid, 'SIGTERM');
  await vi.waitFor(async () => expect(await ask(passedOn)).toEqual({ status: 200, connection: 'close' }), {
    timeout: 10_000,
    interval: 100,
  });
  expect(await ask('/api/health')).toEqual({ status: 200, connection: 'close' });
  await leaving.kill();
}, 60_000);
