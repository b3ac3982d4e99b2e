import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Caller } from '../payment/billing-service.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type EventWorld, startEventWorld } from './webhooks.ts';

const stack = new AsyncDisposableStack();
let world: EventWorld;
let shop: Caller;
let receiver: Receiver;
let number = 0;
let subject: string;

beforeAll(async () => {
  world = stack.use(await startEventWorld());
});

afterAll(() => stack.disposeAsync());

/** Each test has a subject and a receiver of its own. */
beforeEach(async () => {
  number += 1;
  subject = `shop-${number}`;
  shop = await world.callerOf(subject);
  receiver = stack.use(await startReceiver());
});

const eventually = (check: () => Promise<void>) => vi.waitFor(check, { timeout: 10_000, interval: 50 });

const ids = (from = receiver) => from.received.map(({ headers }) => headers['webhook-id']);

async function received(count: number, from = receiver, timeout = 10_000): Promise<void> {
  await vi.waitFor(() => expect(from.received.length).toBeGreaterThanOrEqual(count), { timeout, interval: 50 });
}

async function delivery(eventId: string): Promise<Record<string, unknown>> {
  const { body } = await shop.get(`/webhook-deliveries?eventId=${eventId}`);
  return (body as { webhookDeliveries: Record<string, unknown>[] }).webhookDeliveries[0] ?? {};
}

const pathOf = async (eventId: string) => `/webhook-deliveries/${String((await delivery(eventId))['id'])}`;
const statusOf = async (eventId: string) => (await delivery(eventId))['status'];

/** As if the time of the next attempt had come. */
const hurry = () => world.pool.query('UPDATE webhook_deliveries SET due_at = now() WHERE due_at IS NOT NULL');

test('an event is posted to its subject alone, to who wants its type, and can be verified', async () => {
  const elsewhere = stack.use(await startReceiver());
  await world.hook(await world.callerOf(`${subject}-2`), elsewhere.url);
  await world.hook(shop, `${receiver.url}/refunds`, ['refund.*']);
  const { secret } = await world.hook(shop, `${receiver.url}/payments?x=1`, ['payment.succeeded']);
  const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
  await world.happen(subject, 'payment.failed');
  await world.happen(subject, 'payment.succeeded_late');
  const [refund = ''] = await world.happen(subject, 'refund.failed');
  await received(2);
  expect(new Set(ids())).toEqual(new Set([eventId, refund]));
  expect(elsewhere.received).toEqual([]);

  const post = receiver.received.find(({ headers }) => headers['webhook-id'] === eventId);
  if (post === undefined) throw new Error('not received');
  expect(post.path).toBe('/payments?x=1');
  const verified = new Webhook(secret).verify(post.body, post.headers as Record<string, string>);
  expect(verified).toEqual({
    id: eventId,
    type: 'payment.succeeded',
    timestamp: expect.any(String),
    data: { id: expect.any(String), number: 0 },
  });
  await eventually(async () => expect(await statusOf(eventId)).toBe('delivered'));
  expect(await delivery(eventId)).toMatchObject({ attempts: 1, lastResult: 'answer 200', nextAttemptAt: null });
});

test('what was not taken is posted again as the same event, and a redirect is not followed', async () => {
  receiver.answer(500, 302, 200);
  const { secret } = await world.hook(shop, receiver.url);
  const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
  await received(1);
  await eventually(async () => expect(await delivery(eventId)).toMatchObject({ attempts: 1, status: 'pending' }));
  // By itself, after some seconds.
  await received(2);
  await eventually(async () =>
    expect(await delivery(eventId)).toMatchObject({ attempts: 2, lastResult: 'answer 302' }),
  );
  await hurry();
  await received(3);
  await eventually(async () => expect(await statusOf(eventId)).toBe('delivered'));
  expect(ids()).toEqual([eventId, eventId, eventId]);
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1);
  expect(receiver.received.map(({ path }) => path)).toEqual(['/', '/', '/']);
  for (const { body, headers } of receiver.received) {
    new Webhook(secret).verify(body, headers as Record<string, string>);
  }
});

test('a receiver that is down gets it once it is back', async () => {
  const { url } = receiver;
  await receiver[Symbol.asyncDispose]();
  const hook = await world.hook(shop, url);
  const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
  await eventually(async () =>
    expect(await delivery(eventId)).toMatchObject({ lastResult: 'no answer: ECONNREFUSED' }),
  );
  const back = stack.use(await startReceiver());
  await shop.patch(`/webhook-endpoints/${hook.id}`, { url: back.url });
  await received(1, back);
  expect(ids(back)).toEqual([eventId]);
});

test('a receiver that says when to come back gets nothing sooner', async () => {
  receiver.answer({ status: 429, retryAfter: '3' }, 200);
  await world.hook(shop, receiver.url);
  const [first = ''] = await world.happen(subject, 'payment.succeeded');
  await received(1);
  const askedAt = performance.now();
  await eventually(async () => expect((await delivery(first))['attempts']).toBe(1));
  const [second = ''] = await world.happen(subject, 'payment.failed');
  await received(2);
  expect(performance.now() - askedAt).toBeGreaterThan(2800);
  expect(ids()[1]).toBe(second);
  await received(3);
  expect(ids()[2]).toBe(first);
});

test('a receiver that hangs holds up nobody else', async () => {
  receiver.answer('hang');
  const quick = stack.use(await startReceiver());
  await Promise.all([world.hook(shop, receiver.url), world.hook(shop, quick.url)]);
  const events = await world.happen(subject, 'payment.succeeded', 60);
  await received(60, quick, 9000);
  expect(new Set(ids(quick))).toEqual(new Set(events));
  expect(quick.received).toHaveLength(60);
  // Ten at a time, whatever waits.
  expect(receiver.received.length).toBeLessThanOrEqual(10);
});

describe('an endpoint is disabled', () => {
  test('by 410, and gets what it missed once it is enabled again', async () => {
    receiver.answer(410);
    const { id } = await world.hook(shop, receiver.url);
    const [gone = ''] = await world.happen(subject, 'payment.succeeded');
    await eventually(async () =>
      expect((await shop.get(`/webhook-endpoints/${id}`)).body).toMatchObject({
        status: 'disabled',
        disabledReason: 'gone',
      }),
    );
    expect(await statusOf(gone)).toBe('dead');
    receiver.answer(200);
    await world.happen(subject, 'payment.failed');
    const replayed = await shop.post(`${await pathOf(gone)}/replay`);
    expect(replayed).toMatchObject({ status: 202, body: { status: 'pending', attempts: 0 } });
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(receiver.received).toHaveLength(1);
    await shop.patch(`/webhook-endpoints/${id}`, { enabled: true });
    await received(2);
    // What happened while it was disabled is not for it.
    expect(ids()).toEqual([gone, gone]);
  });

  test('by its owner, and loses nothing that was on its way', async () => {
    receiver.answer(500);
    const { id } = await world.hook(shop, receiver.url);
    const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
    await eventually(async () => expect((await delivery(eventId))['attempts']).toBe(1));
    const { body } = await shop.patch(`/webhook-endpoints/${id}`, { enabled: false });
    expect(body).toMatchObject({ status: 'disabled', disabledReason: 'owner' });
    receiver.answer(200);
    await hurry();
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(receiver.received).toHaveLength(1);
    await shop.patch(`/webhook-endpoints/${id}`, { enabled: true });
    await eventually(async () => expect(await statusOf(eventId)).toBe('delivered'));
  });

  test('after five days in which it took nothing, and not after one success', async () => {
    receiver.answer(500, 200, 500);
    const { id } = await world.hook(shop, receiver.url);
    const status = async () => (await shop.get(`/webhook-endpoints/${id}`)).body?.['disabledReason'];
    const fail = (days: number) =>
      world.pool.query('UPDATE webhook_endpoints SET failing_since = now() - make_interval(days => $2) WHERE id = $1', [
        id,
        days,
      ]);
    const next = async () => {
      const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
      await eventually(async () => expect((await delivery(eventId))['attempts']).toBe(1));
    };
    await fail(4);
    expect(await failingEndpoints()).toBe(1);
    await next();
    expect(await status()).toBeNull();
    await fail(6);
    await next();
    expect(await status()).toBeNull();
    await next();
    await fail(6);
    await next();
    await eventually(async () => expect(await status()).toBe('failing'));
    expect(await failingEndpoints()).toBe(0);
  });
});

async function failingEndpoints(): Promise<number> {
  const metrics = await (await fetch(`${world.service.service.adminUrl}/metrics`)).text();
  return Number(/^rollcall_webhook_endpoints_failing\{[^}]*\} (\d+)$/m.exec(metrics)?.[1]);
}

test('what is given up after ten attempts can be replayed', async () => {
  receiver.answer(500);
  await world.hook(shop, receiver.url);
  const [eventId = ''] = await world.happen(subject, 'payment.succeeded');
  for (let attempt = 1; attempt <= 10; attempt += 1) {
    await eventually(async () => expect((await delivery(eventId))['attempts']).toBe(attempt));
    await hurry();
  }
  expect(await delivery(eventId)).toMatchObject({ status: 'dead', nextAttemptAt: null });
  receiver.answer(200);
  await shop.post(`${await pathOf(eventId)}/replay`);
  await eventually(async () => expect(await delivery(eventId)).toMatchObject({ status: 'delivered', attempts: 1 }));
  expect(new Set(ids())).toEqual(new Set([eventId]));
});

test('a sender that is killed loses nothing, and what comes twice is the same event', async () => {
  const own = stack.use(await startEventWorld());
  const owner = await own.callerOf('shop');
  const replicas = [await own.service.startProcess()];
  await own.hook(owner, receiver.url);
  await own.service.service[Symbol.asyncDispose]();
  const events = await own.happen('shop', 'payment.succeeded', 300);
  await received(20);
  await replicas[0]?.kill();
  const atDeath = receiver.received.length;
  expect(atDeath).toBeLessThan(300);
  // As if the minute had passed for which the endpoint was the killed one's.
  await own.pool.query('UPDATE webhook_endpoints SET busy_until = now()');
  replicas.push(await own.service.startProcess());
  stack.defer(async () => void (await Promise.all(replicas.map((replica) => replica[Symbol.asyncDispose]()))));
  await vi.waitFor(() => expect(new Set(ids()).size).toBe(300), { timeout: 30_000, interval: 100 });
  expect(new Set(ids())).toEqual(new Set(events));
  const bodies = new Map<unknown, Set<string>>();
  for (const { headers, body } of receiver.received) {
    const known = bodies.get(headers['webhook-id']) ?? new Set();
    bodies.set(headers['webhook-id'], known.add(body));
  }
  expect([...bodies.values()].every(({ size }) => size === 1)).toBe(true);
});

test('deliveries are found by endpoint, event and status, by their subject alone', async () => {
  receiver.answer(500, 200);
  const [one, two] = [
    await world.hook(shop, receiver.url, ['payment.*']),
    await world.hook(shop, receiver.url, ['refund.*']),
  ];
  const [failed = ''] = await world.happen(subject, 'payment.failed');
  await received(1);
  const [taken = ''] = await world.happen(subject, 'refund.succeeded');
  await eventually(async () => expect(await statusOf(taken)).toBe('delivered'));
  await eventually(async () => expect((await delivery(failed))['attempts']).toBe(1));
  const list = async (query: string, caller = shop) => {
    const { body } = await caller.get(`/webhook-deliveries?${query}`);
    return (body as { webhookDeliveries: { eventId: string }[] }).webhookDeliveries.map(({ eventId }) => eventId);
  };
  expect(await list('')).toEqual([taken, failed]);
  expect(await list(`endpointId=${one.id}`)).toEqual([failed]);
  expect(await list(`endpointId=${two.id}&status=pending`)).toEqual([]);
  expect(await list('status=pending')).toEqual([failed]);
  expect(await list('limit=1')).toEqual([taken]);

  const other = await world.callerOf('nobody');
  expect(await list('', other)).toEqual([]);
  const path = await pathOf(failed);
  expect((await other.get(path)).status).toBe(404);
  expect((await other.post(`${path}/replay`)).status).toBe(404);
  expect((await shop.get(path)).body).toMatchObject({ eventId: failed });
  expect((await shop.get('/webhook-deliveries?status=lost&endpointId=x')).status).toBe(400);
});
