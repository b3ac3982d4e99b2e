import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type { StoredMethod } from '@rollcall/payment/domain/ports.ts';
import { eventTypes } from '@rollcall/payment/event-types.ts';
import { createReceiving } from '@rollcall/payment/payments/domain/inbox.ts';
import { createRefunding } from '@rollcall/payment/payments/domain/refunding.ts';
import { createSettling } from '@rollcall/payment/payments/domain/settle.ts';
import { createTaking } from '@rollcall/payment/payments/domain/take.ts';
import { createNotificationTable } from '@rollcall/payment/payments/store/notifications.ts';
import { createPaymentTable } from '@rollcall/payment/payments/store/payments.ts';
import { createRefundTable } from '@rollcall/payment/payments/store/refunds.ts';
import { createInboxWork } from '@rollcall/payment/payments/work/inbox.ts';
import { createPaymentWork } from '@rollcall/payment/payments/work/payments.ts';
import { createPayFast } from '@rollcall/payment/providers/payfast/payfast.ts';
import { somePayFastSettings } from '@rollcall/payment/providers/testing/payfast-settings.ts';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createEventRecorder } from '@rollcall/platform/events/events.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { migrate, platformMigrations } from '@rollcall/platform/postgres/migrate.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import { startPayfast } from '@rollcall/simulators/payfast.ts';
import { startReceiver } from '@rollcall/simulators/testing/receiver.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { choosePayFast } from './payment-service.ts';

/** Payments at a simulated PayFast, without the API in front. */
async function startCharges() {
  const stack = new AsyncDisposableStack();
  onTestFinished(() => stack.disposeAsync());
  const log = createLogger('test', 'silent');
  const { url } = stack.use(await createDatabase());
  const connections = createPool({ url, schema: 'payment', maxConnections: 10, log });
  stack.defer(() => connections.end());
  const directory = fileURLToPath(new URL('../../services/payment/migrations', import.meta.url));
  await migrate({ pool: connections, schema: 'payment', directories: [platformMigrations, directory], log });
  const receiver = stack.use(await startReceiver());
  const simulator = stack.use(await startPayfast({ mode: 'live', retryDelaysMs: [20] }));
  const dispatcher = createGuardedAgent({ mayConnect: () => true, connectTimeoutMs: 2000, keepAlive: false });
  stack.defer(() => dispatcher.destroy());
  const settings = { ...somePayFastSettings(new URL(simulator.url)), isTest: false, sources: ['127.0.0.1'] };
  const calls = { clock: systemClock, dispatcher, timeoutMs: 2000, resolve: () => Promise.reject(new Error('none')) };
  const payfast = createPayFast({ ...calls, settings: { ...settings, notifyUrl: `${receiver.url}/itn` } });
  const providers = { names: ['payfast'], default: 'payfast', find: () => payfast } as const;
  const keys = [{ id: 'one', key: randomBytes(32) }];
  const vault = createVault(keys);
  const kept: StoredMethod[] = [];
  const pool = () => connections;
  const table = {
    pool,
    vault,
    emails: createBlindIndex(keys, 'email'),
    methods: createBlindIndex(keys, 'method'),
    recordEvents: createEventRecorder(vault, eventTypes),
    clock: systemClock,
    lateCapture: 'review',
    queueErrand: async () => undefined,
    onMade: async () => undefined,
    onMoved: async (_client: unknown, { method }: { readonly method: StoredMethod | undefined }) => {
      if (method !== undefined) kept.push(method);
    },
  } as const;
  const payments = createPaymentTable(table);
  const taking = createTaking({ payments, providers, publicUrl: 'http://127.0.0.1:9', clock: systemClock });
  const refunding = createRefunding({ refunds: createRefundTable(table), payments, providers, clock: systemClock });
  const settle = createSettling({
    payments,
    refunding,
    onMethodCancelled: async () => undefined,
    clock: systemClock,
    log,
  });
  const inbox = createNotificationTable({ pool, vault });
  const receiving = createReceiving({ inbox, providers, settle, onRefused: () => undefined, log });
  for (const work of [
    createPaymentWork({ pool, payments, taking, settle, providers, clock: systemClock, log }).due,
    createInboxWork({ inbox, receiving, log }),
  ]) {
    await work.start();
    stack.defer(() => work.stop());
  }
  const terms = { subject: 'shop', customerEmail: 'a@example.com', itemName: 'Tea', metadata: {} };

  return {
    simulator,
    connections,
    payments,
    /** A charge of R99.00. */
    charge: (id: string, method: StoredMethod, amount = 9900n) =>
      taking.charge({ ...terms, id, provider: 'payfast', money: { amount, currency: 'ZAR' }, method }),
    /** The payer pays R149.50, and PayFast keeps the card. */
    async keepMethod(): Promise<{ readonly id: string; readonly method: StoredMethod }> {
      const id = randomUUID();
      const made = await taking.open({
        ...terms,
        id,
        purpose: 'pay-and-keep',
        money: { amount: 14_950n, currency: 'ZAR' },
      });
      if (made.redirect?.kind !== 'form') throw new Error('there is no form');
      await choosePayFast(made.redirect, 'pay');
      await this.takeNotifications();
      await until(async () => kept.length > 0);
      const [method] = kept;
      if (method === undefined) throw new Error('no method was kept');
      return { id, method };
    },
    /** What PayFast has sent so far reaches us. */
    async takeNotifications(): Promise<void> {
      await simulator.idle();
      for (const { body, headers } of receiver.taken) {
        const plain = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()]));
        await receiving.receive('payfast', { body: Buffer.from(body), headers: plain, remoteAddress: '127.0.0.1' });
      }
    },
    /** Charges that PayFast has made. */
    charges: () =>
      simulator.requests().filter(({ target, isAccepted }) => target.includes('/adhoc') && isAccepted).length,
    /** Two minutes later. */
    async tick(id: string): Promise<void> {
      await connections.query(
        `UPDATE payments SET called_at = called_at - interval '2 minutes', due_at = now(),
           last_look_up_at = last_look_up_at - interval '12 hours' WHERE id = $1 AND due_at IS NOT NULL`,
        [id],
      );
      await delay(50);
    },
    async untilState(id: string, state: string): Promise<void> {
      await until(async () => (await payments.find(id, undefined))?.state === state);
    },
  };
}

async function until(isSo: () => Promise<boolean>): Promise<void> {
  for (let left = 600; !(await isSo()); left -= 1) {
    if (left === 0) throw new Error('it did not become so');
    await delay(50);
  }
}

test('a charge whose answer is lost is made once, however often it is asked for (case A17)', async () => {
  const world = await startCharges();
  const { method } = await world.keepMethod();
  world.simulator.addFaults({ kind: 'accept-and-hang', match: 'adhoc', times: 1 }, { kind: 'never' });
  const id = randomUUID();
  expect(await world.charge(id, method)).toMatchObject({ outcome: 'open', payment: { state: 'processing' } });
  for (let tick = 0; tick < 10; tick += 1) {
    expect(['open', 'succeeded']).toContain((await world.charge(id, method)).outcome);
    await world.tick(id);
  }
  await world.untilState(id, 'succeeded');
  expect(world.charges()).toBe(1);
});

test('an ITN that names the payment of the first charge counts for the one that is open (case A16)', async () => {
  const world = await startCharges();
  const { id: first, method } = await world.keepMethod();
  world.simulator.addFaults({ kind: 'accept-and-hang', match: 'adhoc', times: 1 });
  const id = randomUUID();
  await world.charge(id, method);
  await world.takeNotifications();
  await world.untilState(id, 'succeeded');
  expect(await world.payments.find(first, undefined)).toMatchObject({
    state: 'succeeded',
    balance: { captured: 14_950n },
  });
  expect(await world.payments.find(id, undefined)).toMatchObject({ balance: { captured: 9900n } });
});

test('an ITN that names a charge counts for that, and not for another of the method', async () => {
  const world = await startCharges();
  const { method } = await world.keepMethod();
  const [first, second] = [randomUUID(), randomUUID()];
  world.simulator.addFaults({ kind: 'accept-and-hang', match: 'adhoc', times: 1 });
  await world.charge(first, method);
  await world.payments.change(first, () => ({ event: 'unclear', source: 'schedule', reason: 'outcome_unknown' }));
  world.simulator.addFaults({ kind: 'status', status: 500, match: 'adhoc', times: 1 });
  await world.charge(second, method);
  expect(await world.payments.match('payfast', { paymentId: first, chargeRef: 'x', token: method.token })).toBe(first);
  await world.takeNotifications();
  await until(async () => (await world.payments.find(first, undefined))?.chargeRef !== undefined);
  expect(await world.payments.find(second, undefined)).toMatchObject({ state: 'processing', chargeRef: undefined });
});

test('a charge that is repeated by other terms is the one that was made', async () => {
  const world = await startCharges();
  const { method } = await world.keepMethod();
  const id = randomUUID();
  world.simulator.addFaults({ kind: 'status', status: 429, match: 'adhoc', times: 1 });
  expect(await world.charge(id, method)).toMatchObject({ outcome: 'not_tried' });
  const again = await world.charge(id, { token: randomUUID() }, 12_300n);
  expect(again).toMatchObject({ outcome: 'succeeded', payment: { balance: { captured: 9900n } } });
  const sent = world.simulator.requests().filter(({ target }) => target.includes('/adhoc'));
  expect(sent.map(({ body }) => /(?:^|&)amount=(\d+)/.exec(body)?.[1])).toEqual(['9900', '9900']);
});

test('an ITN of a charge that was not made here is kept for review, and moves nothing (case A16)', async () => {
  const world = await startCharges();
  const { id, method } = await world.keepMethod();
  const other = randomUUID();
  await world.charge(other, method);
  await world.connections.query('DELETE FROM payment_events WHERE payment_id = $1', [other]);
  await world.connections.query('DELETE FROM charges WHERE payment_id = $1', [other]);
  await world.connections.query('DELETE FROM payments WHERE id = $1', [other]);
  await world.takeNotifications();
  await world.connections.query(`UPDATE notifications SET attempts = 4, due_at = now() WHERE state = 'new'`);
  await until(async () => {
    const { rows } = await world.connections.query(`SELECT FROM notifications WHERE state = 'review'`);
    return rows.length === 1;
  });
  expect(await world.payments.find(id, undefined)).toMatchObject({
    state: 'succeeded',
    balance: { captured: 14_950n },
  });
});

test('a charge that is refused fails, and one that was not made may be made by the same id', async () => {
  const world = await startCharges();
  const { method } = await world.keepMethod();
  const id = randomUUID();
  world.simulator.addFaults({ kind: 'status', status: 429, retryAfter: 3, match: 'adhoc', times: 1 });
  expect(await world.charge(id, method)).toMatchObject({ outcome: 'not_tried', retryAfterMs: 3000 });
  expect(await world.charge(id, method)).toMatchObject({ outcome: 'succeeded' });
  expect(await world.charge(id, method)).toMatchObject({ outcome: 'succeeded' });
  expect(world.charges()).toBe(1);
  expect(await world.charge(randomUUID(), { token: randomUUID() })).toMatchObject({ outcome: 'declined' });
});

test('fifty equal charges at once are one', async () => {
  const world = await startCharges();
  const { method } = await world.keepMethod();
  const id = randomUUID();
  const results = await Promise.all(Array.from({ length: 50 }, () => world.charge(id, method)));
  expect(results.filter(({ outcome }) => outcome === 'declined' || outcome === 'not_tried')).toEqual([]);
  await world.untilState(id, 'succeeded');
  expect(world.charges()).toBe(1);
});
