import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Caller, connectTo, idOf } from './billing-service.ts';
import { choose, madePayment, type PaymentService, startPayment, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let billing: Caller;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  database = stack.use(await connectTo(payment.databaseUrl));
  shop = await payment.callerOf('shop');
  billing = await payment.billing.callerOf('shop');
});

afterAll(() => stack.disposeAsync());

interface StripeObject {
  readonly object: string;
  readonly status?: string;
  readonly customer?: string | null;
  readonly metadata?: { readonly paymentId?: string };
}

/** What the simulator of Stripe has of a kind. */
async function atStripe(object: string): Promise<readonly StripeObject[]> {
  const all = (await (await fetch(`${payment.stripe.url}/_control/state`)).json()) as readonly StripeObject[];
  return all.filter((each) => each.object === object);
}

/** Cards that Stripe keeps for somebody. */
async function attached(): Promise<number> {
  return (await atStripe('payment_method')).filter(({ customer }) => customer !== null).length;
}

/** Tokens that were cancelled at PayFast. */
function cancelled(): number {
  return payment.payfast.requests().filter(({ target, isAccepted }) => isAccepted && /\/cancel\b/.test(target)).length;
}

async function sessionOf(paymentId: string): Promise<StripeObject | undefined> {
  return (await atStripe('checkout.session')).find(({ metadata }) => metadata?.paymentId === paymentId);
}

async function errands(): Promise<number> {
  const { rows } = await database.query<{ count: number }>('SELECT count(*)::int FROM errands');
  return rows[0]?.count ?? -1;
}

/** Errands that wait for another try are due now. */
const hurry = () => database.query('UPDATE errands SET due_at = now()');

test('a payment that is cancelled cannot be paid at Stripe any more, though Stripe fails at first', async () => {
  const made = await madePayment(shop, { provider: 'stripe' });
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'expire', times: 1 });
  expect((await shop.post(`/payments/${made.id}/cancel`)).body).toMatchObject({ status: 'cancelled' });
  await vi.waitFor(async () => {
    const { rows } = await database.query<{ attempts: number }>('SELECT attempts FROM errands');
    expect(rows).toEqual([{ attempts: 1 }]);
  }, 10_000);
  expect(await sessionOf(made.id)).toMatchObject({ status: 'open' });
  await hurry();
  await vi.waitFor(async () => expect(await errands()).toBe(0), 10_000);
  expect(await sessionOf(made.id)).toMatchObject({ status: 'expired' });
  expect((await choose(made, 'pay')).status).toBe(409);
  await payment.stripe.idle();
  expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({ status: 'cancelled' });
});

/** A payment whose checkout Stripe has not closed for two weeks. */
async function givenUp(): Promise<{ readonly paymentId: string }> {
  const made = await madePayment(shop, { provider: 'stripe' });
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'expire', times: 2 });
  await shop.post(`/payments/${made.id}/cancel`);
  const kept = async () => (await database.query('SELECT attempts, due_at IS NULL AS over FROM errands')).rows;
  await vi.waitFor(async () => expect(await kept()).toEqual([{ attempts: 1, over: false }]), 20_000);
  await database.query("UPDATE errands SET created_at = now() - interval '15 days', due_at = now()");
  await vi.waitFor(async () => expect(await kept()).toEqual([{ attempts: 2, over: true }]), 20_000);
  return { paymentId: made.id };
}

describe('an errand that is given up after two weeks', () => {
  test('is listed for who sees all, counted, and run once more', async () => {
    const { paymentId } = await givenUp();
    const admin = await payment.callerOf('root', 'payments:admin');
    const { status, body } = await admin.get('/errands');
    expect({ status, body }).toEqual({
      status: 200,
      body: {
        errands: [
          {
            id: expect.any(String),
            provider: 'stripe',
            kind: 'close_checkout',
            reason: 'server_error',
            attempts: 2,
            createdAt: expect.any(String),
          },
        ],
        total: 1,
        limit: 20,
        offset: 0,
        nextCursor: null,
      },
    });
    const metrics = await (await fetch(`${payment.service.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/rollcall_payment_in_review\{[^}]*kind="errand"[^}]*\} 1\n/);
    const { rows } = await database.query<{ id: string }>('SELECT id FROM errands');
    const id = rows[0]?.id;
    const path = `/errands/${id}/resolve`;
    expect([(await shop.get('/errands')).status, (await shop.post(path, { outcome: 'done' })).status]).toEqual([
      403, 403,
    ]);
    expect((await admin.post(path, { outcome: 'again' })).body).toEqual({ id, outcome: 'again' });
    await vi.waitFor(async () => expect(await errands()).toBe(0), 20_000);
    expect(await sessionOf(paymentId)).toMatchObject({ status: 'expired' });
    expect((await admin.post(path, { outcome: 'again' })).status).toBe(404);
  });

  test('is left where a person says so, and one that is due is not', async () => {
    const { paymentId } = await givenUp();
    const admin = await payment.callerOf('root', 'payments:admin');
    const { rows } = await database.query<{ id: string }>('SELECT id FROM errands');
    const path = `/errands/${rows[0]?.id}/resolve`;
    await database.query("UPDATE errands SET due_at = now() + interval '1 day'");
    expect((await admin.get('/errands')).body).toMatchObject({ errands: [], total: 0 });
    expect((await admin.post(path, { outcome: 'done' })).status).toBe(404);
    await database.query('UPDATE errands SET due_at = NULL');
    expect((await admin.post(path, { outcome: 'done' })).status).toBe(200);
    expect(await errands()).toBe(0);
    expect(await sessionOf(paymentId)).toMatchObject({ status: 'open' });
  });
});

test('an errand that no key opens waits for one, and then for a person', async () => {
  const made = await madePayment(shop, { provider: 'stripe' });
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'expire', times: 1 });
  await shop.post(`/payments/${made.id}/cancel`);
  const kept = async () => (await database.query('SELECT attempts, reason, due_at IS NULL AS over FROM errands')).rows;
  await vi.waitFor(async () => {
    expect(await kept()).toEqual([{ attempts: 1, reason: 'server_error', over: false }]);
  }, 20_000);
  await database.query(`UPDATE errands SET sealed = '\\x00', created_at = now() - interval '15 days', due_at = now()`);
  await vi.waitFor(
    async () => expect(await kept()).toEqual([{ attempts: 2, reason: 'not_opened', over: true }]),
    20_000,
  );
  await database.query('DELETE FROM errands');
});

test('what the payer pays before it is closed is late money, as ever', async () => {
  const made = await madePayment(shop, { provider: 'stripe' });
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'expire', times: 1 });
  await shop.post(`/payments/${made.id}/cancel`);
  await vi.waitFor(async () => {
    const { rows } = await database.query<{ attempts: number }>('SELECT attempts FROM errands');
    expect(rows).toEqual([{ attempts: 1 }]);
  }, 10_000);
  expect((await choose(made, 'pay')).status).toBe(303);
  await untilPayment(shop, made.id, 'needs_review');
  await hurry();
  await vi.waitFor(async () => expect(await errands()).toBe(0), 10_000);
  expect(await sessionOf(made.id)).toMatchObject({ status: 'complete' });
});

test('a checkout at our own pages, and at Yoco, leaves nothing to do', async () => {
  for (const provider of ['sandbox', 'payfast', 'yoco']) {
    const made = await madePayment(shop, { provider });
    await shop.post(`/payments/${made.id}/cancel`);
  }
  await vi.waitFor(async () => expect(await errands()).toBe(0), 10_000);
});

/** Where a customer may delete a card that the provider keeps. */
async function keptCard(provider: string): Promise<string> {
  const plan = { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' };
  const planId = idOf(await billing.post('/plans', plan));
  const customerId = idOf(await billing.post('/customers', { email: 'ann@example.com', name: 'Ann' }));
  const made = await billing.post('/subscriptions', { planId, customerId, provider });
  await choose({ id: idOf(made), url: String(made.body?.['paymentUrl']) }, 'pay');
  const methodId = await vi.waitFor(async () => {
    const { body } = await billing.get(`/subscriptions/${idOf(made)}`);
    expect(body).toMatchObject({ status: 'active', methodId: expect.any(String) });
    return String(body?.['methodId']);
  }, 20_000);
  return `/customers/${customerId}/payment-methods/${methodId}`;
}

test.each(['stripe', 'payfast'])('a card that is deleted is gone at %s as well', async (provider) => {
  const path = await keptCard(provider);
  const before = [await attached(), cancelled()];
  expect((await billing.delete(path)).status).toBe(200);
  const { rows } = await database.query<{ sealed: Buffer }>('SELECT sealed FROM errands');
  for (const { sealed } of rows) expect(sealed.toString('latin1')).not.toMatch(/pm_|cus_/);
  await vi.waitFor(async () => expect(await errands()).toBe(0), 10_000);
  expect([await attached(), cancelled()]).toEqual(
    provider === 'stripe' ? [Number(before[0]) - 1, before[1]] : [before[0], Number(before[1]) + 1],
  );
});

test('a card that PayFast keeps is not taken for gone where it finds fault with the call', async () => {
  const path = await keptCard('payfast');
  const before = cancelled();
  payment.payfast.addFaults({ kind: 'status', status: 400, match: '/cancel', times: 1 });
  expect((await billing.delete(path)).status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await database.query('SELECT attempts, reason FROM errands');
    expect(rows).toEqual([{ attempts: 1, reason: 'unreadable_answer' }]);
  }, 20_000);
  await hurry();
  await vi.waitFor(async () => expect(await errands()).toBe(0), 20_000);
  expect(cancelled()).toBe(before + 1);
});
