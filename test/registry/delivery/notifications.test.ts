import { randomUUID } from 'node:crypto';
import { sign } from '@rollcall/registry/domain/signatures.ts';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type DeliveryFixture, startDelivery } from './fixture.ts';
import { type Receiver, startReceiver } from './receiver.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let receiver: Receiver;

beforeAll(async () => {
  namespace = await createNamespace('notify');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url, retryLimit: 3 });
  receiver = await startReceiver();
  await vi.waitUntil(() => delivery.logs().includes('notification queue ready'), { timeout: 20_000 });
});

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
  await namespace[Symbol.asyncDispose]();
});

const eventually = { timeout: 30_000, interval: 50 };

function receivedFor(service: string) {
  return receiver.received.filter(({ body }) => JSON.parse(body).service_name === service);
}

async function configure(service_name: string, more: Record<string, unknown> = {}): Promise<void> {
  const answer = await delivery.post('/webhooks/config', {
    service_name,
    endpoints: { chat: `${receiver.url}/${service_name}` },
    ...more,
  });
  expect(answer.status).toBe(200);
}

function notify(service_name: string, more: Record<string, unknown> = {}) {
  return delivery.post('/webhooks/notify', { service_name, channel: 'chat', message: 'Hello', ...more });
}

async function deadLetters(service: string) {
  const { rows } = await delivery.pool.query(
    `SELECT data, output, source_retry_count AS retries FROM registry_queue.job
     WHERE name = 'notifications-dead' AND data->>'serviceName' = $1`,
    [service],
  );
  return rows;
}

test('a notification arrives signed, and again until it is taken, as the same message', {
  timeout: 60_000,
}, async () => {
  const secret = `s3cret-${randomUUID()}`;
  await configure('shop', { secret });
  receiver.answer(500, 503, 200);
  const answer = await notify('shop', { message: 'größe "1"\n😀', severity: 'warning' });
  expect(answer).toMatchObject({ status: 200, body: { status: 'sent', message: expect.stringContaining("'shop'") } });
  await expect.poll(() => receivedFor('shop'), eventually).toHaveLength(3);
  const [first, , last] = receivedFor('shop');
  expect(first?.path).toBe('/shop');
  const body = JSON.parse(first?.body ?? '');
  expect(body).toEqual({
    service_name: 'shop',
    channel: 'chat',
    message: 'größe "1"\n😀',
    severity: 'warning',
    timestamp: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
    id: expect.any(String),
  });
  for (const { headers, body: sent } of receivedFor('shop')) {
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'x-webhook-signature': sign(secret, sent),
      'webhook-id': body.id,
      'webhook-timestamp': expect.stringMatching(/^\d{10}$/),
    });
  }
  expect(last?.body).toBe(first?.body);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(receivedFor('shop')).toHaveLength(3);
  expect(await deadLetters('shop')).toEqual([]);
  expect(delivery.logs()).not.toContain(secret);
  const { rows } = await delivery.pool.query('SELECT * FROM registry_queue.job');
  expect(JSON.stringify(rows)).not.toContain(secret);
  expect(JSON.stringify(rows)).not.toContain(receiver.url);
});

test('what is refused is kept as a dead letter at once', async () => {
  await configure('refused');
  receiver.answer(410);
  await notify('refused');
  await expect
    .poll(() => deadLetters('refused'), eventually)
    .toMatchObject([
      {
        data: { serviceName: 'refused', channel: 'chat', message: 'Hello', severity: 'info' },
        output: { reason: 'answer 410', attempt: 1 },
      },
    ]);
  expect(receivedFor('refused')).toHaveLength(1);
  expect(receivedFor('refused')[0]?.headers).not.toHaveProperty('x-webhook-signature');
});

test('what fails too often is kept as a dead letter; redirects are not followed', { timeout: 60_000 }, async () => {
  await configure('failing');
  receiver.answer(500, 429, 302, 408);
  await notify('failing');
  await expect
    .poll(() => deadLetters('failing'), eventually)
    .toMatchObject([{ output: { reason: 'answer 408', attempt: 4 } }]);
  expect(receivedFor('failing').map(({ path }) => path)).toEqual(Array(4).fill('/failing'));
});

test('nobody listening, or no answer in time, is tried again', { timeout: 60_000 }, async () => {
  receiver.answer('hang', 200);
  await configure('slow');
  await notify('slow');
  await delivery.post('/webhooks/config', {
    service_name: 'deaf',
    endpoints: { chat: 'http://127.0.0.1:1/token-abc' },
  });
  await notify('deaf');
  await expect.poll(() => deadLetters('deaf'), eventually).toMatchObject([{ output: { attempt: 4 } }]);
  expect(delivery.logs()).not.toContain('token-abc');
  await expect.poll(() => receivedFor('slow'), eventually).toHaveLength(2);
});

test('the channel of the service comes before the global one, each signed with its own secret', async () => {
  receiver.answer(200);
  await delivery.post('/webhooks/config', {
    endpoints: { chat: `${receiver.url}/global`, ops: `${receiver.url}/ops` },
    secret: 'global',
  });
  await configure('both', { secret: 'both', webhook_secret: 'global' });
  await configure('plain', { webhook_secret: 'global' });
  for (const [service, channel, path, secret] of [
    ['both', 'chat', '/both', 'both'],
    ['both', 'ops', '/ops', 'global'],
    ['plain', 'chat', '/plain', 'global'],
    ['other', 'chat', '/global', 'global'],
  ] as const) {
    const message = `${service} ${channel}`;
    expect((await notify(service, { channel, message })).status).toBe(200);
    const find = () => receiver.received.find(({ body }) => JSON.parse(body).message === message);
    await expect.poll(find, eventually).toBeDefined();
    const found = find();
    expect(found?.path).toBe(path);
    expect(found?.headers['x-webhook-signature']).toBe(sign(secret, found?.body ?? ''));
  }
});

test('an unknown channel is 404, and nothing is queued', async () => {
  for (const channel of ['unknown', 'toString', 'constructor', '__proto__']) {
    const answer = await notify('shop', { channel });
    expect(answer).toMatchObject({ status: 404, body: { error: 'Channel not found', message: expect.any(String) } });
  }
  const { rows } = await delivery.pool.query(
    `SELECT * FROM registry_queue.job WHERE data->>'channel' <> ALL ('{chat,ops}')`,
  );
  expect(rows).toEqual([]);
});

test.each([
  ['no service', { service_name: undefined }],
  ['no channel', { channel: undefined }],
  ['no message', { message: undefined }],
  ['an empty message', { message: '' }],
  ['a long message', { message: 'é'.repeat(8193) }],
  ['NUL in the message', { message: 'a\u0000b' }],
  ['half a surrogate pair', { message: 'a\ud800' }],
  ['an object as message', { message: {} }],
  ['an unknown severity', { severity: 'fatal' }],
  ['an empty channel', { channel: '' }],
  ['a channel with a space', { channel: 'a b' }],
  ['a long channel', { channel: 'c'.repeat(65) }],
  ['an illegal name', { service_name: 'a:b' }],
])('%s is 400', async (_name, more) => {
  const answer = await notify('shop', more);
  expect(answer).toMatchObject({ status: 400, body: { error: expect.any(String), message: expect.any(String) } });
});
