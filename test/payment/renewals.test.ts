import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { type Caller, connectTo, idOf } from './billing-service.ts';
import { choose, type PaymentService, startPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let database: Client;
let planId: string;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  database = stack.use(await connectTo(payment.databaseUrl));
  shop = await payment.callerOf('shop', 'billing:write billing:read');
  planId = idOf(await shop.post('/plans', { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' }));
});

afterAll(() => stack.disposeAsync());

/** A customer whose first payment was made, so that the provider keeps the card. */
async function payingCustomer(provider: string): Promise<{ readonly customerId: string; readonly id: string }> {
  const customerId = idOf(await shop.post('/customers', { email: 'ann@example.com', name: 'Ann' }));
  const made = await shop.post('/subscriptions', { customerId, planId, provider });
  await choose({ id: idOf(made), url: String(made.body?.['paymentUrl']) }, 'pay');
  await vi.waitFor(async () => {
    const { body } = await shop.get(`/subscriptions/${idOf(made)}`);
    expect(body).toMatchObject({ status: 'active', methodId: expect.any(String) });
  }, 20_000);
  return { customerId, id: idOf(made) };
}

/** Begins the subscriptions a month earlier, so that their next periods begin today. */
async function makeDue(ids: readonly string[]): Promise<void> {
  await database.query(
    `UPDATE subscriptions SET anchor = anchor - interval '1 month', due_at = now() WHERE id = ANY($1)`,
    [ids],
  );
  await database.query(`ALTER TABLE invoices DISABLE TRIGGER issued_invoices_stay;`);
  await database.query(
    `UPDATE invoices SET period_start = period_start - interval '1 month', period_end = period_start
     WHERE subscription_id = ANY($1)`,
    [ids],
  );
  await database.query(`ALTER TABLE invoices ENABLE TRIGGER issued_invoices_stay`);
}

/** Nobody waits for leases. */
const tick = (ids: readonly string[]) =>
  database.query('UPDATE subscriptions SET due_at = now() WHERE id = ANY($1)', [ids]);

async function renewals(ids: readonly string[]) {
  const { rows } = await database.query<{ id: string; state: string; subscription_id: string }>(
    'SELECT id, state, subscription_id FROM invoices WHERE subscription_id = ANY($1) AND period_start >= current_date - 3',
    [ids],
  );
  return rows;
}

const charges = () =>
  payment.payfast.requests().filter(({ method, target }) => method === 'POST' && target.includes('/adhoc'));

test('a charge whose answer is lost is not made again, however often the scheduler looks (A17)', {
  timeout: 120_000,
}, async () => {
  const { id } = await payingCustomer('payfast');
  payment.payfast.addFaults({ kind: 'reset', match: 'adhoc' }, { kind: 'delayed', delayMs: 15_000, times: 1 });
  await makeDue([id]);
  await expect.poll(() => charges().length).toBe(1);
  for (let ticks = 0; ticks < 10; ticks += 1) {
    await tick([id]);
    await sleep(300);
  }
  expect(charges()).toHaveLength(1);
  expect(await renewals([id])).toMatchObject([{ state: 'open' }]);
  // The notification comes late, and is of an older payment by its own words (A16).
  await expect.poll(async () => (await renewals([id]))[0]?.state, { timeout: 60_000 }).toBe('paid');
  await tick([id]);
  await sleep(500);
  expect(charges()).toHaveLength(1);
  expect((await shop.get(`/subscriptions/${id}`)).body).toMatchObject({ status: 'active' });
});

test('a charge that surely was not made is made by the same call', async () => {
  const { id } = await payingCustomer('stripe');
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'POST /v1/payment_intents', times: 1 });
  await makeDue([id]);
  const sent = () =>
    payment.stripe
      .requests()
      .filter(
        ({ method, target, body }) => `${method} ${target}` === 'POST /v1/payment_intents' && /off_session/.test(body),
      );
  await expect.poll(() => sent().length, { timeout: 20_000 }).toBe(1);
  await expect
    .poll(
      async () => {
        await database.query(
          `UPDATE payments SET called_at = called_at - interval '2 minutes', due_at = now()
           WHERE state IN ('pending', 'processing') AND purpose = 'charge'`,
        );
        return (await renewals([id]))[0]?.state;
      },
      { timeout: 30_000, interval: 500 },
    )
    .toBe('paid');
  const [first, again, ...others] = sent();
  expect(first?.body).toBe(again?.body);
  expect(others).toEqual([]);
  expect((await shop.get(`/subscriptions/${id}`)).body).toMatchObject({ status: 'active' });
});

test('killed while it charges, each period has one invoice and one charge', async () => {
  const { customerId } = await payingCustomer('stripe');
  const made = await Promise.all(
    Array.from({ length: 30 }, async () =>
      idOf(await shop.post('/subscriptions', { customerId, planId, provider: 'stripe' })),
    ),
  );
  for (const id of made) expect((await shop.get(`/subscriptions/${id}`)).body).toMatchObject({ status: 'active' });
  const before = new Set(payment.stripe.requests());
  payment.stripe.addFaults({ kind: 'slow', match: 'payment_intents', delayMs: 2000 });
  const replica = await payment.startProcess();
  const other = await payment.startProcess();
  await makeDue(made);
  await expect.poll(async () => (await renewals(made)).length).toBeGreaterThan(5);
  await Promise.all([replica.kill(), other.kill()]);
  expect((await renewals(made)).filter(({ state }) => state === 'paid').length).toBeLessThan(30);
  await expect
    .poll(
      async () => {
        await tick(made);
        // Who is in doubt looks it up after a minute.
        await database.query(
          `UPDATE payments SET called_at = called_at - interval '2 minutes', due_at = now() WHERE state IN ('pending', 'processing')`,
        );
        return (await renewals(made)).filter(({ state }) => state === 'paid').length;
      },
      { timeout: 90_000, interval: 1000 },
    )
    .toBe(30);
  expect(new Set((await renewals(made)).map((row) => row.subscription_id)).size).toBe(30);
  const charged = payment.stripe
    .requests()
    .filter(
      (request) => !before.has(request) && request.method === 'POST' && request.target.includes('payment_intents'),
    )
    .map(({ body }) => /metadata\[paymentId\]=([\w-]+)/.exec(body)?.[1]);
  expect(new Set(charged).size).toBe(30);
  const { rows } = await database.query<{ number: number }>(
    `SELECT count(*)::int AS number FROM charges JOIN payments ON payments.id = payment_id
     JOIN invoices ON invoices.id = invoice_id WHERE subscription_id = ANY($1) AND period_start >= current_date - 3`,
    [made],
  );
  expect(rows).toEqual([{ number: 30 }]);
  const { rows: numbers } = await database.query<{ sequence: string }>(
    "SELECT sequence FROM invoices WHERE series = 'INV' ORDER BY sequence",
  );
  expect(numbers.map(({ sequence }) => Number(sequence))).toEqual(numbers.map((_row, index) => index + 1));
}, 180_000);

test('a method that its provider cancels is not charged', async () => {
  const { id } = await payingCustomer('stripe');
  await database.query('UPDATE payment_methods SET usable = false');
  await makeDue([id]);
  await expect.poll(async () => (await shop.get(`/subscriptions/${id}`)).body?.['status']).toBe('past_due');
  const { rows } = await database.query('SELECT FROM payments WHERE invoice_id = $1', [(await renewals([id]))[0]?.id]);
  expect(rows).toHaveLength(0);
});
