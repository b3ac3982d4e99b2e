import { status } from '@grpc/grpc-js';
import { freePorts } from '@rollcall/local/ports.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { readCluster, writeKubeconfig } from '../kube/fixtures.ts';
import { startTcpRelay, type TcpRelay } from '../kube/tcp-relay.ts';
import { openEventStream, type StreamEvent } from '../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { newJob } from './delivery/fixture.ts';
import { createGrpcClient } from './grpc-client.ts';

/** Far less than a wait for what never comes. */
const SOON_MS = 10_000;
const OF_ANOTHER_HISTORY = '9'.repeat(15);

let namespace: TestNamespace;
let database: TestDatabase;
/** Between the API server and one of the replicas. */
let relay: TcpRelay;
let ahead: RunningService;
let behind: RunningService;
let grpcPort: number;

beforeAll(async () => {
  namespace = await createNamespace('ahead');
  database = await createDatabase();
  const parts = await readCluster(namespace.kubeconfigPath);
  relay = await startTcpRelay(parts.port);
  const cluster = { ...parts.cluster, server: `https://127.0.0.1:${relay.port}` };
  const options = { namespace: namespace.name, databaseUrl: database.url };
  [grpcPort = 0] = await freePorts(1);
  [ahead, behind] = await Promise.all([
    startRegistry(options),
    startRegistry({
      ...options,
      access: { KUBECONFIG: await writeKubeconfig({ cluster, user: parts.user }) },
      settings: { ROLLCALL_GRPC_PORT: String(grpcPort) },
    }),
  ]);
  // Ready does not wait for the jobs.
  await waitUntil(
    'the jobs are followed',
    async () => (await statusOf(behind, '/jobs/watch', OF_ANOTHER_HISTORY)) === 200,
    {
      timeoutMs: 20_000,
    },
  );
});

afterAll(async () => {
  relay.release();
  await Promise.all([ahead[Symbol.asyncDispose](), behind[Symbol.asyncDispose]()]);
  await relay[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

const urlOf = (registry: RunningService, path: string) => `${registry.url}/api/v1${path}`;

/** With which a stream is begun, or refused. */
async function statusOf(registry: RunningService, path: string, id: string): Promise<number> {
  const headers = { accept: 'text/event-stream', 'last-event-id': id };
  const { status: code, body } = await fetch(urlOf(registry, path), { headers });
  await body?.cancel();
  return code;
}

async function register(service_name: string): Promise<void> {
  expect((await ahead.call('POST', '/services/register', { service_name, service_url: 'http://a' })).status).toBe(200);
}

async function apply(manifest: object): Promise<void> {
  await namespace.kubectl(['apply', '-f', '-'], { stdin: JSON.stringify(manifest) });
}

/** The id of what changes while one replica hears nothing, which the other one has sent. */
async function missed(path: string, change: () => Promise<void>): Promise<string> {
  await using stream = await openEventStream(urlOf(ahead, path));
  await stream.until('synced');
  relay.hold();
  await change();
  const { id } = await stream.next();
  if (id === undefined) throw new Error('The event has no id');
  return id;
}

/** Whether it is still to be waited for after a while. */
function isPending(what: Promise<unknown>): Promise<boolean> {
  return Promise.race([what.then(() => false), sleep(500).then(() => true)]);
}

/** As clients do that are sent away by a replica which takes too long: they ask again. */
async function insist<Answer>(ask: () => Promise<Answer>): Promise<Answer> {
  for (let left = 20; ; left -= 1) {
    try {
      return await ask();
    } catch (error) {
      if (left === 0 || !/answered with 503|UNAVAILABLE/.test(String(error))) throw error;
      await sleep(100);
    }
  }
}

function firstAfter(id: string, path: string): Promise<StreamEvent> {
  return insist(async () => {
    await using stream = await openEventStream(urlOf(behind, path), id);
    return await stream.next();
  });
}

describe('a replica that is asked for what it does not know yet waits for it, and nothing is reported anew', () => {
  test('of registrations', async () => {
    const id = await missed('/services/watch', () => register('known'));
    await register('missed');
    const next = firstAfter(id, '/services/watch');
    expect(await isPending(next)).toBe(true);
    relay.release();
    expect(await next).toMatchObject({ type: 'added', data: { service_name: 'missed' } });
  });

  test('of jobs', async () => {
    const id = await missed('/jobs/watch', () => apply(newJob('known')));
    await apply(newJob('missed'));
    const next = firstAfter(id, '/jobs/watch');
    expect(await isPending(next)).toBe(true);
    relay.release();
    expect(await next).toMatchObject({ type: 'added', data: { job_id: 'missed' } });
  });

  test('over gRPC', async () => {
    const cursor = await missed('/services/watch', () => register('known-to-grpc'));
    await register('missed-by-grpc');
    using client = createGrpcClient(grpcPort);
    const next = insist(async () => {
      using stream = client.open('Watch', { cursor });
      return await stream.next();
    });
    expect(await isPending(next)).toBe(true);
    relay.release();
    expect(await next).toMatchObject({ type: 'TYPE_ADDED', service: { serviceName: 'missed-by-grpc' } });
  });
});

/** Waits until the replica says so of its store. */
async function untilHealth(expected: 'healthy' | 'unhealthy'): Promise<void> {
  await waitUntil(
    `it is ${expected}`,
    async () => (await behind.call('GET', '/health')).body?.['status'] === expected,
    {
      timeoutMs: 20_000,
    },
  );
}

test('a replica that cannot learn of it sends nothing old, and who asks again is served once it can', async () => {
  const id = await missed('/services/watch', () => register('unheard'));
  const headers = { accept: 'text/event-stream', 'last-event-id': id };
  using client = createGrpcClient(grpcPort);
  using stream = client.open('Watch', { cursor: id });
  stream.next().catch(() => undefined);
  const refused = await fetch(urlOf(behind, '/services/watch'), { headers });
  expect([refused.status, refused.headers.get('connection')]).toEqual([503, 'close']);
  expect(await refused.json()).toMatchObject({ error: 'Store is not available' });
  expect((await stream.ended).code).toBe(status.UNAVAILABLE);
  await untilHealth('unhealthy');
  const startedAtMs = performance.now();
  expect(await statusOf(behind, '/services/watch', id)).toBe(503);
  expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);

  relay.release();
  await untilHealth('healthy');
  const next = firstAfter(id, '/services/watch');
  await register('heard');
  expect(await next).toMatchObject({ type: 'added', data: { service_name: 'heard' } });
});

test('an id of another history gets a reset and everything anew, at once', async () => {
  const startedAtMs = performance.now();
  await using stream = await openEventStream(urlOf(ahead, '/services/watch'), OF_ANOTHER_HISTORY);
  expect(await stream.next()).toMatchObject({ type: 'reset' });
  expect((await stream.until('synced')).map(({ data }) => data['service_name'])).toContain('known');
  expect(performance.now() - startedAtMs).toBeLessThan(SOON_MS);
});
