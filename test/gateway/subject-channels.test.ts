import { register } from '@rollcall/client/registration.ts';
import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type EventWorld, startEventWorld } from '../platform/webhooks.ts';
import { openEventStream } from '../support/event-stream.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { Replica, RunningService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';
import { connect, isSynced, type ServerMessage, type TestClient } from './websocket-client.ts';

const CHANNEL = 'payments';
const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let world: EventWorld;
let number = 0;
let subject: string;
let token: string;

beforeAll(async () => {
  namespace = await createNamespace('subject-channels');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  world = stack.use(await startEventWorld({ ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json` }));
  await registerAt(world.service.service.url);
});

afterAll(() => stack.disposeAsync());

beforeEach(async () => {
  number += 1;
  subject = `shop-${number}`;
  token = await newToken(subject, ['payments:read']);
});

async function registerAt(url: string, instanceId?: string): Promise<AsyncDisposable> {
  const instance = instanceId === undefined ? {} : { instanceId };
  const registration = stack.use(register({ servers: registry.url, name: 'payment', url, ...instance }));
  await registration.registered;
  return registration;
}

async function newToken(id: string, scopes: readonly string[]): Promise<string> {
  const client = await createClient(namespace, { id, scopes });
  return vi.waitFor(() => tokenOf(gateway, client), { timeout: 10_000, interval: 100 });
}

async function follow(cursor?: string, as = token): Promise<TestClient> {
  const client = stack.use(await connect(`${gateway.url.replace('http', 'ws')}/api/ws`, as));
  client.send({ type: 'subscribe', channel: CHANNEL, ...(cursor === undefined ? {} : { payload: { cursor } }) });
  expect(await client.next()).toMatchObject({ type: 'subscribed' });
  return client;
}

const synced = async (client: TestClient) => (await client.until(isSynced)).at(-1)?.id ?? '';

async function events(client: TestClient, count: number): Promise<readonly ServerMessage[]> {
  const read: ServerMessage[] = [];
  while (read.length < count) read.push(await client.next());
  return read;
}

const idsOf = (messages: readonly ServerMessage[]) => messages.map(({ id }) => id);

test('a subject sees its own events, with what webhooks are told', async () => {
  const client = await follow();
  await synced(client);
  await world.happen(`${subject}-other`, 'payment.succeeded');
  const [id] = await world.happen(subject, 'payment.failed');
  expect(await client.next()).toEqual({
    type: 'event',
    channel: CHANNEL,
    id,
    payload: {
      id,
      type: 'payment.failed',
      timestamp: expect.any(String),
      data: { id: expect.any(String), number: 0 },
    },
  });
});

test('who comes back with a cursor has missed nothing, and sees nothing twice', async () => {
  const first = await follow();
  const from = await synced(first);
  const before = await world.happen(subject, 'payment.succeeded', 3);
  expect(idsOf(await events(first, 3))).toEqual(before);
  await first[Symbol.asyncDispose]();
  const missed = await world.happen(subject, 'payment.succeeded', 300);
  await world.settled();
  const second = await follow(before[1]);
  expect(idsOf(await events(second, 301))).toEqual([before[2], ...missed]);
  expect(await second.next()).toMatchObject({ id: missed.at(-1), payload: { type: 'synced' } });
  const third = await follow(from);
  expect(idsOf((await third.until(isSynced)).slice(0, -1))).toEqual([...before, ...missed]);
});

test.each(['gone', 'a\r\nx-rollcall-subject: root', '00000000-0000-4000-8000-000000000000'])(
  'a cursor that is none of it begins anew: %j',
  async (cursor) => {
    const client = await follow(cursor);
    expect(await client.next()).toEqual({ type: 'reset', channel: CHANNEL });
    await synced(client);
    const [id] = await world.happen(subject, 'payment.succeeded');
    expect(idsOf([await client.next()])).toEqual([id]);
  },
);

test('it needs the scope, and ends with the token', async () => {
  const stranger = stack.use(
    await connect(`${gateway.url.replace('http', 'ws')}/api/ws`, await newToken('stranger', ['messages:read'])),
  );
  stranger.send({ type: 'subscribe', channel: CHANNEL });
  expect(await stranger.next()).toMatchObject({ type: 'error', payload: { code: 'INSUFFICIENT_SCOPE' } });
  const client = await follow();
  await synced(client);
  const open = await streams();
  expect(open).toBeGreaterThan(0);
  await namespace.kubectl(['delete', 'apiclient', subject]);
  expect((await client.closed).code).toBe(4401);
  await vi.waitFor(async () => expect(await streams()).toBe(open - 1), { timeout: 10_000 });
});

/** Open at the service. */
async function streams(): Promise<number> {
  const answer = await fetch(`${world.service.service.adminUrl}/metrics`);
  return Number(/^rollcall_event_streams(?:\{.*\})? (\d+)$/m.exec(await answer.text())?.[1]);
}

test('server-sent events come by the gateway, too, from the same cursor', async () => {
  const client = await follow();
  const from = await synced(client);
  const [id] = await world.happen(subject, 'payment.succeeded');
  const { payload } = await client.next();
  await using stream = await openEventStream(`${gateway.url}/api/v1/payment/events`, from, token);
  expect(await stream.next()).toEqual({ id, type: 'payment.succeeded', data: payload });
  const [later] = await world.happen(subject, 'payment.failed');
  expect((await stream.until('payment.failed')).at(-1)?.id).toBe(later);
});

test('a replica that is killed costs no event', async () => {
  const other: Replica = stack.use(await world.service.startProcess());
  const registration = await registerAt(other.url, 'other');
  const clients = await Promise.all(Array.from({ length: 8 }, () => follow()));
  await Promise.all(clients.map(synced));
  const all: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    all.push(...(await world.happen(subject, 'payment.succeeded', 10)));
    if (round === 10) await Promise.all([other.kill(), registration[Symbol.asyncDispose]()]);
  }
  for (const client of clients) expect(idsOf(await events(client, all.length))).toEqual(all);
});

test('who reads slowly is waited for, and gets everything', async () => {
  const client = await follow();
  await synced(client);
  client.socket.pause();
  const all: string[] = [];
  // Some twelve megabytes: more than waits for any other channel.
  for (let round = 0; round < 30; round += 1) all.push(...(await world.happen(subject, 'payment.succeeded', 1000)));
  await world.settled();
  client.socket.resume();
  expect(idsOf(await events(client, all.length))).toEqual(all);
});
