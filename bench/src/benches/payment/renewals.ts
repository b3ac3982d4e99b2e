import { waitUntil } from '@rollcall/local/wait.ts';
import { makeRenewalsOf } from '@rollcall/payment/testing/renewals.ts';
import { atMost, figure, type Row } from '../../report.ts';
import type { Paying } from './paying.ts';

const RENEWALS = 10_000;
const MOST_SECONDS = 300;
const TIMEOUT_MS = 900_000;
const READY_TIMEOUT_MS = 20_000;

/** Ten thousand subscriptions whose next month begins at once: each gets an invoice and a charge. */
export async function renewalRows(paying: Paying, log: (line: string) => void): Promise<Row[]> {
  const { service, tables } = paying;
  const first = await subscribed(paying);
  log(`payment: ${RENEWALS} renewals`);
  const startedAtMs = performance.now();
  await makeRenewalsOf(tables, first, RENEWALS);
  const isOver = async (): Promise<boolean> => {
    const { rowCount } = await tables.query(
      'SELECT FROM subscriptions WHERE (next_index = 1 AND id <> $1) OR open_key IS NOT NULL LIMIT 1',
      [first],
    );
    return rowCount === 0;
  };
  const options = { timeoutMs: TIMEOUT_MS, intervalMs: 1000, failed: service.process.failed };
  await waitUntil(`${RENEWALS} renewals are over`, isOver, options);
  const seconds = (performance.now() - startedAtMs) / 1000;
  const { rows } = await tables.query<{ paid: number }>(
    `SELECT count(*)::int AS paid FROM invoices WHERE state = 'paid' AND subscription_id <> $1`,
    [first],
  );
  return [
    atMost(MOST_SECONDS, figure('10,000 renewals, all paid after', seconds, 's')),
    figure('renewals', RENEWALS / seconds, '1/s'),
    atMost(0, figure('renewals that are not paid once', Math.abs(RENEWALS - (rows[0]?.paid ?? 0)), '')),
  ];
}

/** @returns the id of a subscription that is paid by a stored method. */
async function subscribed(paying: Paying): Promise<string> {
  const { service, tables } = paying;
  const { headers } = await paying.callerOf('billing');
  const base = `http://127.0.0.1:${service.port}`;
  const post = async (path: string, body: unknown): Promise<Readonly<Record<string, string>>> => {
    const response = await fetch(`${base}/api/v1${path}`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`${path} was answered ${response.status}: ${await response.text()}`);
    return (await response.json()) as Record<string, string>;
  };
  const { id: customerId } = await post('/customers', { email: 'buyer@example.com' });
  const { id: planId } = await post('/plans', { name: 'Tea', amount: 14_950, currency: 'ZAR', interval: 'month' });
  const { id = '', paymentUrl = '' } = await post('/subscriptions', { customerId, planId });
  await fetch(`${base}${new URL(paymentUrl).pathname}`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: 'decision=pay',
    redirect: 'manual',
  });
  const isActive = async (): Promise<boolean> => {
    const { rowCount } = await tables.query(`SELECT FROM subscriptions WHERE id = $1 AND state = 'active'`, [id]);
    return rowCount === 1;
  };
  await waitUntil('the first subscription is paid', isActive, { timeoutMs: READY_TIMEOUT_MS, intervalMs: 100 });
  return id;
}
