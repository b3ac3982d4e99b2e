import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { startPostgres } from '@rollcall/local/postgres.ts';
import { makeRenewalsOf } from '@rollcall/payment/testing/renewals.ts';
import { expect, inject, vi } from 'vitest';
import { insist } from '../support/insist.ts';
import { killInRounds, type Load, startLoad, victimOf } from '../support/kills.ts';
import { startAgain } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import type { Supervised } from '../support/supervised.ts';
import { type Caller, connectTo, idOf } from './billing-service.ts';
import { type Moved, moneyAt } from './money-at-providers.ts';
import { choose, type PaymentService, startPayment, tea } from './payment-service.ts';

const LANES = 8;
const PAUSE_MS = 100;
/** From what a provider does to its answer: who is killed in between never knows. */
const ANSWERS_AFTER_MS = 200;
/** Providers say it again for hours, and those here for a minute and more. */
const retryDelaysMs = Array.from({ length: 200 }, () => 500);
const RENEWALS_A_ROUND = 3;
const PROVIDERS = ['stripe', 'yoco', 'payfast', 'sandbox'] as const;
const SCOPE = 'payments:write payments:read refunds:write billing:write billing:read';

/** Subscriptions of one card are copied, to be due. */
interface Shop {
  readonly customerId: string;
  readonly subscriptionId: string;
}

/**
 * Kills replicas and PostgreSQL under a load of payments, refunds, invoices and renewals. What
 * providers list is then what the books say: each payment was charged once at most, and all is over.
 *
 * @param rounds how often something is killed.
 * @returns what is wrong.
 */
export async function killPayment(rounds: number): Promise<readonly unknown[]> {
  await using stack = new AsyncDisposableStack();
  const directory = await mkdtemp(join(inject('temporaryDirectory'), 'payment-kills-'));
  const postgres = stack.use(await startPostgres({ directory: join(directory, 'postgres') }));
  const databaseUrl = await postgres.createDatabase('payment');
  const payment = stack.use(await startPayment({}, {}, { databaseUrl, retryDelaysMs }));
  const shop = await openShop(payment);
  const supervise = async () => stack.use(await payment.billing.supervise());
  const replicas = await Promise.all([supervise(), supervise()]);
  payment.front.leadTo(...replicas.map(({ current }) => current.url));
  // One that cannot be killed would end what others leave.
  await payment.service[Symbol.asyncDispose]();
  for (const provider of [payment.stripe, payment.yoco])
    provider.addFaults({ kind: 'slow', delayMs: ANSWERS_AFTER_MS });

  const calls = await callsOf(payment, replicas);
  const load = payAndRefund(calls, shop);
  const victims = [...replicas.map(victimOf), { kill: () => postgres.kill(), start: () => startAgain(postgres) }];
  const onRound = () => makeRenewalsDue(databaseUrl, shop);
  await killInRounds({ victims, rounds, progress: load.done, onRound });
  await load.stop();
  await Promise.all([payment.stripe, payment.yoco, payment.payfast].map((simulator) => simulator.idle()));
  await untilAllIsOver(databaseUrl);
  return await faultsOf(payment, { renewals: RENEWALS_A_ROUND * rounds });
}

/** A subscription whose first payment was made, so that the provider keeps the card. */
async function openShop(payment: PaymentService): Promise<Shop> {
  const caller = await payment.callerOf('shop', SCOPE);
  const customerId = idOf(await caller.post('/customers', { email: 'ann@example.com', name: 'Ann' }));
  const plan = { name: 'Tea', amount: 10_000, currency: 'ZAR', interval: 'month' };
  const planId = idOf(await caller.post('/plans', plan));
  const made = await caller.post('/subscriptions', { customerId, planId, provider: 'stripe' });
  const subscriptionId = idOf(made);
  await choose({ id: subscriptionId, url: String(made.body?.['paymentUrl']) }, 'pay');
  await vi.waitFor(async () => {
    const { body } = await caller.get(`/subscriptions/${subscriptionId}`);
    expect(body).toMatchObject({ status: 'active', methodId: expect.any(String) });
  }, 20_000);
  return { customerId, subscriptionId };
}

async function makeRenewalsDue(databaseUrl: string, { subscriptionId }: Shop): Promise<void> {
  await using database = await connectTo(databaseUrl);
  await makeRenewalsOf(database, subscriptionId, RENEWALS_A_ROUND);
}

/** Of a careful client, by whichever replica answers. */
interface Calls {
  post(path: string, body: unknown, key: string): Promise<Answer>;
  get(path: string): Promise<Answer>;
}

async function callsOf(payment: PaymentService, replicas: readonly Supervised[]): Promise<Calls> {
  const callers = await Promise.all(replicas.map(({ current: { url } }) => payment.callerOf('shop', SCOPE, url)));
  let turn = 0;
  const byTurns = (call: (caller: Caller) => Promise<Answer>) =>
    insist(async () => {
      turn += 1;
      const caller = callers[turn % callers.length];
      if (caller === undefined) throw new Error('there is no replica');
      return call(caller);
    });
  return {
    post: (path, body, key) => byTurns((caller) => caller.post(path, body, key)),
    get: (path) => byTurns((caller) => caller.get(path)),
  };
}

function payAndRefund(calls: Calls, { customerId }: Shop): Load {
  return startLoad(LANES, async (lane, turn) => {
    const key = `kills ${lane} ${turn}`;
    const provider = PROVIDERS[(lane + turn) % PROVIDERS.length];
    const made = await calls.post('/payments', { ...tea, provider }, `${key} pay`);
    expect(made.status === 202 ? 201 : made.status).toBe(201);
    const id = idOf(made);
    if (turn % 5 === 4) {
      const cancelled = await calls.post(`/payments/${id}/cancel`, undefined, `${key} cancel`);
      expect(cancelled.body).toMatchObject({ status: 'cancelled' });
    } else {
      await pay(calls, id);
      if (turn % 2 === 0 && (await isPaidSoon(calls, id))) {
        const refund = await calls.post(`/payments/${id}/refunds`, { amount: 6000 }, `${key} refund`);
        expect([refund.status, refund.body]).toEqual([201, expect.anything()]);
      }
    }
    if (turn % 3 === 0) {
      const items = [{ description: 'Tea', amount: 24_167, quantity: 1, taxRate: 15 }];
      const invoice = await calls.post('/invoices', { customerId, items, finalize: true }, `${key} invoice`);
      expect(invoice.body).toMatchObject({ status: 'open', number: expect.any(String) });
    }
    await sleep(PAUSE_MS);
  });
}

const WITHIN_MS = 240_000;

/** The payer waits until there is a page, and tries until it takes the choice. */
async function pay(calls: Calls, id: string): Promise<void> {
  const untilMs = performance.now() + WITHIN_MS;
  while (performance.now() < untilMs) {
    const url = (await calls.get(`/payments/${id}`)).body?.['paymentUrl'];
    const chosen = typeof url === 'string' ? await choose({ id, url }, 'pay').catch(() => undefined) : undefined;
    if (chosen !== undefined && chosen.status < 400) return;
    await sleep(250);
  }
  throw new Error(`${id} could not be paid`);
}

async function isPaidSoon(calls: Calls, id: string): Promise<boolean> {
  for (let left = 10; left > 0; left -= 1) {
    if ((await calls.get(`/payments/${id}`)).body?.['status'] === 'succeeded') return true;
    await sleep(200);
  }
  return false;
}

/** The copies, which began a month ago. */
const NOT_RENEWED = 'next_index = 1 AND anchor < current_date - 20';
/**
 * Nobody waits for hours: what is not known is looked up at once, and what is not made by PayFast is after a day.
 * What providers told is worked off before, as the day until a payment expires is longer than a replica's death.
 */
const TIME_PASSES = [
  `UPDATE payments SET called_at = least(called_at, now() - interval '2 minutes'),
     expires_at = least(expires_at, now() - interval '2 minutes'),
     last_look_up_at = last_look_up_at - interval '7 hours', due_at = now()
   WHERE state IN ('pending', 'processing')
     AND NOT EXISTS (SELECT FROM notifications WHERE state = 'new' AND attempts = 0)`,
  `UPDATE refunds SET last_look_up_at = last_look_up_at - interval '7 hours', due_at = now(),
     called_at = least(called_at, now() - CASE WHEN is_told_by_sums THEN interval '25 hours' ELSE interval '2 minutes' END)
   WHERE state IN ('pending', 'processing')`,
  `UPDATE subscriptions SET due_at = now() WHERE open_key IS NOT NULL OR ${NOT_RENEWED}`,
  'UPDATE errands SET due_at = now()',
];

const OPEN = `
  SELECT 'payment' AS what, id, state, concat_ws(' ', provider, purpose, reason, look_ups) AS more FROM payments
    WHERE state NOT IN ('succeeded', 'partially_refunded', 'cancelled')
  UNION ALL SELECT 'refund', refunds.id, refunds.state, concat_ws(' ', provider, failure, calls, refunds.look_ups)
    FROM refunds JOIN payments ON payments.id = payment_id WHERE refunds.state <> 'succeeded'
  UNION ALL SELECT 'notification', id, state, concat_ws(' ', provider, remark, attempts)
    FROM notifications WHERE state <> 'done'
  UNION ALL SELECT 'errand', id, kind, concat_ws(' ', provider, attempts) FROM errands
  UNION ALL SELECT 'subscription', id, state, concat_ws(' ', open_key, open_charge, open_payment_id, due_at)
    FROM subscriptions WHERE open_key IS NOT NULL OR ${NOT_RENEWED}
  LIMIT 10`;

async function untilAllIsOver(databaseUrl: string): Promise<void> {
  await using database = await connectTo(databaseUrl);
  await vi.waitFor(
    async () => {
      for (const change of TIME_PASSES) await database.query(change);
      expect((await database.query(OPEN)).rows).toEqual([]);
    },
    { timeout: 180_000, interval: 2000 },
  );
}

type Rows = <Row extends object>(query: string) => Promise<readonly Row[]>;

async function faultsOf(payment: PaymentService, { renewals }: { renewals: number }): Promise<readonly unknown[]> {
  await using database = await connectTo(payment.databaseUrl);
  const rowsOf: Rows = async <Row extends object>(query: string) => (await database.query<Row>(query)).rows;
  const kept = await rowsOf<Kept>(
    'SELECT id, provider, captured::int AS captured, refunded::int AS refunded FROM payments',
  );
  const moved = await moneyAt(payment);
  console.error(`${kept.length} payments, ${kept.filter(({ refunded }) => refunded > 0).length} of them refunded`);
  return [
    ...kept.filter((each) => each.provider !== 'sandbox' && !isAsMoved(each, moved.get(each.id))),
    ...[...moved.keys()].filter((id) => kept.every((each) => each.id !== id)).map((id) => `${id} is not kept`),
    ...(await ledgerFaults(rowsOf, kept)),
    ...(await invoiceFaults(rowsOf, renewals)),
  ];
}

interface Kept {
  readonly id: string;
  readonly provider: string;
  readonly captured: number;
  readonly refunded: number;
}

function isAsMoved({ captured, refunded }: Kept, { taken, returned }: Moved = { taken: [], returned: [] }): boolean {
  return taken.length <= 1 && returned.length <= 1 && sumOf(taken) === captured && sumOf(returned) === refunded;
}

function sumOf(amounts: readonly number[]): number {
  return amounts.reduce((total, amount) => total + amount, 0);
}

/** But for fees, it has what payments have, and sums to zero. */
async function ledgerFaults(rowsOf: Rows, kept: readonly Kept[]): Promise<readonly unknown[]> {
  const accounts = await rowsOf<{ account: string; amount: number }>(
    `SELECT account, sum(amount)::int AS amount FROM ledger_postings JOIN ledger_entries ON id = entry_id
     WHERE kind <> 'fee' GROUP BY account`,
  );
  const booked = new Map(accounts.map(({ account, amount }) => [account, amount]));
  const total = sumOf([...booked.values()]);
  const wrong = PROVIDERS.filter((name) => {
    const held = kept.filter(({ provider }) => provider === name).map(({ captured, refunded }) => captured - refunded);
    return booked.get(`provider:${name}`) !== sumOf(held);
  });
  return [...wrong.map((name) => `the ledger of ${name} is wrong`), ...(total === 0 ? [] : [`it sums to ${total}`])];
}

/** Numbers have no gaps, and each period that is due is paid by one charge. */
async function invoiceFaults(rowsOf: Rows, renewals: number): Promise<readonly unknown[]> {
  const numbers = await rowsOf<{ sequence: number }>(
    `SELECT sequence::int AS sequence FROM invoices WHERE series = 'INV' ORDER BY sequence`,
  );
  const billed = await rowsOf<{ number: string; state: string; charges: number }>(
    `SELECT number, state, (SELECT count(*)::int FROM charges JOIN payments ON payments.id = payment_id
       WHERE invoice_id = invoices.id) AS charges FROM invoices WHERE subscription_id IS NOT NULL`,
  );
  const all = renewals + 1;
  return [
    ...numbers.filter(({ sequence }, index) => sequence !== index + 1),
    ...billed.filter(({ state, charges }) => state !== 'paid' || charges !== 1),
    ...(billed.length === all ? [] : [`${billed.length} periods of ${all} are billed`]),
  ];
}
