import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { pageTokenHash, sealedPersonal } from '@rollcall/payment/payments/store/payment-rows.ts';
import { sealedTables } from '@rollcall/payment/sealed-tables.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Answer } from '../support/replica.ts';
import { type Caller, codeOf, connectTo, idOf } from './billing-service.ts';
import { choose, type PaymentService, startPayment, untilPayment } from './payment-service.ts';

const KEY = Buffer.alloc(32, 7);
const keys = [{ id: 'one', key: KEY }];
const vault = createVault(keys);
const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let payments: Caller;
let database: Client;
let planId: string;

beforeAll(async () => {
  const file = { keys: [{ id: 'one', key: KEY.toString('base64') }] };
  payment = stack.use(await startPayment({}, { ROLLCALL_VAULT_KEYS_FILE: file }));
  database = stack.use(await connectTo(payment.databaseUrl));
  shop = await payment.billing.callerOf('shop');
  payments = await payment.callerOf('shop');
  planId = idOf(await shop.post('/plans', { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' }));
});

afterAll(() => stack.disposeAsync());

const PERSON = {
  email: 'erna@example.com',
  name: 'Erna Sable',
  address: ['9 Hidden Lane'],
  taxId: '4987654321',
  metadata: { crm: 'sable-7' },
};
/** What tells of the person, or lets their card be charged. */
const TRACE = /erna|sable|hidden lane|4987654321|seat-9|"token":"cus_|^cus_/i;

interface Sealed {
  readonly table: string;
  readonly id: string;
  readonly bytes: string;
  readonly text: string;
}

/** All that is sealed but what was issued, opened. */
async function opened(): Promise<readonly Sealed[]> {
  const all: Sealed[] = [];
  const read = async (table: string, query: string, contextOf: (id: string) => string) => {
    const { rows } = await database.query<{ id: string; bytes: Buffer }>(query);
    for (const { id, bytes } of rows)
      all.push({ table, id, bytes: bytes.toString('hex'), text: vault.open(bytes, contextOf(id)).toString() });
  };
  for (const { table, sealed } of sealedTables((purpose) => createBlindIndex(keys, purpose))) {
    if (table === 'invoices' || table === 'credit_notes') continue;
    for (const [column, contextOf] of Object.entries(sealed))
      await read(table, `SELECT id, ${column} AS bytes FROM ${table} WHERE ${column} IS NOT NULL`, contextOf);
  }
  const outcomes = 'SELECT resource_id AS id, outcome AS bytes FROM idempotency_keys WHERE outcome IS NOT NULL';
  await read('idempotency_keys', outcomes, (id) => `idempotency ${id}`);
  return all;
}

async function traces(): Promise<readonly Sealed[]> {
  return (await opened()).filter(({ text }) => TRACE.test(text));
}

const newCustomer = async () => idOf(await shop.post('/customers', PERSON, randomUUID()));

interface Subscribed {
  readonly id: string;
  readonly paymentId: string;
  readonly url: string;
}

async function subscribe(customerId: string, more: Record<string, unknown> = {}): Promise<Subscribed> {
  const body = { planId, customerId, provider: 'stripe', metadata: { seat: 'seat-9' }, ...more };
  const made = await shop.post('/subscriptions', body, randomUUID());
  const url = String(made.body?.['paymentUrl']);
  const { rows } = await database.query<{ id: string }>('SELECT id FROM payments WHERE customer_id = $1', [customerId]);
  return { id: idOf(made), paymentId: rows[0]?.id ?? '', url };
}

async function untilSubscription(id: string, status: string): Promise<void> {
  await vi.waitFor(async () => expect((await shop.get(`/subscriptions/${id}`)).body).toMatchObject({ status }), 20_000);
}

async function untilNoErrands(): Promise<void> {
  await vi.waitFor(async () => {
    await database.query('UPDATE errands SET due_at = now()');
    expect((await database.query('SELECT FROM errands')).rowCount).toBe(0);
  }, 20_000);
}

/** Until Stripe has told all, also that a customer was deleted there, and all of it is worked off. */
async function untilToldAll(): Promise<void> {
  await payment.stripe.idle();
  await vi.waitFor(async () => {
    expect((await database.query(`SELECT FROM notifications WHERE state = 'new'`)).rowCount).toBe(0);
  }, 20_000);
}

/** What Stripe has of people: customers, and cards that it keeps for somebody. */
async function peopleAtStripe(): Promise<number> {
  const all = (await (await fetch(`${payment.stripe.url}/_control/state`)).json()) as readonly {
    readonly object: string;
    readonly customer?: string | null;
  }[];
  const isKept = ({ object, customer }: (typeof all)[number]) => object === 'payment_method' && customer !== null;
  return all.filter((each) => each.object === 'customer' || isKept(each)).length;
}

test('nothing of a person who was erased opens any more, but for what was issued', { timeout: 90_000 }, async () => {
  const customerId = await newCustomer();
  const path = `/customers/${customerId}`;
  const made = await subscribe(customerId);
  await choose(made, 'pay');
  await untilSubscription(made.id, 'active');
  await payments.post(`/payments/${made.paymentId}/refunds`, { amount: 100, reason: 'Erna asked' }, randomUUID());
  const draft = idOf(
    await shop.post('/invoices', { customerId, items: [{ description: 'Tea', amount: 1, quantity: 1 }] }),
  );
  expect(await shop.delete(path)).toMatchObject({
    status: 409,
    body: {
      error: {
        code: 'CUSTOMER_IN_USE',
        details: { open: { subscriptions: [made.id], invoices: [draft], payments: [] } },
      },
    },
  });
  await shop.delete(`/subscriptions/${made.id}`);
  await shop.post(`/invoices/${draft}/void`);
  await untilToldAll();
  const before = await traces();
  expect(new Set(before.map(({ table }) => table))).toEqual(
    new Set('customers subscriptions payments payment_methods refunds notifications idempotency_keys'.split(' ')),
  );
  await database.query(
    `INSERT INTO billing_mails (id, kind, invoice_id, occasion)
     SELECT gen_random_uuid(), 'receipt', id, 0 FROM invoices WHERE customer_id = $1`,
    [customerId],
  );
  expect(await (await payment.billing.callerOf('other')).delete(path)).toMatchObject({ status: 404 });

  const erased = await shop.delete(path);
  expect(erased).toMatchObject({
    status: 200,
    body: { id: customerId, email: '', name: null, address: [], taxId: null, metadata: {}, paymentMethods: [] },
  });
  const subscription = `/subscriptions/${made.id}`;
  expect(codeOf(await shop.patch(subscription, { metadata: { seat: 'seat-9' } }))).toBe('CUSTOMER_ERASED');
  expect((await shop.get(subscription)).body).toMatchObject({ status: 'cancelled', metadata: {} });
  // As a version that knows of no metadata leaves it.
  await database.query('UPDATE subscriptions SET sealed = $2 WHERE id = $1', [
    made.id,
    vault.seal(JSON.stringify({ seat: 'seat-9' }), `subscription ${made.id}`),
  ]);
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  await untilNoErrands();
  await untilToldAll();
  expect(await traces()).toEqual([]);
  const kept = new Set((await opened()).map(({ bytes }) => bytes));
  for (const { bytes } of before) expect(kept.has(bytes)).toBe(false);
  const { rows } = await database.query<{ found: number }>(
    `SELECT (SELECT count(email_index) FROM customers WHERE id = $1)::int
       + (SELECT count(email_index) + count(method_index) FROM payments WHERE customer_id = $1)::int AS found`,
    [customerId],
  );
  expect(rows).toEqual([{ found: 0 }]);
  expect((await database.query('SELECT FROM billing_mails')).rowCount).toBe(0);
  expect(await peopleAtStripe()).toBe(0);
  expect((await fetch(made.url)).status).not.toBe(500);
});

test('who was erased reads so, is in no list, and gets nothing new; what was issued stays', {
  timeout: 60_000,
}, async () => {
  const customerId = await newCustomer();
  const path = `/customers/${customerId}`;
  const items = [{ description: 'Tea', amount: 10_000, quantity: 1, taxRate: 15 }];
  const issued = `/invoices/${idOf(await shop.post('/invoices', { customerId, items, finalize: true }))}`;
  const { paymentUrl } = (await shop.post(`${issued}/pay`, { provider: 'sandbox' })).body ?? {};
  expect(codeOf(await shop.delete(path))).toBe('CUSTOMER_IN_USE');
  await choose({ id: '', url: String(paymentUrl) }, 'pay');
  await vi.waitFor(async () => expect((await shop.get(issued)).body).toMatchObject({ status: 'paid' }), 20_000);
  const before = (await shop.get(issued)).body;
  const found = async (query: string) => (await payments.get(`/payments?${query}`)).body?.['total'];
  const queries = [
    `customerId=${customerId}`,
    `invoiceId=${issued.slice('/invoices/'.length)}&customerId=${customerId}`,
  ];
  expect(await Promise.all([...queries, `customerId=${randomUUID()}`, 'invoiceId=x'].map(found))).toEqual([1, 1, 0, 0]);
  const pdf = Buffer.from(await (await shop.bytes(`${issued}/pdf`)).arrayBuffer());
  const erased = await shop.delete(path);
  expect(erased.body).toMatchObject({ erasedAt: expect.any(String) });

  expect((await shop.delete(path)).body).toEqual(erased.body);
  // As a version that knows of nobody erased does by PATCH.
  await database.query(`UPDATE customers SET sealed = $2, email_index = '\\x01' WHERE id = $1`, [
    customerId,
    vault.seal(JSON.stringify(PERSON), `customer ${customerId}`),
  ]);
  expect((await shop.get(path)).body).toMatchObject({ email: PERSON.email });
  expect((await shop.delete(path)).body).toEqual({ ...erased.body, updatedAt: expect.any(String) });
  expect((await shop.get(path)).body).toEqual({ ...erased.body, updatedAt: expect.any(String) });
  expect((await shop.get(`/customers?email=${PERSON.email}`)).body).toMatchObject({ total: 0 });
  for (const answer of [
    await shop.patch(path, { email: 'again@example.com' }),
    await shop.post('/subscriptions', { planId, customerId, provider: 'sandbox' }),
    await shop.post('/invoices', { customerId, items }),
  ])
    expect([answer.status, codeOf(answer)]).toEqual([422, 'CUSTOMER_ERASED']);
  expect((await shop.get(issued)).body).toEqual(before);
  expect(Buffer.from(await (await shop.bytes(`${issued}/pdf`)).arrayBuffer()).equals(pdf)).toBe(true);
  expect((await shop.post(`${issued}/credit-notes`, {})).status).toBe(201);
  const { rows } = await database.query<{ id: string }>('SELECT id FROM payments WHERE customer_id = $1', [customerId]);
  const refund = await payments.post(`/payments/${rows[0]?.id}/refunds`, {});
  expect(refund.body).toMatchObject({ status: 'succeeded', amount: 11_500 });
  expect((await payments.get(`/payments/${rows[0]?.id}`)).body).toMatchObject({
    customerEmail: '',
    status: 'refunded',
  });
});

test('who pays late after being erased leaves no card, and no notification', { timeout: 60_000 }, async () => {
  const customerId = await newCustomer();
  const { id, paymentId, url } = await subscribe(customerId);
  payment.stripe.addFaults({ kind: 'status', status: 500, match: 'expire', times: 1 });
  await shop.delete(`/subscriptions/${id}`);
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  await choose({ id: paymentId, url }, 'pay');
  await untilPayment(payments, paymentId, 'needs_review');
  await untilToldAll();
  await untilNoErrands();
  await untilToldAll();
  await vi.waitFor(async () => expect(await traces()).toEqual([]), 20_000);
  expect(await peopleAtStripe()).toBe(0);
});

/** Payments as they are once they are over, each with a refund, and notifications that an older version ended. */
async function writeMany(customerId: string, count: number): Promise<void> {
  const ids = Array.from({ length: count }, () => randomUUID());
  const { email: customerEmail, metadata } = PERSON;
  const sealed = ids.map((id) =>
    sealedPersonal(vault, id, { customerEmail, metadata, itemName: 'Tea', pageToken: id, method: { token: 'cus_1' } }),
  );
  await database.query(
    `INSERT INTO payments (id, subject, provider, purpose, amount, currency, state, captured, refunded, sealed,
       email_index, method_index, page_token_hash, customer_id, expires_at)
     SELECT id, 'shop', 'stripe', 'pay', 100, 'ZAR', 'refunded', 100, 100, sealed, '\\x01', '\\x01', hash, $4, now()
     FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) AS made (id, sealed, hash)`,
    [ids, sealed, ids.map(pageTokenHash), customerId],
  );
  await database.query(
    `INSERT INTO refunds (id, payment_id, subject, amount, currency, state, sealed)
     SELECT id, id, 'shop', 100, 'ZAR', 'succeeded', sealed FROM unnest($1::uuid[], $2::bytea[]) AS made (id, sealed)`,
    [ids, ids.map((id) => vault.seal(JSON.stringify({ reason: 'Erna asked' }), `refund ${id}`))],
  );
  await database.query(
    `INSERT INTO notifications (id, provider, event_key, state, sealed)
     SELECT id, 'stripe', id::text, 'done', sealed FROM unnest($1::uuid[], $2::bytea[]) AS made (id, sealed)`,
    [ids, ids.map((id) => vault.seal(customerEmail, `notification ${id}`))],
  );
}

test('of many payments, and of what older versions left, nothing is left', { timeout: 90_000 }, async () => {
  const customerId = await newCustomer();
  await writeMany(customerId, 1200);
  expect((await traces()).length).toBeGreaterThan(3600);
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  expect(await traces()).toEqual([]);
  const { rows } = await database.query(
    `SELECT count(*)::int AS payments, count(DISTINCT page_token_hash)::int AS pages, count(erased_at)::int AS erased,
       (count(email_index) + count(method_index))::int AS found FROM payments WHERE customer_id = $1`,
    [customerId],
  );
  expect(rows).toEqual([{ payments: 1200, pages: 1200, erased: 1200, found: 0 }]);
});

test('a payment that names its customer is erased with it', async () => {
  const customerId = await newCustomer();
  const wanted = { amount: 500, currency: 'ZAR', provider: 'sandbox', customerEmail: PERSON.email, customerId };
  const made = await payments.post('/payments', wanted, randomUUID());
  expect(made).toMatchObject({ status: 201, body: { customerId } });
  expect(codeOf(await shop.delete(`/customers/${customerId}`))).toBe('CUSTOMER_IN_USE');
  await payments.post(`/payments/${idOf(made)}/cancel`, undefined, randomUUID());
  const stranger = await payment.callerOf('stranger');
  for (const answer of [
    await stranger.post('/payments', wanted),
    await payments.post('/payments', { ...wanted, customerId: randomUUID() }),
    await payments.post('/payments', { ...wanted, customerId: 'x' }),
  ])
    expect([answer.status, codeOf(answer)]).toEqual([422, 'CUSTOMER_NOT_FOUND']);
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  expect(codeOf(await payments.post('/payments', wanted))).toBe('CUSTOMER_ERASED');
  expect((await payments.get(`/payments/${idOf(made)}`)).body).toMatchObject({ customerEmail: '' });
  expect(await traces()).toEqual([]);
});

async function erase(body: Record<string, unknown>, scope = 'payments:admin'): Promise<Answer> {
  return (await payment.callerOf('officer', scope)).post('/payer-erasures', body, randomUUID());
}

async function pay(caller: Caller, more: Record<string, unknown> = {}) {
  const { email: customerEmail, metadata } = PERSON;
  const wanted = { amount: 14_950, currency: 'ZAR', provider: 'sandbox', customerEmail, metadata, ...more };
  const { body } = await caller.post('/payments', wanted, randomUUID());
  return { id: String(body?.['id']), url: String(body?.['paymentUrl']) };
}

describe('who paid without being a customer', () => {
  test('is erased by the address, with what was answered', { timeout: 60_000 }, async () => {
    const bought = await pay(payments, { provider: 'stripe' });
    const dropped = await pay(payments, { customerEmail: 'Erna@Example.com' });
    await choose(bought, 'pay');
    await untilPayment(payments, bought.id, 'succeeded');
    await payments.post(`/payments/${bought.id}/refunds`, { amount: 100, reason: 'Erna asked' }, randomUUID());
    const elsewhere = await pay(await payment.callerOf('elsewhere'));
    await (await payment.callerOf('elsewhere')).post(`/payments/${elsewhere.id}/cancel`, undefined, randomUUID());
    const ofPerson = { customerEmail: PERSON.email };
    const refused = await erase(ofPerson);
    expect(refused).toMatchObject({
      status: 409,
      body: { error: { code: 'CUSTOMER_IN_USE', details: { open: { payments: [dropped.id] } } } },
    });
    await payments.post(`/payments/${dropped.id}/cancel`, undefined, randomUUID());
    await untilToldAll();
    const before = (await payments.get(`/payments/${bought.id}`)).body;
    expect(new Set((await traces()).map(({ table }) => table))).toEqual(
      new Set('payments refunds notifications idempotency_keys'.split(' ')),
    );

    expect((await erase({ ...ofPerson, subject: 'nobody' })).body).toEqual({ payments: 0, customers: [] });
    expect((await erase({ ...ofPerson, subject: 'shop' })).body).toEqual({ payments: 2, customers: [] });
    expect((await traces()).filter(({ table }) => table === 'payments')).toMatchObject([{ id: elsewhere.id }]);
    expect((await traces()).some(({ table }) => table === 'refunds' || table === 'notifications')).toBe(false);
    expect(await erase(ofPerson)).toMatchObject({ status: 200, body: { payments: 1, customers: [] } });
    expect(await traces()).toEqual([]);
    expect((await payments.get(`/payments/${bought.id}`)).body).toMatchObject({
      ...before,
      customerEmail: '',
      metadata: {},
      updatedAt: expect.any(String),
    });
    const rest = await payments.post(`/payments/${bought.id}/refunds`, {});
    expect(rest.body).toMatchObject({ amount: 14_850 });
    expect((await payments.get(`/payments?customerEmail=${PERSON.email}`)).body).toMatchObject({ total: 0 });
    await untilToldAll();
  });

  test('is erased by who sees all alone, and customers by themselves', async () => {
    const customerId = await newCustomer();
    const { id } = await pay(payments, { customerId });
    const ofPerson = { customerEmail: PERSON.email };
    expect((await erase(ofPerson, 'payments:write payments:read billing:write')).status).toBe(403);
    expect((await erase({ customerEmail: 'x', subject: '\n' })).body).toMatchObject({
      error: { details: { fields: [{ path: 'body/customerEmail' }, { path: 'body/subject' }] } },
    });
    expect(await erase(ofPerson)).toMatchObject({ status: 200, body: { payments: 0, customers: [customerId] } });
    expect((await payments.get(`/payments/${id}`)).body).toMatchObject(ofPerson);
    await payments.post(`/payments/${id}/cancel`, undefined, randomUUID());
    expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
    expect((await erase(ofPerson)).body).toEqual({ payments: 0, customers: [] });
  });
});

test('a draft that was taken back loses what it was made with', async () => {
  const customerId = await newCustomer();
  const items = [{ description: 'Tea', amount: 1, quantity: 1 }];
  const draft = `/invoices/${idOf(await shop.post('/invoices', { customerId, items, metadata: PERSON.metadata }))}`;
  await shop.post(`${draft}/void`, undefined, randomUUID());
  const before = (await shop.get(draft)).body;
  expect(before).toMatchObject({ status: 'void', metadata: PERSON.metadata });
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  expect((await shop.get(draft)).body).toEqual({ ...before, metadata: {} });
  expect(await traces()).toEqual([]);
});

test('what was answered is found by indexes', { timeout: 90_000 }, async () => {
  const customerId = await newCustomer();
  await database.query(
    `INSERT INTO idempotency_keys (subject, operation, key, fingerprint, resource_id, about, claimed_until)
     SELECT 'other', 'cancelPayment', n::text, '\\x', gen_random_uuid(), gen_random_uuid(), now()
     FROM generate_series(1, 20000) AS n`,
  );
  await database.query('ANALYZE idempotency_keys');
  const scans = async () => {
    const { rows } = await database.query<{ scans: number }>(
      `SELECT idx_scan::int AS scans FROM pg_stat_user_indexes
       WHERE indexrelname IN ('idempotency_keys_of_resource', 'idempotency_keys_about') AND schemaname = 'payment'`,
    );
    return rows.map((row) => row.scans);
  };
  const before = await scans();
  expect((await shop.delete(`/customers/${customerId}`)).status).toBe(200);
  await expect
    .poll(async () => (await scans()).map((count, at) => count > (before[at] ?? count)), { timeout: 60_000 })
    .toEqual([true, true]);
});

/** Runs one after the other on a row that another transaction has, so that both wait for it. */
async function queued(customerId: string, ...calls: readonly (() => Promise<Answer>)[]): Promise<readonly unknown[]> {
  await using client = await connectTo(payment.databaseUrl);
  await client.query('BEGIN');
  await client.query('SELECT FROM customers WHERE id = $1 FOR UPDATE', [customerId]);
  const answers: Promise<Answer>[] = [];
  for (const call of calls) {
    answers.push(call());
    await vi.waitFor(async () => {
      const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      expect((await database.query(waiting)).rowCount).toBe(answers.length);
    }, 10_000);
  }
  await client.query('COMMIT');
  return (await Promise.all(answers)).map(({ status }) => status);
}

describe('a customer', () => {
  const item = { description: 'Tea', amount: 1, quantity: 1 };

  test.each(['subscriptions', 'invoices'])('is erased before or after %s are made for it', async (what) => {
    for (const isErasedFirst of [true, false]) {
      const customerId = await newCustomer();
      const body = what === 'invoices' ? { items: [item] } : { planId, collection: 'send_invoice' };
      const make = () => shop.post(`/${what}`, { ...body, customerId });
      const erase = () => shop.delete(`/customers/${customerId}`);
      const calls = isErasedFirst ? [erase, make] : [make, erase];
      expect(await queued(customerId, ...calls)).toEqual(isErasedFirst ? [200, 422] : [201, 409]);
    }
  });

  test('is erased, or has what is made at the same time', async () => {
    const ends: string[] = [];
    for (let round = 0; round < 20; round += 1) {
      const customerId = await newCustomer();
      const [made, erased] = await Promise.all([
        shop.post('/invoices', { customerId, items: [item] }),
        sleep(round % 5).then(() => shop.delete(`/customers/${customerId}`)),
      ]);
      ends.push(`${made.status} ${erased.status}`);
    }
    expect(new Set([...ends, '201 409', '422 200'])).toEqual(new Set(['201 409', '422 200']));
  });
});
