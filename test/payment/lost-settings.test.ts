import { randomUUID } from 'node:crypto';
import { createVault } from '@rollcall/platform/vault.ts';
import type { Client } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import {
  type BillingService,
  type Caller,
  codeOf,
  connectTo,
  decide,
  idOf,
  sandbox,
  startBilling,
} from './billing-service.ts';
import { tea, untilPayment } from './payment-service.ts';

const KEY = Buffer.alloc(32, 9);
const vault = createVault([{ id: 'one', key: KEY }]);
const stack = new AsyncDisposableStack();
let billing: BillingService;
let shop: Caller;
let database: Client;

beforeAll(async () => {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const keys = { keys: [{ id: 'one', key: KEY.toString('base64') }] };
  const files = { ...sandbox.files, ROLLCALL_VAULT_KEYS_FILE: keys };
  billing = stack.use(await startBilling({ databaseUrl, ...sandbox, files }));
  database = stack.use(await connectTo(databaseUrl));
  shop = await billing.callerOf('shop', 'payments:write payments:read refunds:write');
});

afterAll(() => stack.disposeAsync());

/** A payment that is paid, at a provider whose settings are gone since. */
async function paidBefore(): Promise<string> {
  const made = await shop.post('/payments', tea);
  await decide(billing, made.body?.['paymentUrl'], 'pay');
  await untilPayment(shop, idOf(made), 'succeeded');
  await database.query(`UPDATE payments SET provider = 'stripe' WHERE id = $1`, [idOf(made)]);
  return idOf(made);
}

test('a refund at a provider without settings is refused, and reserves nothing', async () => {
  const id = await paidBefore();
  const answer = await shop.post(`/payments/${id}/refunds`, { amount: 950 });
  expect([answer.status, codeOf(answer)]).toEqual([422, 'PROVIDER_NOT_CONFIGURED']);
  expect(answer.body).toMatchObject({ error: { details: { providers: ['sandbox'] } } });
  expect((await shop.get(`/payments/${id}/refunds`)).body).toMatchObject({ refunds: [], total: 0 });
  await database.query(`UPDATE payments SET provider = 'sandbox' WHERE id = $1`, [id]);
  expect((await shop.post(`/payments/${id}/refunds`, {})).body).toMatchObject({ amount: tea.amount });
});

test('a call for a refund that is repeated tells of that refund, and not that there are no settings', async () => {
  const key = randomUUID();
  const made = await shop.post('/payments', tea);
  await decide(billing, made.body?.['paymentUrl'], 'pay');
  await untilPayment(shop, idOf(made), 'succeeded');
  const path = `/payments/${idOf(made)}/refunds`;
  const refund = await shop.post(path, { amount: 950 }, key);
  // As though whoever answered had died before.
  await database.query(
    'UPDATE idempotency_keys SET outcome = NULL, claim = NULL, claimed_until = now() WHERE resource_id = $1',
    [idOf(refund)],
  );
  await database.query(`UPDATE payments SET provider = 'stripe' WHERE id = $1`, [idOf(made)]);
  const again = await shop.post(path, { amount: 950 }, key);
  expect([again.status, idOf(again)]).toEqual([201, idOf(refund)]);
  expect(codeOf(await shop.post(path, { amount: 950 }))).toBe('PROVIDER_NOT_CONFIGURED');
});

test('refunds that were asked for before wait three days for settings, then release what they reserved', async () => {
  const id = await paidBefore();
  const [old, young, lost] = [randomUUID(), randomUUID(), randomUUID()];
  const before = new Date(Date.now() - 4 * 86_400_000);
  await database.query('UPDATE payments SET reserved = 700 WHERE id = $1', [id]);
  await database.query(
    `INSERT INTO refunds (id, payment_id, subject, amount, currency, state, sealed, called_at, created_at, due_at)
     SELECT id, $1, 'shop', amount, 'ZAR', CASE WHEN called_at IS NULL THEN 'pending' ELSE 'processing' END, sealed,
       called_at, created_at, now()
     FROM unnest($2::uuid[], $3::bigint[], $4::bytea[], $5::timestamptz[], $6::timestamptz[])
       AS asked (id, amount, sealed, called_at, created_at)`,
    [
      id,
      [old, young, lost],
      ['100', '200', '400'],
      [old, young, lost].map((each) => vault.seal(JSON.stringify({ reason: 'too much' }), `refund ${each}`)),
      [null, null, before],
      [before, new Date(), before],
    ],
  );
  const refunds = async () => (await shop.get(`/payments/${id}/refunds`)).body?.['refunds'];
  const statuses = async () => {
    const list = (await refunds()) as readonly {
      readonly id: string;
      readonly status: string;
      readonly failure: string;
    }[];
    return [young, old, lost].map((each) => {
      const { status, failure } = list.find((refund) => refund.id === each) ?? {};
      return [status, failure];
    });
  };
  await expect.poll(statuses, { timeout: 20_000 }).toEqual([
    ['pending', null],
    ['failed', 'unreachable'],
    ['needs_review', 'outcome_unknown'],
  ]);
  const reserved = async () => (await database.query('SELECT reserved FROM payments WHERE id = $1', [id])).rows;
  expect(await reserved()).toEqual([{ reserved: '600' }]);
  await database.query(`UPDATE payments SET provider = 'sandbox' WHERE id = $1`, [id]);
  await expect
    .poll(
      async () => {
        await database.query(`UPDATE refunds SET due_at = now() WHERE id = $1 AND state = 'pending'`, [young]);
        return (await statuses())[0];
      },
      { timeout: 20_000 },
    )
    .toEqual(['succeeded', null]);
  expect(await reserved()).toEqual([{ reserved: '400' }]);
});

test('work that nobody does is told by how long it is due', async () => {
  const biller = await billing.callerOf('shop');
  const customerId = idOf(await biller.post('/customers', { email: 'ann@example.com' }));
  const items = [{ description: 'Tea', amount: 1, quantity: 1 }];
  const invoiceId = idOf(await biller.post('/invoices', { customerId, items }));
  // There is no client of communication.
  await database.query(
    `INSERT INTO billing_mails (id, kind, invoice_id, occasion, due_at)
     VALUES (gen_random_uuid(), 'invoice', $1, 0, now() - interval '1 hour')`,
    [invoiceId],
  );
  const metrics = await (await fetch(`${billing.service.adminUrl}/metrics`)).text();
  const seconds = new Map(
    [...metrics.matchAll(/rollcall_payment_overdue_seconds\{[^}]*kind="(\w+)"[^}]*\} ([\d.]+)/g)].map(
      ([, kind, value]) => [kind, Number(value)],
    ),
  );
  const kinds = ['errand', 'mail', 'notification', 'payment', 'refund', 'subscription'];
  expect(new Set(seconds.keys())).toEqual(new Set(kinds));
  expect(seconds.get('mail')).toBeGreaterThanOrEqual(3600);
  expect(seconds.get('refund')).toBeLessThan(3600);
});

test('a payment whose provider cannot be asked is for a person after three days', async () => {
  const made = await shop.post('/payments', tea);
  await database.query(
    `UPDATE payments SET provider = 'stripe', state = 'processing', expires_at = now() - interval '4 days',
       due_at = now() WHERE id = $1`,
    [idOf(made)],
  );
  const { body } = await untilPayment(shop, idOf(made), 'needs_review');
  expect(body).toMatchObject({ reason: 'outcome_unknown' });
});
