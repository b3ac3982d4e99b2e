import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { rollcall } from '../client/rollcall-process.ts';
import { openEventStream } from '../support/event-stream.ts';
import { type Caller, codeOf, connectTo } from './billing-service.ts';
import {
  choose,
  letRefundsWait,
  madePayment,
  type PaymentService,
  refundsAtStripe,
  startPayment,
  untilPayment,
} from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment({ ROLLCALL_PROVIDER_TIMEOUT_SECONDS: '5' }));
  shop = await payment.callerOf('shop');
  database = stack.use(await connectTo(payment.databaseUrl));
});

afterEach(async () => {
  for (const simulator of [payment.payfast, payment.yoco, payment.stripe]) await simulator.reset();
});

afterAll(() => stack.disposeAsync());

async function count(table: string, where: string, parameters: readonly unknown[] = []): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${table} WHERE ${where}`,
    [...parameters],
  );
  return rows[0]?.count ?? 0;
}

describe('refunds', () => {
  test('of more than is left never both pass (case A12)', async () => {
    for (let round = 0; round < 10; round += 1) {
      const made = await madePayment(shop, { provider: 'stripe', amount: 10_000 });
      await choose(made, 'pay');
      await untilPayment(shop, made.id, 'succeeded');
      const refund = () => shop.post(`/payments/${made.id}/refunds`, { amount: 6000, reason: 'too much tea' });
      const answers = await Promise.all([refund(), refund(), refund()]);
      expect(answers.map(({ status }) => status).sort((one, two) => one - two)).toEqual([201, 422, 422]);
      const refused = answers.filter(({ status }) => status === 422);
      expect(refused.map(codeOf)).toEqual(['REFUND_EXCEEDS_PAYMENT', 'REFUND_EXCEEDS_PAYMENT']);
      expect(refused[0]?.body).toMatchObject({ error: { details: { left: 4000 } } });
    }
    expect([...(await refundsAtStripe(payment)).values()]).toEqual(Array.from({ length: 10 }, () => [6000]));
  });

  test('need no reason, and are told with their own id and amount', async () => {
    const made = await madePayment(shop, { provider: 'stripe', amount: 10_000 });
    await choose(made, 'pay');
    await untilPayment(shop, made.id, 'succeeded');
    const { body, headers } = await shop.post(`/payments/${made.id}/refunds`, { amount: 4000 });
    expect(body).toMatchObject({ status: 'succeeded', reason: 'Refund', amount: 4000 });
    const { pathname } = new URL(headers.get('location') ?? '', `http://shop/payments/${made.id}/refunds`);
    // Stripe tells of it, too, at any time.
    const shown = { ...body, updatedAt: expect.any(String) };
    expect((await shop.get(pathname)).body).toEqual(shown);
    const list = { refunds: [shown], total: 1, limit: 1, offset: 0, nextCursor: null };
    expect((await shop.get(`/payments/${made.id}/refunds?limit=1`)).body).toEqual(list);
    const other = await payment.callerOf('other');
    expect([(await other.get(pathname)).status, (await other.get('/refunds/1')).status]).toEqual([404, 404]);
    const admin = await payment.callerOf('root', 'payments:read payments:admin');
    expect((await admin.get(pathname)).status).toBe(200);
    const token = await payment.billing.tokenOf('shop', 'payments:read');
    await using stream = await openEventStream(`${payment.service.url}/api/v1/events`, '0', token);
    const told: unknown[] = [];
    while (!JSON.stringify(told).includes(made.id)) {
      told.push((await stream.until('refund.succeeded')).at(-1)?.data['data']);
    }
    const data = { id: body?.['id'], paymentId: made.id, amount: 4000, currency: 'ZAR', status: 'succeeded' };
    expect(told.at(-1)).toEqual(data);
  });

  test.each([0, -1, 0.5, '100', 2 ** 53])('of %j are refused by their form', async (amount) => {
    const { id } = await madePayment(shop);
    const answer = await shop.post(`/payments/${id}/refunds`, { amount, reason: 'nothing' });
    expect([answer.status, codeOf(answer)]).toEqual([400, 'INVALID_REQUEST']);
  });

  test('whose answer is lost are not made again, and are found', async () => {
    const made = await madePayment(shop, { provider: 'stripe' });
    await choose(made, 'pay');
    await untilPayment(shop, made.id, 'succeeded');
    payment.stripe.addFaults({ kind: 'accept-and-hang', match: 'POST /v1/refunds', times: 1 }, { kind: 'never' });
    const key = randomUUID();
    const order = { amount: 1000, reason: 'a spoon less' };
    const answer = await shop.post(`/payments/${made.id}/refunds`, order, key);
    expect([answer.status, answer.body?.['status']]).toEqual([201, 'processing']);
    await letRefundsWait(database, made.id);
    await untilPayment(shop, made.id, 'partially_refunded');
    expect(await count('ledger_entries', `payment_id = $1 AND kind = 'refund'`, [made.id])).toBe(1);
    expect((await refundsAtStripe(payment)).get(made.id)).toEqual([1000]);
  });

  test('whose call was lost are called for again, once', async () => {
    const id = await lostRefund('stripe');
    await letRefundsWait(database, id);
    await untilPayment(shop, id, 'partially_refunded');
    expect((await refundsAtStripe(payment)).get(id)).toEqual([1000]);
    const [first, again] = payment.stripe
      .requests()
      .filter(({ target, method }) => `${method} ${target}` === 'POST /v1/refunds');
    expect(first?.body).toBe(again?.body);
  });

  test('that no call can make are failed, and release what they reserved', async () => {
    const id = await lostRefund('stripe');
    payment.stripe.addFaults({ kind: 'status', status: 500, match: 'POST' });
    await database.query('UPDATE refunds SET calls = 10 WHERE payment_id = $1', [id]);
    await letRefundsWait(database, id);
    expect(await untilRefund(id, 'failed')).toMatchObject({ failure: 'not_made' });
    expect(await count('payments', 'id = $1 AND reserved = 0', [id])).toBe(1);
  });

  test('of PayFast are believed to be lost after a day, and no refund of the payment is made meanwhile', async () => {
    const id = await lostRefund('payfast');
    expect(
      (await shop.post(`/payments/${id}/refunds`, { amount: 2000, reason: 'two spoons less' })).body,
    ).toMatchObject({
      status: 'pending',
    });
    await letRefundsWait(database, id, '23 hours');
    await delay(1500);
    expect(sentToPayFast()).toBe(1);
    for (let left = 40; (await shop.get(`/payments/${id}`)).body?.['amountRefunded'] !== 3000 && left > 0; left -= 1) {
      await letRefundsWait(database, id, '2 hours');
      await delay(1000);
    }
    expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ amountRefunded: 3000 });
    expect(sentToPayFast()).toBe(3);
  });

  test('that the provider refuses release what they reserved', async () => {
    const made = await madePayment(shop, { provider: 'yoco' });
    await choose(made, 'pay');
    await untilPayment(shop, made.id, 'succeeded');
    payment.yoco.addFaults({ kind: 'status', status: 400, match: '/refund', times: 1 });
    const answer = await shop.post(`/payments/${made.id}/refunds`, { reason: 'all of it' });
    expect([answer.status, codeOf(answer)]).toEqual([422, 'REFUND_REFUSED']);
    expect((await shop.post(`/payments/${made.id}/refunds`, { reason: 'all of it' })).status).toBe(201);
    await untilPayment(shop, made.id, 'refunded');
  });
});

describe('a refund in review', () => {
  test('is over by what a person found out: the money went back', async () => {
    const { id, refundId } = await refundInReview();
    const path = `/payments/${id}/refunds/${refundId}/resolve`;
    const decision = { outcome: 'succeeded', reason: 'It is on the statement of the bank' };
    const resolved = await shop.post(path, decision);
    expect(resolved.body).toMatchObject({ status: 'succeeded', failure: null, resolution: decision.reason });
    expect((await shop.post(path, decision)).body).toEqual(resolved.body);
    expect(codeOf(await shop.post(path, { ...decision, outcome: 'failed' }))).toBe('CONFLICT');
    expect((await shop.get(`/payments/${id}`)).body).toMatchObject({
      status: 'partially_refunded',
      amountRefunded: 1000,
    });
    expect(await count('ledger_entries', `payment_id = $1 AND kind = 'refund'`, [id])).toBe(1);
    expect(
      await count('refunds', `id = $1 AND position('statement' in encode(sealed, 'escape')) > 0`, [refundId]),
    ).toBe(0);
  });

  test('is over by what a person found out: it did not, and may be asked for again', async () => {
    const { id, refundId } = await refundInReview();
    const admin = await payment.callerOf('root', 'payments:read payments:admin refunds:write');
    const path = `/payments/${id}/refunds/${refundId}/resolve`;
    const answer = await admin.post(path, { outcome: 'failed', reason: 'Stripe has none' });
    expect(answer.body).toMatchObject({ status: 'failed', failure: 'outcome_unknown' });
    expect(await count('payments', 'id = $1 AND reserved = 0 AND refunded = 0', [id])).toBe(1);
    const { events } = (await shop.get(`/payments/${id}`)).body as { readonly events: readonly unknown[] };
    expect(events.at(-1)).toMatchObject({ event: 'refund_failed', source: 'caller', actor: 'root' });
    await payment.stripe.reset();
  });

  test('is found and resolved by the command line', async () => {
    const { id, refundId } = await refundInReview();
    const token = await payment.billing.tokenOf('shop', 'payments:read refunds:write');
    const env = { ROLLCALL_GATEWAY: payment.front.url, ROLLCALL_TOKEN: token };
    const waiting = await rollcall(['refunds', '--status', 'needs_review'], { env });
    expect(waiting).toMatchObject({ code: 0, err: '' });
    expect(waiting.out).toMatch(new RegExp(`${refundId} +${id} +ZAR 10\\.00 +needs_review +outcome_unknown`));
    const resolve = ['resolve-refund', id, refundId, '--outcome', 'succeeded'];
    expect(await rollcall(resolve, { env })).toMatchObject({ code: 2, err: expect.stringContaining('--reason') });
    const done = await rollcall([...resolve, '--reason', 'On the statement'], { env });
    expect([done.code, done.out]).toEqual([0, expect.stringMatching(/ZAR 10\.00 +succeeded/)]);
    const again = await rollcall(['resolve-refund', id, refundId, '--outcome', 'failed', '--reason', 'No'], { env });
    expect([again.code, again.err]).toEqual([1, expect.stringContaining('Its state does not allow that')]);
    await payment.stripe.reset();
  });

  test('is of its payment and its owner, and in no other state', async () => {
    const { id, refundId } = await refundInReview();
    const other = await payment.callerOf('other');
    const { id: another } = await madePayment(shop);
    const decision = { outcome: 'failed', reason: 'It is another one' };
    for (const [caller, path] of [
      [other, `/payments/${id}/refunds/${refundId}/resolve`],
      [shop, `/payments/${another}/refunds/${refundId}/resolve`],
      [shop, `/payments/${id}/refunds/x/resolve`],
    ] as const) {
      expect(codeOf(await caller.post(path, decision))).toBe('NOT_FOUND');
    }
    const faulty = await shop.post(`/payments/${id}/refunds/${refundId}/resolve`, { outcome: 'paid', reason: '' });
    expect([faulty.status, codeOf(faulty)]).toEqual([400, 'INVALID_REQUEST']);
  });
});

test('a refund that the bank works on for days is in no review', async () => {
  const made = await madePayment(shop, { provider: 'yoco' });
  await choose(made, 'pay');
  await untilPayment(shop, made.id, 'succeeded');
  payment.yoco.addFaults({ kind: 'never' });
  await shop.post(`/payments/${made.id}/refunds`, { amount: 1000, reason: 'a spoon less' });
  await database.query('UPDATE refunds SET look_ups = 9, last_look_up_at = now() WHERE payment_id = $1', [made.id]);
  await letRefundsWait(database, made.id, '100 hours');
  await delay(1500);
  expect((await untilRefund(made.id, 'processing')).failure).toBeNull();
  await letRefundsWait(database, made.id, '700 hours');
  expect(await untilRefund(made.id, 'needs_review')).toMatchObject({ failure: 'outcome_unknown' });
});

/** One whose call is answered 500 and was not taken: nobody knows. */
async function lostRefund(provider: 'payfast' | 'stripe'): Promise<string> {
  const made = await madePayment(shop, { provider });
  await choose(made, 'pay');
  await untilPayment(shop, made.id, 'succeeded');
  payment[provider].addFaults({ kind: 'status', status: 500, match: 'POST', times: 1 });
  const answer = await shop.post(`/payments/${made.id}/refunds`, { amount: 1000, reason: 'a spoon less' });
  expect([answer.status, answer.body?.['status']]).toEqual([201, 'processing']);
  return made.id;
}

/** One whose outcome nobody could say for three days. */
async function refundInReview(): Promise<{ readonly id: string; readonly refundId: string }> {
  const id = await lostRefund('stripe');
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'refunds' });
  await database.query('UPDATE refunds SET look_ups = 9 WHERE payment_id = $1', [id]);
  await letRefundsWait(database, id, '73 hours');
  const { id: refundId } = await untilRefund(id, 'needs_review');
  return { id, refundId };
}

async function untilRefund(id: string, status: string) {
  for (let left = 600; left > 0; left -= 1) {
    const refunds = (await shop.get(`/payments/${id}/refunds`)).body?.['refunds'];
    const found = Array.isArray(refunds) ? refunds.find((refund) => refund.status === status) : undefined;
    if (found !== undefined) return found;
    await delay(50);
  }
  throw new Error(`No refund is ${status}`);
}

function sentToPayFast(): number {
  return payment.payfast.requests().filter(({ target, method }) => method === 'POST' && target.startsWith('/refunds'))
    .length;
}
