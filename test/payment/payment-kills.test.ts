import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { Client } from 'pg';
import { expect, onTestFinished, test } from 'vitest';
import type { Answer } from '../support/replica.ts';
import { type Caller, connectTo, idOf } from './billing-service.ts';
import {
  choose,
  letRefundsWait,
  madePayment,
  type PaymentService,
  refundsAtStripe,
  startPayment,
  tea,
  untilPayment,
} from './payment-service.ts';

async function started(): Promise<PaymentService> {
  const payment = await startPayment();
  onTestFinished(() => payment[Symbol.asyncDispose]());
  return payment;
}

/** Calls until there is an answer that is no failure: what a careful client does with a key. */
async function insist(call: () => Promise<Answer>): Promise<Answer> {
  for (let left = 100; ; left -= 1) {
    const answer = await call().catch(() => undefined);
    if (answer !== undefined && answer.status < 500 && answer.status !== 409) return answer;
    if (left === 0) throw new Error(`No answer: ${JSON.stringify(answer?.body)}`);
    await delay(500);
  }
}

test('a replica that is killed under load charges nobody twice, and loses no payment', async () => {
  const payment = await started();
  const replica = await payment.startProcess();
  onTestFinished(() => replica[Symbol.asyncDispose]());
  const [there, here] = await Promise.all([payment.callerOf('shop', undefined, replica.url), payment.callerOf('shop')]);
  const keys = Array.from({ length: 40 }, () => randomUUID());
  const order = { ...tea, provider: 'stripe' };
  payment.stripe.addFaults({ kind: 'slow', delayMs: 100 });
  const first = keys.map((key) => there.post('/payments', order, key).catch(() => undefined));
  await delay(250);
  await replica.kill();
  await Promise.all(first);
  const answers = await Promise.all(keys.map((key) => insist(() => here.post('/payments', order, key))));
  const ids = answers.map(idOf);
  expect(new Set(ids).size).toBe(40);
  await using database = await connectTo(payment.databaseUrl);
  const { rows } = await database.query('SELECT id FROM payments');
  expect(rows).toHaveLength(40);
  const response = await fetch(`${payment.stripe.url}/_control/state`);
  const sessions = JSON.stringify(await response.json()).match(/"cs_test_\w+"/g) ?? [];
  for (const id of ids) {
    const { rows: made } = await database.query<{ checkout_ref: string }>(
      'SELECT checkout_ref FROM payments WHERE id = $1',
      [id],
    );
    expect(sessions).toContain(`"${made[0]?.checkout_ref}"`);
  }
  expect(new Set(sessions).size).toBe(40);
}, 120_000);

test('refunds under way when a replica is killed are made once', async () => {
  const payment = await started();
  const replica = await payment.startProcess();
  onTestFinished(() => replica[Symbol.asyncDispose]());
  const [there, here] = await Promise.all([payment.callerOf('shop', undefined, replica.url), payment.callerOf('shop')]);
  const ids = await Promise.all(Array.from({ length: 10 }, () => paidPayment(here)));
  payment.stripe.addFaults({ kind: 'slow', delayMs: 300, match: 'POST /v1/refunds' });
  const order = { amount: 6000, reason: 'one cup less' };
  const calls = ids.map((id) => ({ id, key: randomUUID() }));
  const first = calls.map(({ id, key }) => there.post(`/payments/${id}/refunds`, order, key).catch(() => undefined));
  await delay(200);
  await replica.kill();
  await Promise.all(first);
  await Promise.all(calls.map(({ id, key }) => insist(() => here.post(`/payments/${id}/refunds`, order, key))));
  await using database = await connectTo(payment.databaseUrl);
  for (const id of ids) await letRefundsWait(database, id);
  for (const id of ids) {
    const refunded = await untilPayment(here, id, 'partially_refunded');
    expect(refunded.body).toMatchObject({ amountRefunded: 6000 });
  }
  const { rows } = await database.query('SELECT FROM refunds');
  expect(rows).toHaveLength(10);
  const made = await refundsAtStripe(payment);
  expect(ids.map((id) => made.get(id))).toEqual(ids.map(() => [6000]));
  expect(made.size).toBe(10);
}, 120_000);

test('connections to the database that are cut under load lose no notification', async () => {
  const payment = await started();
  const caller = await payment.callerOf('shop');
  const made = await Promise.all(Array.from({ length: 20 }, () => madePayment(caller, { provider: 'yoco' })));
  const paying = made.map(async (each, index) => {
    await delay(index * 50);
    await choose(each, 'pay');
  });
  for (let cut = 0; cut < 5; cut += 1) {
    await delay(200);
    await cutConnections(payment.databaseUrl);
  }
  await Promise.all(paying);
  for (const { id } of made) {
    await insist(() => caller.get(`/payments/${id}`));
    await untilPayment(caller, id, 'succeeded');
  }
  expect((await caller.get('/ledger/balances')).body).toMatchObject({
    balances: [{ amount: 20 * 14_950 }, { amount: -20 * 14_950 }],
  });
}, 120_000);

async function paidPayment(caller: Caller): Promise<string> {
  const key = randomUUID();
  const made = await insist(() => caller.post('/payments', { ...tea, provider: 'stripe' }, key));
  const id = idOf(made);
  await choose({ id, url: String(made.body?.['paymentUrl']) }, 'pay');
  await untilPayment(caller, id, 'succeeded');
  return id;
}

async function cutConnections(databaseUrl: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()',
  );
  await client.end();
}
