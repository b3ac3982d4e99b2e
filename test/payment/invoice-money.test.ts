import { randomUUID } from 'node:crypto';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, codeOf, connectTo, idOf } from './billing-service.ts';
import { choose, type PaymentService, startPayment, untilPayment } from './payment-service.ts';

const SCOPES = 'billing:write billing:read payments:write payments:read refunds:write';
const TOTAL = 27_792;

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  shop = await payment.callerOf('shop', SCOPES);
  database = stack.use(await connectTo(payment.databaseUrl));
});

afterAll(() => stack.disposeAsync());

async function issued(caller = shop): Promise<string> {
  const customerId = idOf(await caller.post('/customers', { email: 'ann@example.com', name: 'Ann' }));
  const items = [{ description: 'Tea', amount: 24_167, quantity: 1, taxRate: 15 }];
  return `/invoices/${idOf(await caller.post('/invoices', { customerId, items, finalize: true }))}`;
}

/** Begins a payment of an invoice. */
async function begin(path: string, caller = shop): Promise<{ readonly id: string; readonly url: string }> {
  const { body } = await caller.post(`${path}/pay`, { provider: 'yoco' });
  return { id: String(body?.['paymentId']), url: String(body?.['paymentUrl']) };
}

/** Money comes for a payment that was given up, and a person says that it is there. */
async function payLate(late: { readonly id: string; readonly url: string }): Promise<void> {
  await choose(late, 'pay');
  await untilPayment(shop, late.id, 'needs_review');
  expect((await shop.post(`/payments/${late.id}/resolve`, { outcome: 'paid' })).body).toMatchObject({
    status: 'succeeded',
  });
}

const cancel = (id: string, caller = shop) => caller.post(`/payments/${id}/cancel`);

async function overpaidEvents(path: string): Promise<number | null> {
  const { rowCount } = await database.query(`SELECT FROM events WHERE type = 'invoice.overpaid' AND resource_id = $1`, [
    path.split('/').at(-1),
  ]);
  return rowCount;
}

describe('money for a payment that an invoice no longer names', () => {
  test('pays it, and what comes beside is shown until it has gone back', async () => {
    const path = await issued();
    const late = await begin(path);
    await cancel(late.id);
    const other = await begin(path);
    expect(other.id).not.toBe(late.id);
    await payLate(late);
    expect((await shop.get(path)).body).toMatchObject({ status: 'paid', paymentId: late.id, amountOverpaid: 0 });
    expect(await overpaidEvents(path)).toBe(0);
    await choose(other, 'pay');
    await untilPayment(shop, other.id, 'succeeded');
    expect((await shop.get(path)).body).toMatchObject({
      status: 'paid',
      paymentId: late.id,
      amountOverpaid: TOTAL,
      surplusPayments: [{ paymentId: other.id, amount: TOTAL }],
    });
    expect(await overpaidEvents(path)).toBe(1);
    await shop.post(`/payments/${other.id}/refunds`, { amount: 7_792, reason: 'Paid twice' });
    await untilPayment(shop, other.id, 'partially_refunded');
    expect((await shop.get(path)).body).toMatchObject({ status: 'paid', amountOverpaid: 20_000 });
    await shop.post(`/payments/${other.id}/refunds`, { reason: 'Paid twice' });
    await untilPayment(shop, other.id, 'refunded');
    expect((await shop.get(path)).body).toMatchObject({ status: 'paid', amountOverpaid: 0, surplusPayments: [] });
  });

  test('is shown of one that was taken back', async () => {
    const path = await issued();
    const late = await begin(path);
    await cancel(late.id);
    expect((await shop.post(`${path}/void`)).status).toBe(200);
    await payLate(late);
    expect((await shop.get(path)).body).toMatchObject({ status: 'void', amountOverpaid: TOTAL });
    expect(await overpaidEvents(path)).toBe(1);
  });

  test('does not pay one of which less is owed by now', async () => {
    const path = await issued();
    const late = await begin(path);
    await cancel(late.id);
    await shop.post(`${path}/credit-notes`, { items: [{ line: 0, amount: 792 }] });
    await payLate(late);
    expect((await shop.get(path)).body).toMatchObject({
      status: 'open',
      amountDue: 27_000,
      surplusPayments: [{ paymentId: late.id, amount: TOTAL }],
    });
  });

  test('does not pay it where it goes back by itself', async () => {
    await using other = await startPayment({ ROLLCALL_LATE_CAPTURES: 'refund' });
    const caller = await other.callerOf('shop', SCOPES);
    const path = await issued(caller);
    const late = await begin(path, caller);
    await cancel(late.id, caller);
    await choose(late, 'pay');
    await untilPayment(caller, late.id, 'refunded');
    expect((await caller.get(path)).body).toMatchObject({ status: 'open', amountDue: TOTAL, amountOverpaid: 0 });
  });
});

test('an invoice that was claimed for a payment that was never made can be taken back after a minute', async () => {
  const path = await issued();
  const claim = (age: string) =>
    database.query(`UPDATE invoices SET payment_id = $2, updated_at = now() - $3::interval WHERE id = $1`, [
      path.split('/').at(-1),
      randomUUID(),
      age,
    ]);
  await claim('30 seconds');
  expect(codeOf(await shop.post(`${path}/void`))).toBe('CONFLICT');
  await claim('2 minutes');
  expect((await shop.post(`${path}/void`)).body).toMatchObject({ status: 'void', paymentId: null });
});

test('a method that is gone is found by its token, among however many', async () => {
  await database.query('BEGIN');
  await database.query('SET LOCAL enable_seqscan = off');
  const { rows } = await database.query<{ 'QUERY PLAN': string }>(
    `EXPLAIN UPDATE payment_methods SET usable = false WHERE provider = 'yoco' AND token_index = ANY('{a,b}')`,
  );
  await database.query('ROLLBACK');
  expect(rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('payment_methods_by_token');
});

test('another provider than that of the open checkout is refused, and names the payment', async () => {
  const path = await issued();
  const open = await begin(path);
  const pay = (body: object) => shop.post(`${path}/pay`, body);
  const refused = await pay({ provider: 'stripe' });
  expect(refused.status).toBe(409);
  const details = { paymentId: open.id, provider: 'yoco' };
  expect(refused.body).toMatchObject({ error: { code: 'CONFLICT', details } });
  for (const body of [{}, { provider: 'yoco' }]) {
    expect(await pay(body)).toMatchObject({ status: 200, body: { paymentId: open.id, paymentUrl: open.url } });
  }
  expect((await cancel(open.id)).status).toBe(200);
  const other = await pay({ provider: 'stripe' });
  expect(other.status).toBe(200);
  expect(other.body?.['paymentId']).not.toBe(open.id);
});
