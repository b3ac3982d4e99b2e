import { createHmac, randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Caller, codeOf, connectTo, faultsOf, idOf } from './billing-service.ts';
import { choose, madePayment, type PaymentService, SECRET, startPayment, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  shop = await payment.callerOf('shop');
  database = stack.use(await connectTo(payment.databaseUrl));
});

afterAll(() => stack.disposeAsync());

type StripeObject = Readonly<Record<string, unknown>>;

async function atStripe(object: string, paymentId: string): Promise<StripeObject> {
  const all = (await (await fetch(`${payment.stripe.url}/_control/state`)).json()) as readonly StripeObject[];
  const isOurs = ({ metadata }: StripeObject) => JSON.stringify(metadata).includes(paymentId);
  const found = all.find((each) => each['object'] === object && isOurs(each));
  if (found === undefined) throw new Error(`Stripe has no ${object}`);
  return found;
}

/** Sends an event as Stripe would, and waits until it is worked off. */
async function tell(type: string, object: StripeObject): Promise<void> {
  const id = `evt_${randomUUID()}`;
  const created = Math.floor(Date.now() / 1000);
  const body = JSON.stringify({ id, object: 'event', type, created, livemode: false, data: { object } });
  const signature = createHmac('sha256', SECRET).update(`${created}.${body}`).digest('hex');
  const response = await fetch(`${payment.service.url}/api/v1/notifications/stripe`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'stripe-signature': `t=${created},v1=${signature}` },
    body,
  });
  expect(response.status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await database.query('SELECT state, attempts FROM notifications WHERE event_key = $1', [id]);
    expect(rows).toEqual([{ state: 'done', attempts: 0 }]);
  }, 20_000);
}

async function paid(): Promise<string> {
  const made = await madePayment(shop, { provider: 'stripe' });
  await choose(made, 'pay');
  await untilPayment(shop, made.id, 'succeeded');
  await payment.stripe.idle();
  return made.id;
}

async function balances(): Promise<unknown> {
  return (await shop.get('/ledger/balances')).body;
}

test('a second charge that never was is dismissed, with a reason that the history has', async () => {
  const id = await paid();
  const before = await balances();
  const session = await atStripe('checkout.session', id);
  const again = { ...session, payment_intent: `pi_${randomUUID()}` };
  await tell('checkout.session.completed', again);
  expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ status: 'needs_review', reason: 'paid_twice' });
  const path = `/payments/${id}/resolve`;
  expect(faultsOf(await shop.post(path, { outcome: 'dismissed', reason: 'one\r\ntwo' }))).toEqual(['body/reason']);
  expect((await shop.post(path, { outcome: 'unpaid' })).status).toBe(409);
  const reason = 'Stripe has one charge';
  expect((await shop.post(path, { outcome: 'dismissed', reason })).body).toMatchObject({ status: 'succeeded' });
  const { body } = await shop.get(`/payments/${id}`);
  const { events } = body as { readonly events: readonly unknown[] };
  expect(events.at(-1)).toMatchObject({ event: 'resolved_dismissed', source: 'caller', note: reason });
  const { rows } = await database.query<{ text: string }>(
    `SELECT encode(sealed, 'escape') AS text FROM payment_notes WHERE payment_id = $1`,
    [id],
  );
  expect(rows).toHaveLength(1);
  expect(rows[0]?.text).not.toContain('Stripe');
  await tell('checkout.session.completed', again);
  expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ status: 'succeeded' });
  expect(await balances()).toEqual(before);

  const refund = await atStripeRefund(id);
  await tell('refund.updated', refund);
  await untilPayment(shop, id, 'needs_review');
  expect((await shop.post(path, { outcome: 'refunded' })).body).toMatchObject({
    status: 'partially_refunded',
    amountRefunded: 1000,
  });
});

/** A refund that somebody makes at the page of Stripe. */
async function atStripeRefund(paymentId: string): Promise<StripeObject> {
  const { payment_intent: intent } = await atStripe('checkout.session', paymentId);
  const money = { amount: 1000, currency: 'zar' };
  return {
    id: `re_${randomUUID()}`,
    object: 'refund',
    status: 'succeeded',
    payment_intent: intent,
    metadata: {},
    ...money,
  };
}

test('as much goes back twice by decisions, since a refund came back in between: both are entered', async () => {
  const id = await paid();
  for (const state of ['succeeded', 'partially_refunded']) {
    // As though the payer's bank had returned what went back before.
    await database.query(`UPDATE payments SET refunded = 0 WHERE id = $1`, [id]);
    await untilPayment(shop, id, state);
    await tell('refund.updated', await atStripeRefund(id));
    await untilPayment(shop, id, 'needs_review');
    await shop.post(`/payments/${id}/resolve`, { outcome: 'refunded' });
  }
  const { rows } = await database.query(
    `SELECT amount::int FROM ledger_entries JOIN ledger_postings ON entry_id = id
     WHERE payment_id = $1 AND kind = 'refund' AND account = 'provider:stripe'`,
    [id],
  );
  expect(rows).toEqual([{ amount: -1000 }, { amount: -1000 }]);
});

test('a payment without money that is booked has nothing to keep', async () => {
  const made = await madePayment(shop, { provider: 'stripe' });
  const session = await atStripe('checkout.session', made.id);
  const paidWrongly = {
    status: 'complete',
    payment_status: 'paid',
    amount_total: 1,
    payment_intent: `pi_${randomUUID()}`,
  };
  await tell('checkout.session.completed', { ...session, ...paidWrongly });
  await untilPayment(shop, made.id, 'needs_review');
  const refused = await shop.post(`/payments/${made.id}/resolve`, { outcome: 'dismissed' });
  expect(codeOf(refused)).toBe('CONFLICT');
  expect(refused.body).toMatchObject({ error: { message: expect.stringContaining('does not go with that outcome') } });
  expect((await shop.post(`/payments/${made.id}/cancel`)).body).toMatchObject({
    error: { message: expect.stringContaining('Its state does not allow that') },
  });
  expect((await shop.post(`/payments/${made.id}/resolve`, { outcome: 'unpaid' })).body).toMatchObject({
    status: 'failed',
  });
});

test.each([
  ['while it is in review', 'needs_review'],
  ['after a person took it for unpaid', 'failed'],
])('a charge whose amount is corrected %s is booked by that amount', async (_when, state) => {
  const made = await madePayment(shop, { provider: 'stripe' });
  const session = await atStripe('checkout.session', made.id);
  const told = { ...session, status: 'complete', payment_status: 'paid', payment_intent: `pi_${randomUUID()}` };
  const path = `/payments/${made.id}/resolve`;
  await tell('checkout.session.completed', { ...told, amount_total: 1 });
  await untilPayment(shop, made.id, 'needs_review');
  if (state === 'failed') await shop.post(path, { outcome: 'unpaid' });
  await tell('checkout.session.completed', told);
  await shop.post(path, { outcome: 'paid' });
  const { rows } = await database.query(
    `SELECT captured::int, (SELECT sum(amount)::int FROM charges WHERE payment_id = payments.id AND is_booked) AS booked,
       (SELECT sum(amount)::int FROM ledger_entries JOIN ledger_postings ON entry_id = ledger_entries.id
        WHERE payment_id = payments.id AND kind = 'capture' AND account = 'provider:stripe') AS entered
     FROM payments WHERE id = $1`,
    [made.id],
  );
  expect(rows).toEqual([{ captured: 14_950, booked: 14_950, entered: 14_950 }]);
});

test('a refund that was made though it was told failed, with nothing left, is for a person', async () => {
  const id = await paid();
  const refund = await shop.post(`/payments/${id}/refunds`, { reason: 'too much tea' });
  await untilPayment(shop, id, 'refunded');
  await payment.stripe.idle();
  // As though another refund had taken what this one was told not to have taken.
  await database.query(`UPDATE refunds SET state = 'failed', failure = 'not_refundable' WHERE id = $1`, [idOf(refund)]);
  const object = await atStripe('refund', id);
  await tell('refund.updated', object);
  const { body } = await shop.get(`/payments/${id}`);
  expect(body).toMatchObject({ status: 'needs_review', reason: 'refunded_beyond', amountRefunded: 14_950 });
  await tell('refund.updated', object);
  expect((await shop.get('/refunds?status=failed')).body).toMatchObject({ refunds: [{ id: idOf(refund) }] });
  const decided = await shop.post(`/payments/${id}/resolve`, { outcome: 'refunded', reason: 'It went back twice' });
  expect(decided.body).toMatchObject({ status: 'refunded', amountRefunded: 14_950 });
  await tell('refund.updated', object);
  expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ status: 'refunded' });
});
