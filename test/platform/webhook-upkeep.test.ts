import { randomUUID } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Caller } from '../payment/billing-service.ts';
import { openEventStream } from '../support/event-stream.ts';
import { type Receiver, startReceiver } from '../support/receiver.ts';
import { type EventWorld, SCOPE, startEventWorld } from './webhooks.ts';

const stack = new AsyncDisposableStack();
let world: EventWorld;
let shop: Caller;

beforeAll(async () => {
  world = stack.use(await startEventWorld());
  shop = await world.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

async function received(receiver: Receiver, count: number) {
  await expect.poll(() => receiver.received.length, { timeout: 10_000 }).toBe(count);
  const last = receiver.received[count - 1];
  if (last === undefined) throw new Error('Nothing was received');
  return last;
}

/** Whether a receiver that has one secret takes what was sent. */
function isTaken({ headers, body }: Awaited<ReturnType<typeof received>>, secret: string): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

test('after a rotation both secrets hold for a day, and then the new one alone', async () => {
  const receiver = stack.use(await startReceiver());
  const { id, secret: old } = await world.hook(shop, receiver.url);
  const path = `/webhook-endpoints/${id}`;
  const key = randomUUID();
  const answers = await Promise.all([1, 2, 3].map(() => shop.post(`${path}/rotate-secret`, {}, key)));
  for (const { status } of answers) expect(status).toBeOneOf([200, 409]);
  const rotated = await shop.post(`${path}/rotate-secret`, {}, key);
  const { secret, previousSecretUntil, ...shown } = rotated.body as Record<string, string>;
  expect(secret).toMatch(/^whsec_/);
  expect(secret).not.toBe(old);
  expect(Date.parse(String(previousSecretUntil)) - Date.now()).toBeGreaterThan(23 * 3_600_000);
  expect((await shop.get(path)).body).toEqual(shown);
  await shop.patch(path, { description: 'changed' });
  await shop.post(`${path}/test`, {});
  const both = await received(receiver, 1);
  expect([isTaken(both, old), isTaken(both, String(secret))]).toEqual([true, true]);
  expect(both.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/);
  const later = (await shop.post(`${path}/rotate-secret`, {}, randomUUID())).body as Record<string, string>;
  await shop.post(`${path}/test`, {});
  const next = await received(receiver, 2);
  expect([old, secret, later['secret']].map((each) => isTaken(next, String(each)))).toEqual([false, true, true]);
});

test('a test event reaches its endpoint alone, whatever that wants, and no stream', async () => {
  const [asked, other] = [stack.use(await startReceiver()), stack.use(await startReceiver())];
  const { id, secret } = await world.hook(shop, asked.url, ['refund.*']);
  await world.hook(shop, other.url);
  const key = randomUUID();
  const sent = await shop.post(`/webhook-endpoints/${id}/test`, {}, key);
  expect(sent).toMatchObject({ status: 202, body: { endpointId: id, eventType: 'webhook.test', status: 'pending' } });
  expect((await shop.post(`/webhook-endpoints/${id}/test`, {}, key)).body).toEqual(sent.body);
  const post = await received(asked, 1);
  expect(isTaken(post, secret)).toBe(true);
  expect(JSON.parse(post.body)).toMatchObject({ type: 'webhook.test', data: { id } });
  await world.happen('shop', 'payment.succeeded');
  await received(other, 1);
  expect(JSON.parse(other.received[0]?.body ?? '')).toMatchObject({ type: 'payment.succeeded' });
  const { rows } = await world.pool.query("SELECT FROM events WHERE type = 'webhook.test' AND position > 0");
  expect(rows).toEqual([]);
});

test('a test event is no place to go on from: nothing that was read comes again', async () => {
  const receiver = stack.use(await startReceiver());
  const reader = await world.callerOf('reader');
  const { id } = await world.hook(reader, receiver.url, ['refund.*']);
  await world.happen('reader', 'payment.succeeded', 3);
  const sent = await reader.post(`/webhook-endpoints/${id}/test`, {});
  await world.settled();
  const token = await world.service.tokenOf('reader', SCOPE);
  const eventId = String(sent.body?.['eventId']);
  const stream = stack.use(await openEventStream(`${world.service.service.url}/api/v1/events`, eventId, token));
  expect((await stream.until('synced')).map(({ type }) => type)).toEqual(['reset', 'synced']);
});

test('both are for the owner of the endpoint', async () => {
  const receiver = stack.use(await startReceiver());
  const { id } = await world.hook(shop, receiver.url);
  const other = await world.callerOf('other');
  for (const action of ['test', 'rotate-secret']) {
    expect((await other.post(`/webhook-endpoints/${id}/${action}`, {})).status).toBe(404);
    expect((await shop.post(`/webhook-endpoints/none/${action}`, {})).status).toBe(404);
    const reader = await world.service.callerOf('shop', 'payments:read');
    expect((await reader.post(`/webhook-endpoints/${id}/${action}`, {})).status).toBe(403);
  }
  expect(receiver.received).toEqual([]);
});
