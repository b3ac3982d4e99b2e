import type { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Caller, connectTo } from './billing-service.ts';
import { choose, madePayment, type PaymentService, startPayment, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  database = stack.use(await connectTo(payment.databaseUrl));
});

afterAll(() => stack.disposeAsync());

async function paid(caller: Caller): Promise<{ readonly id: string; readonly intent: string }> {
  const made = await madePayment(caller, { provider: 'stripe' });
  await choose(made, 'pay');
  await untilPayment(caller, made.id, 'succeeded');
  const { rows } = await database.query<{ charge_ref: string }>('SELECT charge_ref FROM payments WHERE id = $1', [
    made.id,
  ]);
  return { id: made.id, intent: String(rows[0]?.charge_ref) };
}

async function control(path: string, body: unknown): Promise<{ readonly id: string }> {
  const response = await fetch(`${payment.stripe.url}/_control/${path}`, {
    method: 'POST',
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return (await response.json()) as { readonly id: string };
}

async function balances(caller: Caller): Promise<Record<string, number>> {
  const { balances: all } = (await caller.get('/ledger/balances')).body as {
    readonly balances: readonly { readonly account: string; readonly amount: number }[];
  };
  return Object.fromEntries(all.map(({ account, amount }) => [account, amount]));
}

test('each dispute of a payment is entered once: won money is back, and lost money is gone', async () => {
  const shop = await payment.callerOf('shop');
  const { id, intent } = await paid(shop);
  // Each event comes twice.
  payment.stripe.addFaults({ kind: 'twice' });
  const first = await control('disputes', { paymentIntent: intent });
  await untilPayment(shop, id, 'disputed');
  expect(await balances(shop)).toMatchObject({ 'provider:stripe': 0, 'disputed:stripe': 14_950 });
  await control(`disputes/${first.id}/close`, { outcome: 'won' });
  await untilPayment(shop, id, 'succeeded');
  expect(await balances(shop)).toMatchObject({ 'provider:stripe': 14_950, 'disputed:stripe': 0 });

  const second = await control('disputes', { paymentIntent: intent, amount: 4950 });
  await untilPayment(shop, id, 'disputed');
  expect(await balances(shop)).toMatchObject({ 'provider:stripe': 10_000, 'disputed:stripe': 4950 });
  await control(`disputes/${second.id}/close`, { outcome: 'lost' });
  await untilPayment(shop, id, 'partially_refunded');
  await payment.stripe.idle();
  expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ amountRefunded: 4950 });
  expect(await balances(shop)).toEqual({
    'provider:stripe': 10_000,
    'disputed:stripe': 0,
    dispute_losses: 4950,
    sales: -14_950,
  });
});

test('a dispute of all that was paid, lost, leaves nothing to refund', async () => {
  const shop = await payment.callerOf('other');
  const { id, intent } = await paid(shop);
  const dispute = await control('disputes', { paymentIntent: intent });
  await untilPayment(shop, id, 'disputed');
  await control(`disputes/${dispute.id}/close`, { outcome: 'lost' });
  await untilPayment(shop, id, 'refunded');
  expect((await shop.post(`/payments/${id}/refunds`, { reason: 'once more' })).status).toBe(409);
});

test.each(['lost', 'opened and lost'])('money of a dispute that an older version %s is taken once', async (what) => {
  const shop = await payment.callerOf(what);
  const { id, intent } = await paid(shop);
  if (what === 'lost') {
    await control('disputes', { paymentIntent: intent, amount: 950 });
    await untilPayment(shop, id, 'disputed');
    await database.query(`UPDATE disputes SET state = 'lost' WHERE payment_id = $1`, [id]);
  } else
    await database.query(
      `INSERT INTO disputes (provider, dispute_ref, payment_id, amount, currency, state)
       VALUES ('stripe', 'dp_older', $1, 950, 'ZAR', 'lost')`,
      [id],
    );
  await database.query(`UPDATE payments SET state = 'partially_refunded', refunded = 950 WHERE id = $1`, [id]);
  const second = await control('disputes', { paymentIntent: intent, amount: 1000 });
  await untilPayment(shop, id, 'disputed');
  await control(`disputes/${second.id}/close`, { outcome: 'lost' });
  const ended = await untilPayment(shop, id, 'partially_refunded');
  expect(ended.body).toMatchObject({ amountRefunded: 1950 });
});
