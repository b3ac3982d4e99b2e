import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { insist } from '../support/insist.ts';
import { type Caller, connectTo, idOf } from './billing-service.ts';
import { killPayment } from './payment-kills.ts';
import {
  choose,
  letRefundsWait,
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

test('kill -9 of replicas and PostgreSQL under load charges nobody twice, and loses nothing', async () => {
  expect(await killPayment(3)).toEqual([]);
}, 400_000);

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

async function paidPayment(caller: Caller): Promise<string> {
  const key = randomUUID();
  const made = await insist(() => caller.post('/payments', { ...tea, provider: 'stripe' }, key));
  const id = idOf(made);
  await choose({ id, url: String(made.body?.['paymentUrl']) }, 'pay');
  await untilPayment(caller, id, 'succeeded');
  return id;
}
