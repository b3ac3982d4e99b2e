import { createRegistryClient } from '@rollcall/client/registry-client.ts';
import { deliveryJobKind, serviceRegistrationKind } from '@rollcall/crds/kinds.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { DeliveryJob } from '@rollcall/crds/types.gen.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { connectByFile, type KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { createInformer } from '@rollcall/platform/kube/informer.ts';
import { type KubeObject, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, beforeAll, expect, inject, test, vi } from 'vitest';
import { type RealRegistry, startRealRegistry } from '../client/real-registry.ts';
import { newJob, setStatus } from '../registry/delivery/fixture.ts';
import { connect, isSynced, type ServerMessage, type TestClient } from './websocket-client.ts';
import { startWebSocketGateway, type WebSocketGateway } from './websocket-gateway.ts';

/** From a watch on the API server, which is what kubectl shows, to a subscriber. */
const WITHIN_MS = 10_000;
const ROUNDS = 5;

let registry: RealRegistry;
let gateway: WebSocketGateway;
let connection: KubeConnection;

beforeAll(async () => {
  registry = await startRealRegistry();
  gateway = await startWebSocketGateway({ registryUrl: registry.url });
  gateway.admit('reader');
  connection = await connectByFile(inject('kubeconfig'), {
    clock: systemClock,
    requestTimeoutMs: 5000,
    maxSockets: 4,
  });
});

afterAll(async () => {
  await gateway[Symbol.asyncDispose]();
  await connection.close();
  await registry[Symbol.asyncDispose]();
});

const registrations = () => resourceClient(connection, serviceRegistrationKind, registry.namespace.name);
const jobs = () => resourceClient(connection, deliveryJobKind, registry.namespace.name);
const client = () => createRegistryClient({ servers: registry.url });

function manifest(name: string, url = 'http://a:80') {
  return {
    apiVersion: 'rollcall.dev/v1alpha1' as const,
    kind: 'ServiceRegistration' as const,
    metadata: { name },
    spec: { serviceName: name, url, capabilities: ['rest' as const], source: 'Manifest' as const },
  };
}

/** Subscribes and reads up to `synced`. */
async function subscribe(to: TestClient, channel: string, cursor?: string): Promise<ServerMessage[]> {
  to.send({ type: 'subscribe', id: channel, channel, ...(cursor === undefined ? {} : { payload: { cursor } }) });
  return to.until(isSynced);
}

const about = (name: string) => (message: ServerMessage) =>
  JSON.stringify(message.payload).includes(`"service_name":"${name}"`);

/** `type name` of each event. */
function changesOf(messages: readonly ServerMessage[]): string[] {
  return messages
    .filter(({ type }) => type === 'event')
    .map(({ payload }) => {
      const { service_name = '' } = Object(payload?.['service'] ?? payload?.['job']);
      return `${String(payload?.['type'])} ${service_name}`.trimEnd();
    });
}

/** A watch on the API server beside that of the registry. */
async function watchKind<T extends KubeObject>(kind: ResourceKind<T>) {
  const informer = createInformer<T>({
    connection,
    kind,
    namespace: registry.namespace.name,
    clock: systemClock,
    log: createLogger('watch', 'silent'),
  });
  informer.start();
  await informer.synced;
  return {
    /** When the watch first has an object of the name of which this is true. */
    seenAt: (name: string, isWanted: (object: T) => boolean = () => true) =>
      new Promise<number>((resolve) => {
        informer.onStream((news) => {
          if (news.type === 'stored' && news.object.metadata.name === name && isWanted(news.object)) {
            resolve(performance.now());
          }
        });
      }),
    [Symbol.asyncDispose]: () => informer.stop(),
  };
}

/** When a subscriber first has an event of which this is true. */
async function heardAt(reader: TestClient, isWanted: (message: ServerMessage) => boolean): Promise<number> {
  await reader.until(isWanted);
  return performance.now();
}

/** How much later it was heard than seen. */
async function delayOf(seen: Promise<number>, heard: Promise<number>): Promise<number> {
  const [seenAt, at] = await Promise.all([seen, heard]);
  return at - seenAt;
}

test('registrations: all that is there, then each change soon after kubectl shows it', async () => {
  await registrations().create(manifest('first'));
  await vi.waitFor(async () => expect((await client().getService('first')).service_name).toBe('first'), {
    timeout: 30_000,
  });
  await using reader = await connect(gateway.url, 'reader');
  const opening = await subscribe(reader, 'registrations');
  expect(opening[0]).toEqual({ type: 'subscribed', id: 'registrations', channel: 'registrations' });
  expect(changesOf(opening)).toContain('added first');
  await using watch = await watchKind(serviceRegistrationKind);
  const delays: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = `timed-${round}`;
    const delay = delayOf(watch.seenAt(name), heardAt(reader, about(name)));
    await registrations().create(manifest(name));
    delays.push(await delay);
  }
  expect(Math.max(...delays)).toBeLessThan(WITHIN_MS);
  await registrations().patch('first', { spec: { url: 'http://b:80' } });
  await client().register({ service_name: 'second', service_url: 'http://second' });
  await client().unregister('second');
  const events = await reader.until(({ payload }) => payload?.['type'] === 'removed');
  expect(changesOf(events)).toEqual(['modified first', 'added second', 'removed second']);
  expect(events[0]).toMatchObject({
    type: 'event',
    channel: 'registrations',
    id: expect.stringMatching(/^i\d+$/),
    payload: { service: { service_name: 'first', service_url: 'http://b:80', capabilities: ['rest'] } },
  });
});

test('instances: what each program says of itself, and which of them are well', async () => {
  await using reader = await connect(gateway.url, 'reader');
  await subscribe(reader, 'instances');
  for (const instance_id of ['a', 'b']) {
    await client().register({ service_name: 'pair', instance_id, service_url: `http://${instance_id}`, zone: 'z1' });
  }
  await client().reportHealth({ service_name: 'pair', instance_id: 'a', status: 'draining' });
  await client().unregister('pair', { instanceId: 'b' });
  const events = await reader.until(({ payload }) => payload?.['type'] === 'removed');
  const told = events.map(({ payload }) => payload);
  expect(told).toMatchObject([
    { type: 'added', instance: { service_name: 'pair', instance_id: 'a', healthy: true, zone: 'z1' } },
    { type: 'added', instance: { instance_id: 'b', healthy: true } },
    { type: 'modified', instance: { instance_id: 'a', healthy: false, health: 'draining' } },
    { type: 'removed', instance: { instance_id: 'b' } },
  ]);
});

const hasStarted = ({ status }: DeliveryJob) => status?.phase === 'Progressing';
const isEnd = ({ payload }: ServerMessage) => payload?.['type'] === 'succeeded';

test('jobs: their course, of all services or of one', async () => {
  await using all = await connect(gateway.url, 'reader');
  await using one = await connect(gateway.url, 'reader');
  await subscribe(all, 'jobs');
  await subscribe(one, 'jobs.shop');
  await jobs().create(newJob('other', { serviceName: 'other' }));
  await jobs().create(newJob('course', { serviceName: 'shop' }));
  const startedAt = '2026-11-20T10:00:00Z';
  await setStatus(jobs(), 'course', { phase: 'Progressing', step: 0, weight: 10, startedAt });
  await setStatus(jobs(), 'course', { step: 1, weight: 50 });
  await setStatus(jobs(), 'course', { message: 'looks good' });
  await setStatus(jobs(), 'course', { phase: 'Succeeded', finishedAt: '2026-11-20T10:01:00Z' });
  const course = ['added shop', 'started shop', 'step shop', 'modified shop', 'succeeded shop'];
  expect(changesOf(await all.until(isEnd))).toEqual(['added other', ...course]);
  const events = await one.until(isEnd);
  expect(changesOf(events)).toEqual(course);
  expect(events[1]).toMatchObject({
    channel: 'jobs.shop',
    payload: { job: { job_id: 'course', phase: 'Progressing', weight: 10, operation: 'deploy' } },
  });
});

test('job events come soon after kubectl shows the change', async () => {
  await using reader = await connect(gateway.url, 'reader');
  await subscribe(reader, 'jobs.timed');
  await using watch = await watchKind(deliveryJobKind);
  const delays: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const name = `timed-${round}`;
    const isEvent = (type: string) => (message: ServerMessage) =>
      message.payload?.['type'] === type && JSON.stringify(message.payload).includes(`"job_id":"${name}"`);
    const added = delayOf(watch.seenAt(name), heardAt(reader, isEvent('added')));
    await jobs().create(newJob(name, { serviceName: 'timed' }));
    delays.push(await added);
    const started = delayOf(watch.seenAt(name, hasStarted), heardAt(reader, isEvent('started')));
    await setStatus(jobs(), name, { phase: 'Progressing', startedAt: '2026-11-20T10:00:00Z' });
    delays.push(await started);
  }
  expect(delays).toHaveLength(2 * ROUNDS);
  expect(Math.max(...delays)).toBeLessThan(WITHIN_MS);
});

test('a client that was disconnected gets what it missed; from a cursor that nobody knows everything, after a reset', async () => {
  let cursor: string | undefined;
  {
    await using reader = await connect(gateway.url, 'reader');
    cursor = (await subscribe(reader, 'registrations')).at(-1)?.id;
  }
  await using witness = await connect(gateway.url, 'reader');
  await subscribe(witness, 'registrations');
  await registrations().create(manifest('missed'));
  await registrations().patch('missed', { spec: { url: 'http://moved:80' } });
  await witness.until(({ payload }) => payload?.['type'] === 'modified');
  await using reader = await connect(gateway.url, 'reader');
  expect(changesOf(await subscribe(reader, 'registrations', cursor))).toEqual([
    'added missed',
    'modified missed',
    'synced',
  ]);
  reader.send({ type: 'unsubscribe', channel: 'registrations' });
  expect(await reader.next()).toEqual({ type: 'unsubscribed', channel: 'registrations' });
  const [subscribed, reset, ...events] = await subscribe(reader, 'registrations', '1');
  expect([subscribed?.type, reset]).toEqual(['subscribed', { type: 'reset', channel: 'registrations' }]);
  expect(changesOf(events)).toContain('added missed');
});

test('while the registry is dead nobody gets an event; afterwards, what happened meanwhile', async () => {
  await registrations().create(manifest('stays'));
  await registrations().create(manifest('goes'));
  await jobs().create(newJob('survives', { serviceName: 'lasting' }));
  await untilKnown('registrations', ['added stays', 'added goes']);
  await untilKnown('jobs.lasting', ['added lasting']);
  await using reader = await connect(gateway.url, 'reader');
  await subscribe(reader, 'registrations');
  await subscribe(reader, 'jobs.lasting');
  await registry.kill();
  await registrations().create(manifest('comes'));
  await registrations().patch('stays', { spec: { url: 'http://elsewhere:80' } });
  await registrations().delete('goes');
  await setStatus(jobs(), 'survives', { phase: 'Progressing', startedAt: '2026-11-20T10:00:00Z' });
  await using latecomer = await connect(gateway.url, 'reader');
  expect(changesOf(await subscribe(latecomer, 'registrations'))).toEqual(
    expect.arrayContaining(['added stays', 'added goes']),
  );
  expect(await heardSoFar(reader)).toEqual([]);
  await registry.restart();
  const events: ServerMessage[] = [];
  while (changesOf(events).length < 4) events.push(await reader.next(60_000));
  expect(changesOf(events).sort()).toEqual(['added comes', 'modified stays', 'removed goes', 'started lasting']);
  expect(await heardSoFar(reader)).toEqual([]);
}, 120_000);

/** All that was sent before now and not read yet. */
async function heardSoFar(reader: TestClient): Promise<string[]> {
  reader.send({ type: 'ping' });
  return changesOf(await reader.until(({ type }) => type === 'pong'));
}

/** Until the gateway knows this of the channel. */
async function untilKnown(channel: string, wanted: readonly string[]): Promise<void> {
  await using probe = await connect(gateway.url, 'reader');
  await vi.waitFor(
    async () => {
      const opening = await subscribe(probe, channel);
      probe.send({ type: 'unsubscribe', channel });
      await probe.until(({ type }) => type === 'unsubscribed');
      expect(changesOf(opening)).toEqual(expect.arrayContaining([...wanted]));
    },
    { timeout: 20_000, interval: 200 },
  );
}
