import { randomUUID } from 'node:crypto';
import { isStandardSignedWith, sign } from '@rollcall/platform/webhooks/signatures.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../../support/kube.ts';
import { createDatabase, type TestDatabase } from '../../support/postgres.ts';
import { type Receiver, startReceiver } from '../../support/receiver.ts';
import { type DeliveryFixture, startDelivery } from './fixture.ts';

let namespace: TestNamespace;
let database: TestDatabase;
let delivery: DeliveryFixture;
let receiver: Receiver;
/** By service, `*` for all. */
const secrets = new Map<string, string>();

beforeAll(async () => {
  namespace = await createNamespace('notify');
  database = await createDatabase();
  delivery = await startDelivery({ namespace: namespace.name, databaseUrl: database.url, retryLimit: 3 });
  receiver = await startReceiver();
  await vi.waitUntil(() => delivery.logs().includes('outbox ready'), { timeout: 20_000 });
});

afterAll(async () => {
  await receiver[Symbol.asyncDispose]();
  await delivery[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
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
  if (typeof more['secret'] === 'string') secrets.set(service_name, more['secret']);
}

/** As the service does, by its secret where there is one. */
function notify(service_name: string, more: Record<string, unknown> = {}) {
  const webhook_secret = secrets.get(service_name) ?? secrets.get('*');
  const message = { service_name, channel: 'chat', message: 'Hello', webhook_secret };
  return delivery.post('/webhooks/notify', { ...message, ...more });
}

/** What the API says of a service's notifications, newest first. */
async function deliveries(service: string, state = ''): Promise<Record<string, unknown>[]> {
  const filter = state === '' ? '' : `&state=${state}`;
  const { status, text } = await delivery.get(`/webhooks/deliveries?service_name=${service}${filter}`);
  expect(status).toBe(200);
  return JSON.parse(text).deliveries;
}

const deadLetters = (service: string) => deliveries(service, 'dead');

test('a notification arrives signed, and again until it is accepted, as the same message', {
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
    const message = { id: body.id, timestamp: String(headers['webhook-timestamp']), body: sent };
    expect(isStandardSignedWith(secret, message, String(headers['webhook-signature']))).toBe(true);
  }
  expect(last?.body).toBe(first?.body);
  await new Promise((resolve) => setTimeout(resolve, 2500));
  expect(receivedFor('shop')).toHaveLength(3);
  const { id, ...payload } = body;
  expect(await deliveries('shop')).toEqual([
    {
      id,
      service_name: 'shop',
      channel: 'chat',
      event: 'notification',
      state: 'delivered',
      attempts: 3,
      last_attempt_at: expect.stringMatching(/\+00:00$/),
      last_result: 'answer 200',
      created_at: expect.stringMatching(/\+00:00$/),
      payload,
    },
  ]);
  expect(delivery.logs()).not.toContain(secret);
  for (const table of ['registry_queue.job', 'deliveries']) {
    const { rows } = await delivery.pool.query(`SELECT * FROM ${table}`);
    expect(rows).not.toEqual([]);
    expect(JSON.stringify(rows)).not.toContain(secret);
    expect(JSON.stringify(rows)).not.toContain(new URL(receiver.url).host);
  }
});

test('what is refused is kept as a dead letter at once', async () => {
  await configure('refused');
  receiver.answer(410);
  await notify('refused');
  await expect
    .poll(() => deadLetters('refused'), eventually)
    .toMatchObject([
      { channel: 'chat', last_result: 'answer 410', attempts: 1, payload: { message: 'Hello', severity: 'info' } },
    ]);
  expect(receivedFor('refused')).toHaveLength(1);
  expect(receivedFor('refused')[0]?.headers).not.toHaveProperty('x-webhook-signature');
  expect(receivedFor('refused')[0]?.headers).not.toHaveProperty('webhook-signature');
});

test('what fails too often is kept as a dead letter; redirects are not followed', { timeout: 60_000 }, async () => {
  await configure('failing');
  receiver.answer(500, 429, 302, 408);
  await notify('failing');
  await expect
    .poll(() => deadLetters('failing'), eventually)
    .toMatchObject([{ last_result: 'answer 408', attempts: 4 }]);
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
  await expect.poll(() => deadLetters('deaf'), eventually).toMatchObject([{ attempts: 4 }]);
  expect(delivery.logs()).not.toContain('token-abc');
  await expect.poll(() => receivedFor('slow'), eventually).toHaveLength(2);
});

test('the channel of the service comes before the global one, each signed with its own secret', async () => {
  receiver.answer(200);
  await delivery.post('/webhooks/config', {
    endpoints: { chat: `${receiver.url}/global`, ops: `${receiver.url}/ops` },
    secret: 'global-and-long-enough',
  });
  secrets.set('*', 'global-and-long-enough');
  await configure('both', { secret: 'both-and-long-enough', webhook_secret: 'global-and-long-enough' });
  await configure('plain', { webhook_secret: 'global-and-long-enough' });
  for (const [service, channel, path, secret] of [
    ['both', 'chat', '/both', 'both-and-long-enough'],
    ['both', 'ops', '/ops', 'global-and-long-enough'],
    ['plain', 'chat', '/plain', 'global-and-long-enough'],
    ['other', 'chat', '/global', 'global-and-long-enough'],
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
  const { rows } = await delivery.pool.query("SELECT * FROM deliveries WHERE channel <> ALL ('{chat,ops}')");
  expect(rows).toEqual([]);
});

test('a dead letter is sent again as the same message, as often as any', { timeout: 60_000 }, async () => {
  await configure('again', { secret: 'k3y-and-long-enough', webhook_secret: 'global-and-long-enough' });
  receiver.answer(410, 500, 200);
  await notify('again');
  await expect.poll(() => deadLetters('again'), eventually).toHaveLength(1);
  const [dead] = await deadLetters('again');
  expect((await delivery.get(`/webhooks/deliveries/${String(dead?.['id'])}`)).body).toEqual(dead);
  const path = `/webhooks/deliveries/${String(dead?.['id'])}/replay`;
  for (const body of [undefined, {}, { webhook_secret: 'other-and-long-enough' }]) {
    expect((await delivery.post(path, body)).status).toBe(401);
  }
  const delivery_id = String(dead?.['id']);
  const postSigned = (content: object) => {
    const body = JSON.stringify(content);
    return delivery.postRaw(path, body, { 'x-webhook-signature': sign('k3y-and-long-enough', body) });
  };
  for (const content of [{}, { delivery_id }, { action: 'replay' }]) {
    expect((await postSigned(content)).status).toBe(401);
  }
  expect((await postSigned({ delivery_id: randomUUID(), action: 'replay' })).status).toBe(400);
  const answer = await postSigned({ delivery_id, action: 'replay' });
  expect(answer).toMatchObject({ status: 200, body: { status: 'accepted', id: dead?.['id'] } });
  await expect.poll(() => deliveries('again'), eventually).toMatchObject([{ state: 'delivered', attempts: 3 }]);
  const sent = receivedFor('again');
  expect(sent.map(({ headers }) => headers['webhook-id'])).toEqual(Array(3).fill(dead?.['id']));
  expect(new Set(sent.map((request) => request.body)).size).toBe(1);
});

test('what is not there can be neither read nor sent again: 404, whatever it is called', async () => {
  for (const id of [randomUUID(), 'x', '1', `${randomUUID()}'`, '..%2f']) {
    for (const answer of [
      await delivery.post(`/webhooks/deliveries/${id}/replay`, {}),
      await delivery.get(`/webhooks/deliveries/${id}`),
    ]) {
      expect(answer).toMatchObject({ status: 404, body: { error: 'Delivery not found', message: expect.any(String) } });
    }
  }
});

test('a bad question about deliveries is 400', async () => {
  for (const query of ['state=lost', 'limit=0', 'limit=x', 'service_name=a%20b']) {
    expect((await delivery.get(`/webhooks/deliveries?${query}`)).status).toBe(400);
  }
  const { body } = await delivery.get('/webhooks/deliveries?limit=1');
  expect(body['deliveries']).toHaveLength(1);
  expect(Number(body['total'])).toBeGreaterThan(1);
});

/** Of the job of the queue that sends it. */
function queueIdOf(service: string): string {
  return `(SELECT queue_id FROM deliveries WHERE service_name = '${service}')`;
}

describe('the queue is not what is remembered', () => {
  test('what it has lost is sent all the same', { timeout: 90_000 }, async () => {
    await configure('lost', { webhook_secret: 'global-and-long-enough' });
    receiver.answer(500, 500, 500, 200);
    await notify('lost');
    await expect.poll(async () => Number((await deliveries('lost'))[0]?.['attempts']), eventually).toBeGreaterThan(0);
    await delivery.pool.query(`DELETE FROM registry_queue.job WHERE id = ${queueIdOf('lost')}`);
    await expect
      .poll(() => deliveries('lost'), { timeout: 60_000, interval: 200 })
      .toMatchObject([{ state: 'delivered' }]);
    expect(new Set(receivedFor('lost').map(({ headers }) => headers['webhook-id'])).size).toBe(1);
  });

  test('what it has given up because the last sender died is a dead letter', { timeout: 90_000 }, async () => {
    await configure('cut', { webhook_secret: 'global-and-long-enough' });
    receiver.answer(500);
    await notify('cut');
    await expect.poll(async () => Number((await deliveries('cut'))[0]?.['attempts']), eventually).toBeGreaterThan(0);
    // As pg-boss leaves a job whose last attempt ran out of time.
    await delivery.pool.query(
      `UPDATE registry_queue.job SET state = 'failed', completed_on = now() WHERE id = ${queueIdOf('cut')}`,
    );
    await expect
      .poll(() => deadLetters('cut'), { timeout: 60_000, interval: 200 })
      .toMatchObject([{ last_result: expect.stringMatching(/cut short|answer 500/) }]);
  });
});

test('Slack and what is like it get their own form', async () => {
  receiver.answer(200);
  const endpoints = { slack: `${receiver.url}/by-name`, team: `${receiver.url}/by-url#slack` };
  await delivery.post('/webhooks/config', {
    service_name: 'chatty',
    endpoints,
    webhook_secret: 'global-and-long-enough',
  });
  for (const channel of ['slack', 'team']) {
    const path = channel === 'slack' ? '/by-name' : '/by-url';
    expect((await notify('chatty', { channel, message: 'a < b', severity: 'error' })).status).toBe(200);
    const find = () => receiver.received.find((request) => request.path === path);
    await expect.poll(find, eventually).toBeDefined();
    const body = JSON.parse(find()?.body ?? '');
    expect(body).toEqual({ text: ':x: a &lt; b', blocks: [expect.anything(), expect.anything()] });
  }
});

test('a channel that hangs does not hold up the others', { timeout: 120_000 }, async () => {
  await using dead = await startReceiver();
  await using alive = await startReceiver();
  dead.answer('hang');
  const endpoints = { dead: dead.url, alive: alive.url };
  await delivery.post('/webhooks/config', {
    service_name: 'mixed',
    endpoints,
    webhook_secret: 'global-and-long-enough',
  });
  // More than there are senders.
  for (let i = 0; i < 30; i += 1) await notify('mixed', { channel: 'dead' });
  await expect.poll(() => dead.received.length, eventually).toBeGreaterThan(0);
  for (let i = 0; i < 30; i += 1) await notify('mixed', { channel: 'alive' });
  await expect.poll(() => alive.received.length, eventually).toBe(30);
  expect(dead.received.length).toBeLessThan(30);
});

test.each([
  ['no service', { service_name: undefined }],
  ['no channel', { channel: undefined }],
  ['no message', { message: undefined }],
  ['an empty message', { message: '' }],
  ['a long message', { message: 'é'.repeat(16_385) }],
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
