import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { subscriptionTable } from '@rollcall/payment/domain/subscription-states.ts';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import {
  type BillingService,
  type Caller,
  clockAt,
  codeOf,
  connectTo,
  decide,
  faultsOf,
  idOf,
  sandbox,
  startBilling,
} from './billing-service.ts';

const stack = new AsyncDisposableStack();
const clock = clockAt('2027-01-31T10:00:00Z');
let billing: BillingService;
let shop: Caller;
let database: Client;
let planId: string;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  billing = stack.use(await startBilling({ databaseUrl, ...sandbox, clock }));
  database = stack.use(await connectTo(databaseUrl));
  await logMoves();
  shop = await billing.callerOf('shop');
  planId = idOf(await shop.post('/plans', { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' }));
});

afterAll(() => stack.disposeAsync());

/** Keeps each move of a state, however it is written. */
async function logMoves(): Promise<void> {
  await database.query(`
    CREATE TABLE seen_moves (id uuid, before text, after text, place bigserial);
    CREATE FUNCTION see_move() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      INSERT INTO payment.seen_moves (id, before, after) VALUES (NEW.id, OLD.state, NEW.state);
      RETURN NEW;
    END $$;
    CREATE TRIGGER see_moves BEFORE UPDATE ON subscriptions
      FOR EACH ROW WHEN (OLD.state <> NEW.state) EXECUTE FUNCTION see_move()`);
}

async function newCustomer(timeZone = 'Africa/Johannesburg'): Promise<string> {
  return idOf(await shop.post('/customers', { email: 'ann@example.com', name: 'Ann', timeZone }));
}

interface Made {
  readonly id: string;
  readonly customerId: string;
  readonly answer: Answer;
}

type Wish = Record<string, unknown> & { readonly customerId?: string };

async function subscribe(more: Wish = {}): Promise<Made> {
  const { customerId = await newCustomer() } = more;
  const answer = await shop.post('/subscriptions', { planId, provider: 'sandbox', ...more, customerId });
  return { id: idOf(answer), customerId, answer };
}

/** An active one, whose card is kept. */
async function active(more: Wish = {}, decision = 'pay'): Promise<Made> {
  const made = await subscribe(more);
  await decide(billing, made.answer.body?.['paymentUrl'], decision);
  await vi.waitFor(async () => expect(await statusOf(made.id)).not.toBe('incomplete'), { timeout: 30_000 });
  return made;
}

async function statusOf(id: string): Promise<unknown> {
  return (await shop.get(`/subscriptions/${id}`)).body?.['status'];
}

async function invoicesOf(id: string): Promise<readonly Record<string, unknown>[]> {
  const { body } = await shop.get(`/invoices?subscriptionId=${id}&limit=100`);
  const { invoices } = body as { invoices: Record<string, unknown>[] };
  return invoices.toReversed();
}

const startsOf = async (id: string) => (await invoicesOf(id)).map((invoice) => invoice['periodStart']);

/** Lets the scheduler do all that is due by the clock, which is ahead of that of the database. */
async function passTo(at: string): Promise<void> {
  clock.set(at);
  // A checkout is up to its payer.
  const isOurs = `(open_charge IS DISTINCT FROM 'unsettled' OR NOT open_by_checkout)`;
  for (let busy = true; busy; ) {
    // Those that are worked on are due within the minute.
    await database.query(
      `UPDATE subscriptions SET due_at = now()
       WHERE due_at <= $1 AND due_at > now() + interval '2 minutes' AND ${isOurs}`,
      [clock.now()],
    );
    // Of none: it wakes the scheduler.
    await shop.post(`/subscriptions/${randomUUID()}/pause`);
    await sleep(20);
    const { rowCount } = await database.query(
      `SELECT FROM subscriptions WHERE (due_at <= $1 OR open_charge = 'unsettled') AND ${isOurs} LIMIT 1`,
      [clock.now()],
    );
    busy = rowCount !== 0;
  }
}

describe('a subscription', () => {
  test('begins when the customer has paid, and keeps the card', async () => {
    const { id, customerId, answer } = await subscribe();
    expect(answer.status).toBe(201);
    expect(answer.body).toMatchObject({ status: 'incomplete', collection: 'charge_automatically', planVersion: 1 });
    await decide(billing, answer.body?.['paymentUrl'], 'pay');
    await expect.poll(() => statusOf(id)).toBe('active');
    expect(await invoicesOf(id)).toMatchObject([{ status: 'paid', total: 10_000, periodStart: '2027-01-31' }]);
    const { body } = await shop.get(`/customers/${customerId}`);
    expect(body?.['paymentMethods']).toMatchObject([{ provider: 'sandbox', usable: true }]);
    expect(JSON.stringify(body)).not.toContain('sandbox:');
    const second = await subscribe({ customerId });
    expect(second.answer.body).toMatchObject({ status: 'active', paymentUrl: null });
  });

  test('that is declined stays incomplete, may be tried again, and ends after a day', async () => {
    const { id, answer } = await subscribe();
    await decide(billing, answer.body?.['paymentUrl'], 'decline');
    const [invoice] = await invoicesOf(id);
    const path = `/invoices/${String(invoice?.['id'])}`;
    await expect.poll(async () => (await shop.get(path)).body?.['paymentId']).toBeNull();
    const again = await shop.post(`${path}/pay`);
    expect(again.body?.['paymentUrl']).not.toBe(answer.body?.['paymentUrl']);
    await decide(billing, again.body?.['paymentUrl'], 'pay');
    await expect.poll(() => statusOf(id)).toBe('active');
    const other = await subscribe();
    await decide(billing, other.answer.body?.['paymentUrl'], 'cancel');
    const before = clock.now().toISOString();
    await vi.waitFor(async () => expect((await invoicesOf(other.id))[0]?.['paymentId']).toBeNull(), {
      timeout: 30_000,
    });
    await passTo('2027-02-01T10:00:01Z');
    expect(await statusOf(other.id)).toBe('cancelled');
    expect(await invoicesOf(other.id)).toMatchObject([{ status: 'void' }]);
    clock.set(before);
  });

  test('charges no method that its customer has had deleted', async () => {
    const { id, customerId } = await active();
    const path = `/customers/${customerId}/payment-methods/`;
    const { methodId } = (await shop.get(`/subscriptions/${id}`)).body ?? {};
    expect((await (await billing.callerOf('other')).delete(`${path}${String(methodId)}`)).status).toBe(404);
    expect((await shop.delete(`${path}${randomUUID()}`)).status).toBe(404);
    expect(await shop.delete(`${path}${String(methodId)}`)).toMatchObject({
      status: 200,
      body: { paymentMethods: [] },
    });
    expect((await shop.delete(`${path}${String(methodId)}`)).status).toBe(404);
    expect((await shop.get(`/subscriptions/${id}`)).body).toMatchObject({ status: 'active', methodId: null });
    const before = clock.now().toISOString();
    await passTo('2027-02-28T10:00:00Z');
    expect(await statusOf(id)).toBe('past_due');
    await shop.delete(`/subscriptions/${id}`);
    clock.set(before);
  });

  test('that is incomplete says where to pay, and ends with its checkout and its invoice', async () => {
    const [first, trial] = [await subscribe(), await subscribe({ trialDays: 7 })];
    const payments = await billing.callerOf('shop', 'payments:read');
    for (const { id, answer } of [first, trial]) {
      const path = `/subscriptions/${id}`;
      const { paymentUrl } = answer.body ?? {};
      expect(paymentUrl).toEqual(expect.stringContaining('/pay/'));
      expect((await shop.get(path)).body).toMatchObject({ status: 'incomplete', paymentUrl });
      expect(await shop.delete(path)).toMatchObject({ status: 200, body: { status: 'cancelled' } });
      expect((await shop.get(path)).body).toMatchObject({ status: 'cancelled', paymentUrl: null });
      const { rows } = await database.query<{ id: string }>(
        `SELECT payments.id FROM payments JOIN subscriptions ON subscriptions.customer_id = payments.customer_id
         WHERE subscriptions.id = $1`,
        [id],
      );
      expect((await payments.get(`/payments/${rows[0]?.id}`)).body).toMatchObject({ status: 'cancelled' });
    }
    expect(await invoicesOf(first.id)).toMatchObject([{ status: 'void', paymentId: null }]);
    expect(await invoicesOf(trial.id)).toEqual([]);
  });

  test('whose checkout expires ends by itself', async () => {
    const before = clock.now();
    const { id } = await subscribe();
    clock.set(Temporal.Instant.fromEpochMilliseconds(before.getTime()).add({ hours: 25 }));
    const expire = () =>
      database.query(
        `UPDATE payments SET due_at = now() WHERE id = (SELECT open_payment_id FROM subscriptions WHERE id = $1)`,
        [id],
      );
    await expire();
    await expect.poll(() => statusOf(id)).toBe('cancelled');
    expect(await invoicesOf(id)).toMatchObject([{ status: 'void' }]);
    clock.set(before.toISOString());
  });

  test('of one key is one, with one invoice and one payment', async () => {
    const customerId = await newCustomer();
    const key = randomUUID();
    const body = { planId, customerId, provider: 'sandbox' };
    const answers = await Promise.all(Array.from({ length: 20 }, () => shop.post('/subscriptions', body, key)));
    expect(new Set(answers.map((answer) => answer.body?.['paymentUrl'])).size).toBe(1);
    const { body: list } = await shop.get(`/subscriptions?customerId=${customerId}`);
    expect(list).toMatchObject({ total: 1 });
    expect(await invoicesOf(idOf(answers[0] ?? (await shop.get('/'))))).toHaveLength(1);
  });

  test('is of its subject alone', async () => {
    const { id } = await subscribe();
    const other = await billing.callerOf('other');
    const path = `/subscriptions/${id}`;
    const answers = [
      await other.get(path),
      await other.patch(path, { cancelAtPeriodEnd: true }),
      await other.delete(path),
      await other.delete(`${path}?atPeriodEnd=true`),
      await other.post(`${path}/pause`),
      await other.post(`${path}/resume`),
    ];
    expect(answers.map(({ status }) => status)).toEqual(Array(6).fill(404));
    expect(await statusOf(id)).toBe('incomplete');
  });

  test.each([
    ['a provider that there is not', { provider: 'barter' }, ['body/provider']],
    ['a trial of half a day', { trialDays: 0.5 }, ['body/trialDays']],
    ['a script to come back to', { returnUrl: 'javascript:alert(1)' }, ['body/returnUrl']],
    ['credentials to come back with', { returnUrl: 'https://a:b@example.com/' }, ['body/returnUrl']],
    ['what there is not', { price: 1, collection: 'barter' }, ['body/collection', 'body/price']],
  ])('with %s is refused', async (_what, change, paths) => {
    const body = { planId, customerId: await newCustomer(), ...change };
    expect(faultsOf(await shop.post('/subscriptions', body))).toEqual(paths);
  });

  test('is changed as a whole, or not at all', async () => {
    const { id, customerId } = await active();
    const path = `/subscriptions/${id}`;
    const before = (await shop.get(path)).body;
    const dollars = idOf(await shop.post('/plans', { name: 'Tea', amount: 1, currency: 'USD', interval: 'month' }));
    const ending = { cancelAtPeriodEnd: true };
    expect(codeOf(await shop.patch(path, { ...ending, planId: randomUUID() }))).toBe('PLAN_NOT_FOUND');
    expect(codeOf(await shop.patch(path, { ...ending, planId: dollars }))).toBe('PLAN_CURRENCY_DIFFERS');
    const methodId = randomUUID();
    expect(codeOf(await shop.patch(path, { ...ending, planId, methodId }))).toBe('METHOD_NOT_FOUND');
    expect((await shop.get(path)).body).toEqual(before);
    const { paymentMethods } = (await shop.get(`/customers/${customerId}`)).body as {
      paymentMethods: { id: string }[];
    };
    const changes = { ...ending, planId, methodId: paymentMethods[0]?.id };
    expect((await shop.patch(path, changes)).body).toMatchObject(changes);
    expect((await shop.get(path)).body).toEqual({ ...before, ...changes });
    await shop.delete(path);
    expect(codeOf(await shop.patch(path, { methodId: changes.methodId, cancelAtPeriodEnd: false }))).toBe('CONFLICT');
    expect(codeOf(await shop.patch(path, changes))).toBe('CONFLICT');
  });

  test('keeps metadata of its caller, and another in its place, in no clear text and nowhere else', async () => {
    const key = randomUUID();
    const customerId = await newCustomer();
    const body = { customerId, planId, collection: 'send_invoice', metadata: { seat: 'S-4711', __proto__x: '' } };
    const made = await shop.post('/subscriptions', body, key);
    expect(made).toMatchObject({ status: 201, body: { metadata: body.metadata } });
    expect((await shop.post('/subscriptions', body, key)).body).toEqual(made.body);
    const path = `/subscriptions/${idOf(made)}`;
    expect((await shop.post(`${path}/pause`)).body).toMatchObject({ status: 'paused', metadata: body.metadata });
    expect((await shop.get(`/subscriptions?customerId=${customerId}`)).body).toMatchObject({
      subscriptions: [{ metadata: body.metadata }],
    });
    expect((await shop.get(`/invoices?customerId=${customerId}`)).body).toMatchObject({ invoices: [{ metadata: {} }] });
    for (const table of ['subscriptions', 'invoices', 'events', 'idempotency_keys']) {
      const { rowCount } = await database.query(`SELECT FROM ${table} AS kept WHERE kept::text LIKE '%S-4711%'`);
      expect([table, rowCount]).toEqual([table, 0]);
    }
    const { rows } = await database.query<{ sealed: Buffer }>('SELECT sealed FROM subscriptions WHERE id = $1', [
      idOf(made),
    ]);
    expect(rows[0]?.sealed.toString()).not.toContain('4711');
    await shop.delete(path);
    expect((await shop.patch(path, { metadata: { seat: 'T-1' } })).body).toMatchObject({
      status: 'cancelled',
      metadata: { seat: 'T-1' },
    });
    expect((await shop.patch(path, {})).body).toMatchObject({ metadata: { seat: 'T-1' } });
    expect((await shop.patch(path, { metadata: {} })).body).toMatchObject({ metadata: {} });
    const told = `SELECT FROM events WHERE resource_id = $1 AND type = 'subscription.updated'`;
    expect((await database.query(told, [idOf(made)])).rowCount).toBe(2);
    expect((await (await billing.callerOf('other')).patch(path, { metadata: {} })).status).toBe(404);
    for (const answer of [
      await shop.patch(path, { metadata: { 'a b': 'x', c: 'x\n' } }),
      await shop.post('/subscriptions', { ...body, metadata: { 'a b': 'x', c: 'x\n' } }),
    ])
      expect(faultsOf(answer)).toEqual(['body/metadata/a b', 'body/metadata/c']);
  });

  test('needs a customer, a plan and a provider that are there', async () => {
    const customerId = await newCustomer();
    expect(codeOf(await shop.post('/subscriptions', { planId, customerId: 'x' }))).toBe('CUSTOMER_NOT_FOUND');
    expect(codeOf(await shop.post('/subscriptions', { planId: randomUUID(), customerId }))).toBe('PLAN_NOT_FOUND');
    const wanted = { planId, customerId };
    expect(codeOf(await shop.post('/subscriptions', { ...wanted, provider: 'stripe' }))).toBe(
      'PROVIDER_NOT_CONFIGURED',
    );
    expect(codeOf(await shop.post('/subscriptions', { ...wanted, methodId: randomUUID() }))).toBe('METHOD_NOT_FOUND');
    const old = idOf(await shop.post('/plans', { name: 'Old', amount: 1, currency: 'ZAR', interval: 'day' }));
    await shop.patch(`/plans/${old}`, { active: false });
    expect(codeOf(await shop.post('/subscriptions', { planId: old, customerId }))).toBe('PLAN_INACTIVE');
    const lost = { planId: 'x', customerId, provider: 'stripe', methodId: 'x' };
    expect(faultsOf(await shop.post('/subscriptions', lost))).toEqual([
      'body/methodId',
      'body/planId',
      'body/provider',
    ]);
    const nobodys = { planId: 'x', customerId: 'x', provider: 'yoco', collection: 'charge_automatically' };
    expect(faultsOf(await shop.post('/subscriptions', nobodys))).toEqual([
      'body/customerId',
      'body/planId',
      'body/provider',
    ]);
    const { id } = await active();
    const patched = await shop.patch(`/subscriptions/${id}`, { planId: 'x', methodId: 'x' });
    expect([codeOf(patched), faultsOf(patched)]).toEqual(['PLAN_NOT_FOUND', ['body/methodId', 'body/planId']]);
  });
});

describe('as time passes', () => {
  test('a card is charged once a period, and month ends do not drift (A14, A15)', async () => {
    clock.set('2027-01-31T12:00:00Z');
    const zones = ['Pacific/Pago_Pago', 'Pacific/Kiritimati', 'America/New_York', 'Africa/Johannesburg'];
    const made = await Promise.all(zones.map(async (zone) => active({ customerId: await newCustomer(zone) })));
    // Two minutes before and after midnight, at each of them.
    for (const day of ['2027-02-28', '2027-03-31', '2027-04-30']) {
      for (const zone of zones) {
        const midnight = Temporal.PlainDate.from(day).toZonedDateTime(zone).toInstant();
        await passTo(midnight.subtract({ minutes: 2 }).toString());
        await passTo(midnight.add({ minutes: 2 }).toString());
      }
    }
    for (const [index, { id }] of made.entries()) {
      // At Kiritimati it was the first of February already.
      const days =
        zones[index] === 'Pacific/Kiritimati'
          ? ['2027-02-01', '2027-03-01', '2027-04-01', '2027-05-01']
          : ['2027-01-31', '2027-02-28', '2027-03-31', '2027-04-30'];
      expect((await startsOf(id)).slice(0, 4)).toEqual(days.slice(0, (await startsOf(id)).length));
      expect(await invoicesOf(id)).toMatchObject((await startsOf(id)).map(() => ({ status: 'paid' })));
      expect(await statusOf(id)).toBe('active');
      const { rows } = await database.query<{ number: number }>(
        `SELECT count(*)::int AS number FROM payments JOIN invoices ON invoices.id = payments.invoice_id
         WHERE subscription_id = $1`,
        [id],
      );
      expect(rows[0]?.number).toBe((await startsOf(id)).length);
    }
    expect(await startsOf(made[0]?.id ?? '')).toHaveLength(4);
  });

  test('a card that is declined is tried after 1, 3, 5 and 7 days, then the subscription is unpaid', async () => {
    clock.set('2027-05-10T08:00:00Z');
    const { id } = await active({}, 'pay-then-decline');
    const attempts = async () => {
      const { rows } = await database.query<{ number: number }>(
        `SELECT count(*)::int AS number FROM payments JOIN invoices ON invoices.id = payments.invoice_id
         WHERE subscription_id = $1 AND period_start = '2027-06-10' AND payments.state = 'failed'`,
        [id],
      );
      return rows[0]?.number;
    };
    const seen = [];
    for (const day of ['09T23', '11T23', '13T23', '15T23', '17T23', '20T23']) {
      await passTo(`2027-06-${day}:00:00Z`);
      seen.push([await attempts(), await statusOf(id)]);
    }
    expect(seen).toEqual([
      [1, 'past_due'],
      [2, 'past_due'],
      [3, 'past_due'],
      [4, 'past_due'],
      [5, 'unpaid'],
      [5, 'unpaid'],
    ]);
    const [, open] = await invoicesOf(id);
    const { body } = await shop.post(`/invoices/${String(open?.['id'])}/pay`);
    await decide(billing, body?.['paymentUrl'], 'pay');
    await expect.poll(() => statusOf(id)).toBe('active');
    await passTo('2027-07-10T12:00:00Z');
    expect(await startsOf(id)).toEqual(['2027-05-10', '2027-06-10', '2027-07-10']);
  });

  test('a trial ends with the first charge, and needs a card before', async () => {
    clock.set('2027-07-01T08:00:00Z');
    const { id, answer } = await subscribe({ trialDays: 14 });
    expect(answer.body).toMatchObject({ status: 'incomplete', trialEnd: '2027-07-15' });
    await decide(billing, answer.body?.['paymentUrl'], 'pay');
    await expect.poll(() => statusOf(id)).toBe('trialing');
    await passTo('2027-07-14T21:00:00Z');
    expect(await invoicesOf(id)).toEqual([]);
    await passTo('2027-07-14T23:00:00Z');
    expect(await invoicesOf(id)).toMatchObject([{ status: 'paid', periodStart: '2027-07-15' }]);
    expect(await statusOf(id)).toBe('active');
  });

  test('an invoice that is sent is due after a week, and paid by its link', async () => {
    clock.set('2027-08-01T08:00:00Z');
    const { id } = await subscribe({ collection: 'send_invoice', provider: undefined });
    await passTo('2027-08-01T08:01:00Z');
    expect(await statusOf(id)).toBe('active');
    const [invoice] = await invoicesOf(id);
    expect(invoice).toMatchObject({ status: 'open', dueOn: '2027-08-08' });
    await passTo('2027-08-08T09:00:00Z');
    expect(await statusOf(id)).toBe('past_due');
    const { body } = await shop.post(`/invoices/${String(invoice?.['id'])}/pay`);
    await decide(billing, body?.['paymentUrl'], 'pay');
    await expect.poll(() => statusOf(id)).toBe('active');
    expect(await invoicesOf(id)).toMatchObject([{ status: 'paid' }]);
  });

  test('it ends with the period, or is taken on; a pause is not billed', async () => {
    clock.set('2027-09-01T08:00:00Z');
    const [ending, kept, paused] = await Promise.all([active(), active(), active()]);
    const end = (id: string) => shop.delete(`/subscriptions/${id}?atPeriodEnd=true`);
    expect((await end(ending.id)).body).toMatchObject({ status: 'active', cancelAtPeriodEnd: true });
    await end(kept.id);
    await shop.patch(`/subscriptions/${kept.id}`, { cancelAtPeriodEnd: false });
    expect((await shop.post(`/subscriptions/${paused.id}/pause`)).body).toMatchObject({ status: 'paused' });
    await passTo('2027-10-05T08:00:00Z');
    expect([await statusOf(ending.id), await statusOf(kept.id), await statusOf(paused.id)]).toEqual([
      'cancelled',
      'active',
      'paused',
    ]);
    expect(await startsOf(ending.id)).toEqual(['2027-09-01']);
    expect((await shop.post(`/subscriptions/${paused.id}/resume`)).body).toMatchObject({
      status: expect.stringMatching(/^(active|past_due)$/),
    });
    await passTo('2027-10-05T08:01:00Z');
    expect(await startsOf(paused.id)).toEqual(['2027-09-01', '2027-10-05']);
    expect(codeOf(await shop.post(`/subscriptions/${ending.id}/resume`))).toBe('CONFLICT');
    expect((await shop.delete(`/subscriptions/${kept.id}`)).body).toMatchObject({ status: 'cancelled' });
    expect((await shop.delete(`/subscriptions/${kept.id}`)).body).toMatchObject({ status: 'cancelled' });
  });

  test('another plan holds from today on: more is billed next, less is credited', async () => {
    clock.set('2027-11-01T08:00:00Z');
    const planOf = async (amount: number, currency = 'ZAR') =>
      idOf(await shop.post('/plans', { name: `Tea ${amount}`, amount, currency, interval: 'month' }));
    const [dear, cheap, dollars] = [await planOf(40_000), await planOf(4_000), await planOf(1, 'USD')];
    const [up, down] = await Promise.all([active(), active()]);
    clock.set('2027-11-16T08:00:00Z');
    expect((await shop.patch(`/subscriptions/${up.id}`, { planId: dear })).body).toMatchObject({
      planId: dear,
      pendingAmount: 15_000,
      creditBalance: 0,
    });
    expect((await shop.patch(`/subscriptions/${down.id}`, { planId: cheap })).body).toMatchObject({
      pendingAmount: 0,
      creditBalance: 3_000,
    });
    expect(codeOf(await shop.patch(`/subscriptions/${up.id}`, { planId: dollars }))).toBe('PLAN_CURRENCY_DIFFERS');
    await passTo('2027-12-01T08:00:00Z');
    expect((await invoicesOf(up.id)).at(-1)).toMatchObject({ total: 55_000, status: 'paid' });
    const [first, next] = await invoicesOf(down.id);
    expect(first).toMatchObject({ amountCredited: 3_000, creditNotes: [{ total: 3_000 }] });
    expect(next).toMatchObject({ total: 4_000, fromCredit: 3_000, status: 'paid' });
    const { rows } = await database.query<{ amount: string }>('SELECT amount FROM payments WHERE invoice_id = $1', [
      next?.['id'],
    ]);
    expect(rows).toEqual([{ amount: '1000' }]);
  });

  test('a plan of another interval holds from the next period on, and never escapes a charge', async () => {
    clock.set('2028-01-01T08:00:00Z');
    const planOf = async (amount: number, interval: string) =>
      idOf(await shop.post('/plans', { name: `Tea ${amount}`, amount, currency: 'ZAR', interval }));
    const [dear, yearly] = [await planOf(30_000, 'month'), await planOf(50_000, 'year')];
    const [up, back, stays] = [await active(), await active({ planId: dear }), await active()];
    const changed = async (id: string, to: string) => (await shop.patch(`/subscriptions/${id}`, { planId: to })).body;
    expect(await changed(up.id, yearly)).toMatchObject({
      planId,
      pendingPlanId: yearly,
      planChangesAt: '2028-02-01',
      currentPeriodStart: '2028-01-01',
      currentPeriodEnd: '2028-02-01',
    });
    const none = { pendingPlanId: null, planChangesAt: null };
    expect(await changed(up.id, dear)).toMatchObject({ planId: dear, pendingAmount: 20_000, ...none });
    for (const to of [planId, yearly, dear]) await changed(back.id, to);
    expect((await shop.get(`/subscriptions/${back.id}`)).body).toMatchObject({
      planId: dear,
      pendingAmount: 20_000,
      creditBalance: 20_000,
      ...none,
    });
    await changed(stays.id, yearly);
    await passTo('2028-02-01T08:00:00Z');
    expect((await invoicesOf(stays.id)).at(-1)).toMatchObject({ total: 50_000, periodEnd: '2029-02-01' });
    expect((await shop.get(`/subscriptions/${stays.id}`)).body).toMatchObject({ planId: yearly, ...none });
    const { rows } = await database.query<{ type: string }>(
      `SELECT type FROM events WHERE resource_id = $1 AND type LIKE 'subscription.%' ORDER BY created_at`,
      [stays.id],
    );
    const told = ['created', 'active', 'updated', 'plan_changed'].map((type) => `subscription.${type}`);
    expect(rows.map(({ type }) => type)).toEqual(told);
    await Promise.all([up, back, stays].map(({ id }) => shop.delete(`/subscriptions/${id}`)));
  });

  test('a cheaper plan lowers what is not paid yet, but not while it is being paid', async () => {
    clock.set('2028-02-01T08:00:00Z');
    const cheap = idOf(await shop.post('/plans', { name: 'Less', amount: 4_200, currency: 'ZAR', interval: 'month' }));
    const { id } = await subscribe({ collection: 'send_invoice', provider: undefined });
    await expect.poll(() => invoicesOf(id)).toMatchObject([{ status: 'open', amountDue: 10_000 }]);
    clock.set('2028-02-16T00:00:00Z');
    const path = `/invoices/${String((await invoicesOf(id))[0]?.['id'])}`;
    const { body } = await shop.post(`${path}/pay`);
    expect(codeOf(await shop.patch(`/subscriptions/${id}`, { planId: cheap }))).toBe('CONFLICT');
    await decide(billing, body?.['paymentUrl'], 'cancel');
    await expect.poll(async () => (await shop.get(path)).body?.['paymentId']).toBeNull();
    // 14 of 29 days.
    expect((await shop.patch(`/subscriptions/${id}`, { planId: cheap })).body).toMatchObject({
      planId: cheap,
      pendingAmount: 0,
      creditBalance: 0,
    });
    expect((await shop.get(path)).body).toMatchObject({ status: 'open', amountDue: 7_200, amountCredited: 2_800 });
    await shop.delete(`/subscriptions/${id}`);
  });

  test('a plan beyond what may be charged is refused', async () => {
    const plan = { name: 'Gold', amount: 900_000_000_000, currency: 'ZAR', interval: 'month', taxRate: 15 };
    expect(codeOf(await shop.post('/plans', plan))).toBe('INVOICE_TOTAL_NOT_ALLOWED');
    const gold = idOf(await shop.post('/plans', { ...plan, taxBehavior: 'inclusive' }));
    const dearer = await shop.patch(`/plans/${gold}`, { taxBehavior: 'exclusive' });
    expect(codeOf(dearer)).toBe('INVOICE_TOTAL_NOT_ALLOWED');
    expect((await shop.get(`/plans/${gold}`)).body).toMatchObject({ taxBehavior: 'inclusive', version: 1 });
  });

  test('what was paid in another way since its charge began is not charged', async () => {
    clock.set('2028-03-01T08:00:00Z');
    const { id } = await active({}, 'pay-then-decline');
    await passTo('2028-04-01T08:00:00Z');
    const chargeId = randomUUID();
    const pretend = async (state: string, charge: string) => {
      await database.query(
        `UPDATE invoices SET state = $2 WHERE id = (SELECT open_invoice_id FROM subscriptions WHERE id = $1)`,
        [id, state],
      );
      await database.query(
        `UPDATE subscriptions SET open_charge = $2, open_payment_id = $3, due_at = now() WHERE id = $1`,
        [id, charge, chargeId],
      );
    };
    await pretend('paid', 'unsettled');
    const read = async () => {
      const { rows } = await database.query<{ open_attempts: number; open_charge: string; is_done: boolean }>(
        `SELECT open_attempts, open_charge, due_at > now() + interval '2 minutes' AS is_done
         FROM subscriptions WHERE id = $1`,
        [id],
      );
      return rows[0];
    };
    // By the clock of the test it is looked at again in a year.
    await expect.poll(read).toEqual({ open_attempts: 1, open_charge: 'unsettled', is_done: true });
    await sleep(500);
    expect(await read()).toMatchObject({ open_attempts: 1, open_charge: 'unsettled' });
    expect((await database.query('SELECT FROM payments WHERE id = $1', [chargeId])).rowCount).toBe(0);
    await pretend('open', 'failed');
    await shop.delete(`/subscriptions/${id}`);
  });

  test('a provider without settings is no fault of the customer: it is charged once there are some', async () => {
    clock.set('2028-04-01T08:00:00Z');
    const { id } = await active();
    const provide = async (provider: string) => {
      await database.query('UPDATE subscriptions SET provider = $2 WHERE id = $1', [id, provider]);
      await database.query(
        'UPDATE payment_methods SET provider = $2 WHERE id = (SELECT method_id FROM subscriptions WHERE id = $1)',
        [id, provider],
      );
    };
    await provide('stripe');
    clock.set('2028-05-01T08:00:00Z');
    await database.query('UPDATE subscriptions SET due_at = now() WHERE id = $1', [id]);
    const kept = async () => {
      const { rows } = await database.query<{ open_attempts: number | null; is_put_off: boolean }>(
        `SELECT open_attempts, due_at > now() + interval '2 minutes' AS is_put_off FROM subscriptions WHERE id = $1`,
        [id],
      );
      return rows[0];
    };
    await expect.poll(kept).toEqual({ open_attempts: 0, is_put_off: true });
    expect(await statusOf(id)).toBe('active');
    await provide('sandbox');
    await database.query('UPDATE subscriptions SET due_at = now() WHERE id = $1', [id]);
    await expect.poll(async () => (await invoicesOf(id)).at(-1)?.['status']).toBe('paid');
    await shop.delete(`/subscriptions/${id}`);
  });
});

describe('each move of a state', () => {
  const sent = { collection: 'send_invoice', provider: undefined };

  test('is made here at least once', async () => {
    clock.set('2028-06-01T08:00:00Z');
    const [late, lost, rested, stopped] = await Promise.all([subscribe(sent), subscribe(sent), active(), active()]);
    const halted = await subscribe(sent);
    const tried = await subscribe({ trialDays: 30, ...sent });
    expect((await shop.delete(`/subscriptions/${tried.id}`)).body).toMatchObject({ status: 'cancelled' });
    await expect.poll(() => invoicesOf(halted.id)).toHaveLength(1);
    await shop.post(`/subscriptions/${halted.id}/pause`);
    await shop.post(`/subscriptions/${rested.id}/pause`);
    await shop.delete(`/subscriptions/${rested.id}`);
    await shop.delete(`/subscriptions/${stopped.id}`);
    for (const day of ['08T23', '09T23', '11T23', '13T23', '15T23']) {
      if (day === '09T23') await shop.delete(`/subscriptions/${late.id}`);
      await passTo(`2028-06-${day}:00:00Z`);
    }
    const states = await Promise.all([late, lost, halted].map(({ id }) => statusOf(id)));
    expect(states).toEqual(['cancelled', 'unpaid', 'unpaid']);
    await shop.delete(`/subscriptions/${lost.id}`);
  });

  const pairs = Object.entries(subscriptionTable).flatMap(([before, row]) =>
    [...new Set<string>(Object.values(row))]
      .filter((after) => after !== 'stays' && after !== 'refused')
      .map((after) => [before, after] as const),
  );
  test.each(pairs)('from %s to %s is told by its event, once', async (before, after) => {
    const { rows } = await database.query<{ moves: number; events: number }>(
      `SELECT count(*)::int AS moves, (SELECT count(*)::int FROM events
         WHERE resource_id = seen_moves.id AND type = 'subscription.' || $2) AS events
       FROM seen_moves WHERE after = $2 AND id IN (SELECT id FROM seen_moves WHERE before = $1 AND after = $2)
       GROUP BY id`,
      [before, after],
    );
    expect(rows).not.toEqual([]);
    expect(rows.filter(({ moves, events }) => moves !== events)).toEqual([]);
  });
});

test('the ledger of all of it sums to zero, and customers owe what is open', async () => {
  const { rows } = await database.query<{ sum: string }>('SELECT sum(amount) FROM ledger_postings');
  expect(rows[0]?.sum).toBe('0');
  const { rows: owed } = await database.query<{ sum: string }>(
    "SELECT coalesce(sum(amount), 0) AS sum FROM ledger_postings WHERE account = 'receivable'",
  );
  const { rows: open } = await database.query<{ sum: string }>(
    `SELECT coalesce(sum(gross - from_credit - credited), 0) AS sum FROM invoices WHERE state = 'open'`,
  );
  const { rows: credit } = await database.query<{ sum: string }>(
    'SELECT coalesce(sum(credit_balance), 0) AS sum FROM subscriptions',
  );
  expect(Number(owed[0]?.sum)).toBe(Number(open[0]?.sum) - Number(credit[0]?.sum));
});
