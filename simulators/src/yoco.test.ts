import { once } from 'node:events';
import { createServer } from 'node:http';
import { Webhook, WebhookVerificationError } from 'standardwebhooks';
import { request } from 'undici';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Simulator } from './simulator.ts';
import { type Receiver, startReceiver } from './testing/receiver.ts';
import { startYoco } from './yoco.ts';

// Of Standard Webhooks' documentation; any 24 bytes would do.
const SECRET = 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX';
const KEY = 'sk_live_simulated';
const CHECKOUT = {
  amount: 14_950,
  currency: 'ZAR',
  successUrl: 'https://shop.example/paid',
  failureUrl: 'https://shop.example/failed',
  cancelUrl: 'https://shop.example/cancelled',
  metadata: { order: '7' },
};
let yoco: Simulator;
let receiver: Receiver;

beforeEach(async () => {
  receiver = await startReceiver();
  yoco = await startYoco({ webhook: { url: `${receiver.url}/yoco`, secret: SECRET }, retryDelaysMs: [5, 10] });
});

afterEach(async () => {
  await yoco.stop();
  await receiver[Symbol.asyncDispose]();
});

describe('a checkout', () => {
  test('is paid at its page, and the merchant is told so', async () => {
    const { body: made, status } = await call('POST', '/checkouts', CHECKOUT);
    expect(status).toBe(200);
    expect(made).toMatchObject({ ...CHECKOUT, status: 'created', paymentId: null, processingMode: 'live' });
    const page = await request(made.redirectUrl);
    expect(await page.body.text()).toContain('R149.50');
    expect((await call('GET', `/checkouts/${made.id}`)).body.status).toBe('started');
    const back = await choose(made, 'pay');
    expect(back).toMatchObject({ statusCode: 303, headers: { location: CHECKOUT.successUrl } });
    await yoco.idle();
    const paid = (await call('GET', `/checkouts/${made.id}`)).body;
    expect(paid).toMatchObject({ status: 'completed', paymentId: expect.stringMatching(/^p_/) });
    expect(eventAt(0)).toMatchObject({
      type: 'payment.succeeded',
      payload: {
        id: paid.paymentId,
        type: 'payment',
        amount: 14_950,
        currency: 'ZAR',
        mode: 'live',
        metadata: { order: '7', checkoutId: made.id },
      },
    });
    expect((await choose(made, 'pay')).statusCode).toBe(409);
    await yoco.idle();
    expect(receiver.taken).toHaveLength(1);
  });

  test('is declined, tried again, and cancelled', async () => {
    const made = await create();
    expect((await choose(made, 'decline')).headers['location']).toBe(CHECKOUT.failureUrl);
    expect((await choose(made, 'cancel')).headers['location']).toBe(CHECKOUT.cancelUrl);
    await yoco.idle();
    expect(receiver.taken.map((_taken, index) => eventAt(index).type)).toEqual(['payment.failed']);
    expect((await call('GET', `/checkouts/${made.id}`)).body).toMatchObject({ paymentId: null });
  });

  test.each([
    ['less than R2.00', { amount: 199 }],
    ['an amount that is no integer', { amount: 149.5 }],
    ['an amount as text', { amount: '14950' }],
    ['another currency', { currency: 'USD' }],
    ['a member that there is not', { ammount: 1 }],
    ['a URL that is none', { successUrl: 'javascript:alert(1)' }],
  ])('is refused with %s', async (_name, members) => {
    expect(await call('POST', '/checkouts', { ...CHECKOUT, ...members })).toMatchObject({
      status: 400,
      body: { description: expect.stringMatching(/./) },
    });
  });

  test('is for nobody without the key of the merchant', async () => {
    expect(await call('POST', '/checkouts', CHECKOUT, { authorization: 'Bearer sk_live_other' })).toMatchObject({
      status: 403,
    });
  });
});

describe('a key', () => {
  test('stands for one checkout, whatever is lost', async () => {
    yoco.addFaults({ kind: 'reset', times: 1 });
    const headers = { 'idempotency-key': 'pay:1:1' };
    await expect(call('POST', '/checkouts', CHECKOUT, headers)).rejects.toThrow(/ECONNRESET|closed/);
    const second = await call('POST', '/checkouts', CHECKOUT, headers);
    const third = await call('POST', '/checkouts', CHECKOUT, headers);
    expect(third.body).toEqual(second.body);
    expect([second, third].map(({ replayed }) => replayed)).toEqual(['true', 'true']);
    expect(await shown()).toMatchObject({ checkouts: [{ id: second.body.id }] });
  });

  test('replays refusals too, and stands for no other request', async () => {
    const headers = { 'idempotency-key': 'k' };
    const refused = await call('POST', '/checkouts', { ...CHECKOUT, amount: 1 }, headers);
    expect(refused).toMatchObject({ status: 400, replayed: undefined });
    expect(await call('POST', '/checkouts', { ...CHECKOUT, amount: 1 }, headers)).toMatchObject({
      status: 400,
      replayed: 'true',
    });
    expect(await call('POST', '/checkouts', CHECKOUT, headers)).toMatchObject({ status: 422 });
  });

  test('is in use while the first request is', async () => {
    const made = await create();
    await choose(made, 'pay');
    await yoco.idle();
    const headers = { 'idempotency-key': 'refund:1' };
    const again = () => call('POST', `/checkouts/${made.id}/refund`, {}, headers);
    yoco.addFaults({ kind: 'before-the-answer', match: 'refund' });
    const meanwhile = Promise.withResolvers<Awaited<ReturnType<typeof again>>>();
    await using merchant = createServer((_request, response) => {
      again().then(meanwhile.resolve, meanwhile.reject);
      meanwhile.promise.then(
        () => response.end(),
        () => response.destroy(),
      );
    });
    merchant.listen(0, '127.0.0.1');
    await once(merchant, 'listening');
    const address = merchant.address();
    const port = typeof address === 'object' ? address?.port : undefined;
    await call('POST', '/webhooks', { name: 'merchant', url: `http://127.0.0.1:${port}/` });
    expect(await again()).toMatchObject({ status: 202, replayed: undefined });
    expect((await meanwhile.promise).status).toBe(409);
    expect(await again()).toMatchObject({ status: 202, replayed: 'true' });
  });
});

describe('a refund', () => {
  test('takes back parts, then the rest, and nothing more', async () => {
    const made = await create();
    expect(await refund(made, {})).toMatchObject({ status: 400 });
    await choose(made, 'pay');
    expect(await refund(made, { amount: 10_000 })).toMatchObject({
      status: 202,
      body: { id: made.id, refundId: expect.stringMatching(/^rfd_/) },
    });
    expect(await refund(made, { amount: 5000 })).toMatchObject({ status: 400 });
    for (const amount of [0, -1, 0.5]) expect(await refund(made, { amount })).toMatchObject({ status: 400 });
    expect(await refund(made, {})).toMatchObject({ status: 202 });
    expect(await refund(made, {})).toMatchObject({
      body: { description: 'Payment has already been refunded.' },
    });
    await yoco.idle();
    expect(receiver.taken.slice(1).map((_taken, index) => eventAt(index + 1))).toMatchObject([
      { type: 'refund.succeeded', payload: { amount: 10_000, refundableAmount: 4950 } },
      { type: 'refund.succeeded', payload: { amount: 4950, refundableAmount: 0 } },
    ]);
    const { paymentId } = (await call('GET', `/checkouts/${made.id}`)).body;
    const listed = await request(`${yoco.url}/payments/${paymentId}/refunds`, {
      headers: { authorization: `Bearer ${KEY}` },
    });
    expect(await listed.body.json()).toMatchObject({ refunds: [{ amount: 10_000 }, { amount: 4950 }] });
  });

  test('that fails gives its amount free again, and says so by an event only', async () => {
    const made = await create();
    await choose(made, 'pay');
    yoco.setOutcomes({ [made.id]: 'refund-failed' });
    expect(await refund(made, {})).toMatchObject({ status: 202, body: { status: 'successful' } });
    await yoco.idle();
    expect(eventAt(1)).toMatchObject({ type: 'refund.failed', payload: { failureReason: expect.any(String) } });
    yoco.setOutcomes({ [made.id]: 'refunded' });
    expect(await refund(made, {})).toMatchObject({ status: 202 });
  });

  test('is for live payments only', async () => {
    await yoco.stop();
    yoco = await startYoco({ secretKey: 'sk_test_simulated' });
    const made = await create({ authorization: 'Bearer sk_test_simulated' });
    expect(made.processingMode).toBe('test');
    await choose(made, 'pay');
    expect(
      await call('POST', `/checkouts/${made.id}/refund`, {}, { authorization: 'Bearer sk_test_simulated' }),
    ).toMatchObject({ status: 400 });
  });
});

describe('events', () => {
  test('are signed anew for each attempt, as standardwebhooks verifies it', async () => {
    receiver.answers.push(500, 404);
    await choose(await create(), 'pay');
    await yoco.idle();
    const ids = receiver.taken.map(({ headers, body }) => {
      expect(verify(headers, body)).toMatchObject({ type: 'payment.succeeded' });
      return headers['webhook-id'];
    });
    expect(ids).toHaveLength(3);
    expect(new Set(ids).size).toBe(1);
  });

  test.each([
    ['bad-signature', 14_950, false],
    ['wrong-amount', 15_050, true],
  ] as const)('are wrong in one way: %s', async (kind, amount, isSigned) => {
    yoco.addFaults({ kind });
    await choose(await create(), 'pay');
    await yoco.idle();
    expect(eventAt(0).payload.amount).toBe(amount);
    const { headers, body } = receiver.taken[0] ?? { headers: {}, body: '' };
    expect(isVerified(headers, body)).toBe(isSigned);
  });

  test('are of a checkout of somebody else where they are told to', async () => {
    yoco.addFaults({ kind: 'wrong-merchant' });
    const made = await create();
    await choose(made, 'pay');
    await yoco.idle();
    expect(eventAt(0).payload.metadata.checkoutId).not.toBe(made.id);
  });

  test('go to each webhook that is registered, with a secret of its own that is shown once', async () => {
    const { body: webhook, status } = await call('POST', '/webhooks', {
      name: 'second',
      url: `${receiver.url}/second`,
    });
    expect(status).toBe(201);
    const { subscriptions } = (await call('GET', '/webhooks')).body;
    expect(subscriptions).toHaveLength(2);
    expect(JSON.stringify(subscriptions)).not.toContain('whsec_');
    await choose(await create(), 'pay');
    await yoco.idle();
    const second = receiver.taken.find(({ target }) => target === '/second');
    expect(verify(second?.headers ?? {}, second?.body ?? '', webhook.secret)).toMatchObject({
      type: 'payment.succeeded',
    });
    for (const { id } of subscriptions) expect(await call('DELETE', `/webhooks/${id}`)).toMatchObject({ status: 204 });
    await choose(await create(), 'pay');
    await yoco.idle();
    expect(receiver.taken).toHaveLength(2);
  });
});

function verify(headers: Receiver['taken'][number]['headers'], body: string, secret = SECRET): unknown {
  const own = Object.entries(headers).map(([name, value]) => [name, String(value)] as const);
  return new Webhook(secret).verify(body, Object.fromEntries(own));
}

function isVerified(...signed: Parameters<typeof verify>): boolean {
  try {
    verify(...signed);
    return true;
  } catch (error) {
    if (error instanceof WebhookVerificationError) return false;
    throw error;
  }
}

function eventAt(index: number) {
  return JSON.parse(receiver.taken[index]?.body ?? 'null');
}

async function shown(): Promise<unknown> {
  return await (await request(`${yoco.url}/_control/state`)).body.json();
}

async function create(headers: Readonly<Record<string, string>> = {}) {
  return (await call('POST', '/checkouts', CHECKOUT, headers)).body;
}

async function refund({ id }: { readonly id: string }, body: unknown) {
  return await call('POST', `/checkouts/${id}/refund`, body);
}

function choose({ redirectUrl }: { readonly redirectUrl: string }, outcome: string) {
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  return request(redirectUrl, { method: 'POST', headers, body: `outcome=${outcome}` });
}

async function call(
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  ...[body, headers = {}]: [body?: unknown, headers?: Readonly<Record<string, string>>]
) {
  const answer = await request(`${yoco.url}/api${path}`, {
    method,
    headers: { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', ...headers },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const text = await answer.body.text();
  const { statusCode: status, headers: answered } = answer;
  return { status, replayed: answered['idempotent-replayed'], body: text === '' ? undefined : JSON.parse(text) };
}
