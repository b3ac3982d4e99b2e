import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { communicationProcess } from '@rollcall/communication/service.ts';
import { startPostgres } from '@rollcall/local/postgres.ts';
import { startRedis } from '@rollcall/local/redis.ts';
import { afterAll, afterEach, beforeAll, expect, inject, test, vi } from 'vitest';
import { createMailpit, MAILPIT_TIMEOUT_MS, type TestMailpit } from '../support/mailpit.ts';
import { createDatabase, startAgain } from '../support/postgres.ts';
import { type Answer, type ReplicaOptions, startService } from '../support/replica.ts';
import { createToxiproxy } from '../support/toxiproxy.ts';
import { type CommunicationService, startCommunication } from './communication-service.ts';
import { writeProviders } from './providers-file.ts';

const all = new AsyncDisposableStack();
let mailpit: TestMailpit;
let each = new AsyncDisposableStack();

beforeAll(async () => {
  mailpit = all.use(await createMailpit());
}, MAILPIT_TIMEOUT_MS);

afterAll(() => all.disposeAsync());

afterEach(async () => {
  await each.disposeAsync();
  each = new AsyncDisposableStack();
  await mailpit.chaos();
});

async function settings(): Promise<Readonly<Record<string, string>>> {
  const smtp = { name: 'mailpit', kind: 'smtp', host: '127.0.0.1', port: mailpit.smtpPort, tls: 'none' };
  const providers = {
    email: {
      from: { address: 'shop@shop.example' },
      providers: [{ ...smtp, bounceDomain: 'shop.example', timeoutSeconds: 30 }],
    },
  };
  return { ...(await writeProviders(providers)), ROLLCALL_RETRY_BASE_SECONDS: '0.2' };
}

/** The environment of another replica of a service. */
function replicaOf(service: CommunicationService): ReplicaOptions {
  return { logDirectory: inject('temporaryDirectory'), access: {}, namespace: 'none', settings: service.settings };
}

interface Load {
  readonly subjects: number;
  readonly each: number;
  readonly name: string;
}

/** Sends a hundred mails a subject at most, as that is the limit. @returns the ids of what was accepted. */
async function sendMany(
  service: CommunicationService,
  { subjects, each: count, name }: Load,
): Promise<readonly string[]> {
  const sent = Array.from({ length: subjects }, async (_, subject) => {
    const caller = await service.callerOf(`${name}-${subject}`);
    const answers: Answer[] = [];
    for (let number = 0; number < count; number += 1) {
      const body = { to: `somebody-${number}@example.com`, subject: `${name} ${subject} ${number}`, text: 'Good day' };
      answers.push(await caller('POST', '/emails', { body }));
    }
    return answers.filter(({ status }) => status === 202).map(({ body }) => String(body?.['id']));
  });
  return (await Promise.all(sent)).flat();
}

/** How many messages there are in a state. */
async function count(service: CommunicationService, state: string): Promise<number> {
  const admin = await service.callerOf('admin', 'messages:read messages:admin');
  return Number((await admin('GET', `/messages?status=${state}&limit=1`)).body?.['total']);
}

/** By state, how many messages there are. */
async function states(service: CommunicationService): Promise<Readonly<Record<string, number>>> {
  const names = ['queued', 'sending', 'sent', 'unknown', 'failed'];
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await count(service, name)] as const)));
}

async function untilOver(service: CommunicationService): Promise<Readonly<Record<string, number>>> {
  const isOver = async () => {
    // One after the other: what moves meanwhile is in one of them.
    for (const state of ['queued', 'sending', 'queued']) if ((await count(service, state)) !== 0) return false;
    return true;
  };
  await vi.waitUntil(isOver, { timeout: 150_000, interval: 500 });
  return states(service);
}

/** How often each message arrived whose subject begins so. */
async function arrivals(name: string): Promise<ReadonlyMap<string, number>> {
  const counts = new Map<string, number>();
  for (const { MessageID, Subject } of await mailpit.messages()) {
    if (!Subject.startsWith(`${name} `)) continue;
    const [id = ''] = MessageID.split('@');
    counts.set(id, (counts.get(id) ?? 0) + 1);
  }
  return counts;
}

test('eighty workers of four replicas and a slow database send each of 1,000 mails once', {
  timeout: 300_000,
}, async () => {
  const database = each.use(await createDatabase());
  const toxiproxy = each.use(await createToxiproxy());
  const url = new URL(database.url);
  const way = await toxiproxy.wayTo(Number(url.port));
  url.port = String(way.port);
  const service = each.use(await startCommunication({ databaseUrl: url.href, settings: await settings() }));
  for (let replica = 0; replica < 3; replica += 1) {
    each.use(await startService(communicationProcess, replicaOf(service)));
  }
  await way.add({ type: 'latency', stream: 'downstream', attributes: { latency: 15, jitter: 10 } });
  const ids = await sendMany(service, { name: 'slow', subjects: 10, each: 100 });
  // Who is not answered in time is told so, and nothing is sent.
  expect(ids.length).toBeGreaterThan(30);
  expect(await untilOver(service)).toMatchObject({ sent: ids.length, unknown: 0, failed: 0 });
  const arrived = await arrivals('slow');
  expect(arrived.size).toBe(ids.length);
  expect(new Set(arrived.values())).toEqual(new Set([1]));
});

test('a database that is restarted under load loses no accepted mail, and repeats none', {
  timeout: 180_000,
}, async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'postgres-'));
  const postgres = each.use(await startPostgres({ directory }));
  const databaseUrl = await postgres.createDatabase('communication');
  const service = each.use(await startCommunication({ databaseUrl, settings: await settings() }));
  const sending = sendMany(service, { name: 'restarted', subjects: 4, each: 100 });
  await vi.waitUntil(async () => (await arrivals('restarted')).size > 30, { timeout: 60_000, interval: 20 });
  await postgres.kill();
  await startAgain(postgres);
  const ids = await sending;
  expect(ids.length).toBeGreaterThan(30);
  await vi.waitUntil(async () => (await states(service))['sent'] !== undefined, { timeout: 60_000 });
  const { unknown, failed } = await untilOver(service);
  expect([unknown, failed]).toEqual([0, 0]);
  const arrived = await arrivals('restarted');
  expect(new Set(arrived.values())).toEqual(new Set([1]));
  expect(ids.filter((id) => !arrived.has(id))).toEqual([]);
});

test('a Redis that is lost under load and comes back empty costs no mail, and limits hold as documented', {
  timeout: 180_000,
}, async () => {
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'redis-'));
  const redis = each.use(await startRedis({ directory, binary: inject('redisBinary') }));
  const database = each.use(await createDatabase());
  const store = { ...(await settings()), ROLLCALL_REDIS_URL: redis.url, ROLLCALL_REDIS_PREFIX: 'lost' };
  const service = each.use(await startCommunication({ databaseUrl: database.url, settings: store }));
  const caller = await service.callerOf('lost');
  const storeIs = async () => (await caller('GET', '/health')).body?.['store'];
  await expect.poll(storeIs).toBe('connected');
  const ids: string[] = [];
  let refused = 0;
  const sendFor = async (count: number) => {
    for (let number = 0; number < count; number += 1) {
      const body = { to: `somebody-${number}@example.com`, subject: `lost ${ids.length}`, text: 'Good day' };
      const { status, body: message } = await caller('POST', '/emails', { body });
      expect([202, 429]).toContain(status);
      if (status === 202) ids.push(String(message?.['id']));
      else refused += 1;
    }
  };
  const sending = Promise.all([sendFor(180), sendFor(180)]);
  await vi.waitUntil(() => ids.length > 50, { timeout: 60_000, interval: 5 });
  await redis.kill();
  await expect.poll(storeIs).toBe('disconnected');
  await vi.waitUntil(() => ids.length > 100, { timeout: 60_000, interval: 5 });
  await redis.start();
  await sending;
  await expect.poll(storeIs, { timeout: 20_000 }).toBe('connected');
  // The limit from the replica on its own, and from Redis before and after it came back empty.
  expect(ids.length).toBeLessThanOrEqual(300);
  expect(ids.length + refused).toBe(360);
  expect(refused).toBeGreaterThan(0);
  expect(await untilOver(service)).toMatchObject({ sent: ids.length, unknown: 0, failed: 0 });
  const arrived = await arrivals('lost');
  expect([...arrived.keys()].sort()).toEqual([...ids].sort());
  expect(new Set(arrived.values())).toEqual(new Set([1]));
});

test('recipients that are deferred again and again get their mail, and the numbers add up', {
  timeout: 120_000,
}, async () => {
  const database = each.use(await createDatabase());
  const service = each.use(await startCommunication({ databaseUrl: database.url, settings: await settings() }));
  await mailpit.chaos({ Recipient: { ErrorCode: 454, Probability: 25 } });
  const ids = await sendMany(service, { name: 'deferred', subjects: 1, each: 100 });
  expect(await untilOver(service)).toMatchObject({ sent: 100, unknown: 0, failed: 0 });
  const arrived = await arrivals('deferred');
  expect([...arrived.keys()].sort()).toEqual([...ids].sort());
});

test('a process that is told to stop ends what it has begun', { timeout: 120_000 }, async () => {
  const database = each.use(await createDatabase());
  const keys = [{ id: 'one', key: Buffer.alloc(32, 1).toString('base64') }];
  const service = each.use(await startCommunication({ databaseUrl: database.url, keys, settings: await settings() }));
  const ids = await sendMany(service, { name: 'stopped', subjects: 1, each: 60 });
  await service.service[Symbol.asyncDispose]();
  const again = each.use(await startCommunication({ databaseUrl: database.url, keys, settings: await settings() }));
  expect(await untilOver(again)).toMatchObject({ sent: ids.length, unknown: 0, failed: 0 });
  const arrived = await arrivals('stopped');
  expect([...arrived.values()].every((count) => count === 1)).toBe(true);
  expect(arrived.size).toBe(ids.length);
});
