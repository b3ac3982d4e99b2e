import { setTimeout as sleep } from 'node:timers/promises';
import { makeRenewalsOf } from '@rollcall/payment/testing/renewals.ts';
import { expect, test, vi } from 'vitest';
import { connectTo, decide, idOf, sandbox, startBilling } from '../payment/billing-service.ts';
import { createDatabase } from '../support/postgres.ts';

const RENEWALS = 10_000;

test('ten thousand renewals that are due at once have an invoice and a charge each, by two replicas', async () => {
  await using stack = new AsyncDisposableStack();
  const { url: databaseUrl } = stack.use(await createDatabase());
  const billing = stack.use(await startBilling({ databaseUrl, ...sandbox }));
  const database = stack.use(await connectTo(databaseUrl));
  const shop = await billing.callerOf('shop');
  const customerId = idOf(await shop.post('/customers', { email: 'ann@example.com' }));
  const planId = idOf(await shop.post('/plans', { name: 'Tea', amount: 100, currency: 'ZAR', interval: 'month' }));
  const first = await shop.post('/subscriptions', { customerId, planId });
  await decide(billing, first.body?.['paymentUrl'], 'pay');
  await vi.waitFor(async () => {
    expect((await shop.get(`/subscriptions/${idOf(first)}`)).body).toMatchObject({ status: 'active' });
  }, 10_000);
  stack.use(await billing.startProcess());
  await makeRenewalsOf(database, idOf(first), RENEWALS);
  const left = async () => {
    const { rows } = await database.query<{ number: number }>(
      `SELECT count(*)::int AS number FROM subscriptions WHERE next_index = 1 AND id <> $1 OR open_key IS NOT NULL`,
      [idOf(first)],
    );
    return rows[0]?.number;
  };
  for (let waiting = await left(); waiting !== 0; waiting = await left()) await sleep(1000);
  const { rows: invoices } = await database.query(
    `SELECT count(*)::int AS all, count(DISTINCT subscription_id)::int AS subscriptions, max(sequence)::int AS last,
       count(*) FILTER (WHERE state = 'paid')::int AS paid FROM invoices`,
  );
  const all = RENEWALS + 1;
  expect(invoices).toEqual([{ all, subscriptions: all, last: all, paid: all }]);
  const { rows: payments } = await database.query(
    `SELECT count(*)::int AS all, count(DISTINCT invoice_id)::int AS invoices, sum(captured)::int AS captured FROM payments`,
  );
  expect(payments).toEqual([{ all, invoices: all, captured: 100 * all }]);
  const { rows: ledger } = await database.query(
    `SELECT account, sum(amount)::int AS amount FROM ledger_postings GROUP BY account ORDER BY account`,
  );
  expect(ledger).toEqual([
    { account: 'provider:sandbox', amount: 100 * all },
    { account: 'receivable', amount: 0 },
    { account: 'sales', amount: -100 * all },
  ]);
}, 1_800_000);
