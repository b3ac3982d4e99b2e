import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { createNotificationTable } from '@rollcall/payment/payments/store/notifications.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createVault } from '@rollcall/platform/vault.ts';
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, codeOf, connectTo, idOf } from './billing-service.ts';
import { choose, madePayment, type PaymentService, startPayment, tea, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let database: Client;

beforeAll(async () => {
  payment = stack.use(await startPayment({ ROLLCALL_PROVIDER_TIMEOUT_SECONDS: '5' }));
  shop = await payment.callerOf('shop');
  database = stack.use(await connectTo(payment.databaseUrl));
});

afterEach(async () => {
  for (const simulator of [payment.payfast, payment.yoco, payment.stripe]) await simulator.reset();
});

afterAll(() => stack.disposeAsync());

/** Lets two minutes pass for what is not known of a payment. */
async function letTimePass(id: string): Promise<void> {
  await database.query(
    `UPDATE payments SET called_at = called_at - interval '2 minutes', due_at = now(),
       last_look_up_at = last_look_up_at - interval '12 hours' WHERE id = $1`,
    [id],
  );
}

async function count(table: string, where: string, parameters: readonly unknown[] = []): Promise<number> {
  const { rows } = await database.query<{ count: number }>(
    `SELECT count(*)::int AS count FROM ${table} WHERE ${where}`,
    [...parameters],
  );
  return rows[0]?.count ?? 0;
}

/** Calls that took effect at Yoco. */
function takenByYoco(path: string): number {
  return payment.yoco.requests().filter(({ target, isAccepted }) => target.includes(path) && isAccepted).length;
}

describe('the payer comes back while the notification arrives (case A11)', () => {
  test('five hundred payments are captured once each, and nobody sees a failure', async () => {
    payment.yoco.addFaults({ kind: 'twice' });
    const buyer = await payment.callerOf('buyer');
    const pay = async (): Promise<string> => {
      const made = await madePayment(buyer, { provider: 'yoco' });
      const decided = await choose(made, 'pay');
      const back = String(decided.headers.get('location'));
      expect(new URL(back).origin).toBe(payment.front.url);
      const pages = await Promise.all([fetch(back), fetch(back)]);
      expect(pages.map(({ status }) => status)).toEqual([200, 200]);
      await untilPayment(buyer, made.id, 'succeeded');
      return made.id;
    };
    const ids: string[] = [];
    for (let round = 0; round < 50; round += 1) ids.push(...(await Promise.all(Array.from({ length: 10 }, pay))));
    await payment.yoco.idle();
    expect(payment.yoco.notifications().every(({ status }) => status === 200)).toBe(true);
    expect(await count('charges', 'payment_id = ANY($1) AND is_booked', [ids])).toBe(500);
    expect(await count('ledger_entries', `payment_id = ANY($1) AND kind = 'capture'`, [ids])).toBe(500);
    expect(await count('events', `resource_id = ANY($1) AND type = 'payment.succeeded'`, [ids])).toBe(500);
    expect((await buyer.get('/ledger/balances')).body).toMatchObject({
      balances: [{ account: 'provider:yoco', amount: 7_475_000 }, { amount: -7_475_000 }],
    });
  }, 240_000);
});

describe('money is what the provider was asked for (case A13)', () => {
  test.each([
    ['JPY', 9899, 'unit_amount]=9899'],
    ['ZAR', 9899, 'unit_amount]=9899'],
    ['KWD', 35_200, 'unit_amount]=35200'],
  ])('%s %i', async (currency, amount, sent) => {
    const made = await madePayment(shop, { provider: 'stripe', currency, amount });
    const created = payment.stripe.requests().find(({ body }) => body.includes(made.id));
    expect(created?.body).toContain(sent);
    expect(created?.body).toContain(`currency]=${currency.toLowerCase()}`);
    await choose(made, 'pay');
    await untilPayment(shop, made.id, 'succeeded');
    await shop.post(`/payments/${made.id}/refunds`, { reason: 'all of it' });
    const refund = payment.stripe.requests().find(({ target, method }) => method === 'POST' && /refunds/.test(target));
    expect(refund?.body).toMatch(new RegExp(`(^|&)amount=${amount}(&|$)`));
  });
});

describe('a provider that fails as a payment is made', () => {
  test.each(['accept-and-hang', 'garbage', 'half-body', 'reset'] as const)(
    'by %s: settled by the same key',
    async (kind) => {
      payment.yoco.addFaults({ kind, match: 'POST /api/checkouts', times: 1 });
      const answer = await shop.post('/payments', { ...tea, provider: 'yoco' });
      expect([answer.status, answer.body?.['status'], answer.body?.['paymentUrl']]).toEqual([202, 'processing', null]);
      const id = idOf(answer);
      await letTimePass(id);
      const url = await untilUrl(id);
      expect(takenByYoco('/checkouts')).toBe(2);
      await choose({ id, url }, 'pay');
      await untilPayment(shop, id, 'succeeded');
      const { checkouts } = await stateOfYoco();
      expect(checkouts).toHaveLength(1);
    },
  );

  test('by 500: it is not known, and the key finds the same payment', async () => {
    payment.yoco.addFaults({ kind: 'status', status: 500, times: 1 });
    const key = randomUUID();
    const first = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect(first.status).toBe(202);
    const again = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect([again.status, idOf(again)]).toEqual([202, idOf(first)]);
    const metrics = await (await fetch(`${payment.service.adminUrl}/metrics`)).text();
    const counted = /provider_calls_total\{[^}]*provider="yoco",call="checkout",outcome="unknown"[^}]*\} [1-9]/;
    expect(metrics).toMatch(counted);
    expect(metrics).toMatch(/provider_call_duration_seconds_count\{[^}]*provider="yoco",call="checkout"[^}]*\} [1-9]/);
  });

  test('by 429: nothing is done, and the same key makes it later', async () => {
    payment.yoco.addFaults({ kind: 'status', status: 429, retryAfter: 7, times: 1 });
    const key = randomUUID();
    const refused = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect([refused.status, codeOf(refused), refused.headers.get('retry-after')]).toEqual([502, 'PROVIDER_ERROR', '7']);
    const made = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect([made.status, made.body?.['status']]).toEqual([201, 'pending']);
    expect(await count('payments', 'id = $1', [idOf(made)])).toBe(1);
    expect(refused.body).toMatchObject({ error: { details: { paymentId: idOf(made), reason: 'rate_limited' } } });
  });

  test('by keeping us out: the payment that stays is named, and gets its checkout soon after', async () => {
    payment.yoco.addFaults({ kind: 'status', status: 401, times: 2 });
    const refused = await shop.post('/payments', { ...tea, provider: 'yoco' });
    expect([refused.status, codeOf(refused)]).toEqual([502, 'PROVIDER_ERROR']);
    const { error } = refused.body as { error: { details: { paymentId: string } } };
    const id = error.details.paymentId;
    expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ status: 'pending', paymentUrl: null });
    const url = await untilUrl(id);
    expect((await shop.get(`/payments/${id}`)).body).toMatchObject({ status: 'pending', paymentUrl: url });
    await choose({ id, url }, 'pay');
    await untilPayment(shop, id, 'succeeded');
  });

  test('by hanging: the checkout comes soon after', async () => {
    payment.yoco.addFaults({ kind: 'accept-and-hang', match: 'POST /api/checkouts', times: 2 });
    const id = idOf(await shop.post('/payments', { ...tea, provider: 'yoco' }));
    const since = performance.now();
    await untilUrl(id);
    // One more that hangs, for 5 s, and a pause of 4 s; else it would be a minute.
    expect(performance.now() - since).toBeLessThan(45_000);
    // Those of the tests before are made again meanwhile.
    const ours = (await stateOfYoco()).checkouts.filter((checkout) => JSON.stringify(checkout).includes(id));
    expect(ours).toHaveLength(1);
  });

  test('by a refusal: the payment failed, and the key says so again', async () => {
    payment.yoco.addFaults({ kind: 'status', status: 400, times: 1 });
    const key = randomUUID();
    const refused = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect([refused.status, codeOf(refused)]).toEqual([402, 'PAYMENT_FAILED']);
    expect(refused.body).toMatchObject({ error: { details: { reason: 'not_accepted' } } });
    const again = await shop.post('/payments', { ...tea, provider: 'yoco' }, key);
    expect([again.status, again.headers.get('idempotent-replayed')]).toEqual([402, 'true']);
  });
});

describe('notifications', () => {
  test.each(['payfast', 'yoco'] as const)('of %s with a bad signature are refused, and store nothing', async (name) => {
    payment[name].addFaults({ kind: 'bad-signature' });
    const before = await count('notifications', 'true');
    const made = await madePayment(shop, { provider: name });
    await choose(made, 'pay');
    await expect.poll(() => payment[name].notifications().length).toBeGreaterThan(0);
    expect(payment[name].notifications().every(({ status }) => status === 401)).toBe(true);
    expect(await count('notifications', 'true')).toBe(before);
    expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({ status: 'pending' });
    await expect.poll(() => refused(name, 'signature')).toBeGreaterThan(0);
  });

  test('of PayFast for another merchant are refused', async () => {
    payment.payfast.addFaults({ kind: 'wrong-merchant' });
    const made = await madePayment(shop, { provider: 'payfast' });
    await choose(made, 'pay');
    await expect.poll(() => payment.payfast.notifications().length).toBeGreaterThan(0);
    expect(payment.payfast.notifications().every(({ status }) => status === 401)).toBe(true);
    expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({ status: 'pending' });
    await expect.poll(() => refused('payfast', 'account')).toBeGreaterThan(0);
  });

  test.each(['payfast', 'yoco'] as const)('of %s with another amount put the payment to review', async (name) => {
    payment[name].addFaults({ kind: 'wrong-amount' });
    const made = await madePayment(shop, { provider: name });
    await choose(made, 'pay');
    expect((await untilPayment(shop, made.id, 'needs_review')).body).toMatchObject({ reason: 'wrong_amount' });
    expect(await count('ledger_entries', 'payment_id = $1', [made.id])).toBe(0);
    const resolved = await shop.post(`/payments/${made.id}/resolve`, { outcome: 'paid' });
    expect(resolved.body).toMatchObject({ status: 'succeeded', reason: null });
    expect((await shop.get('/ledger/balances')).status).toBe(200);
    expect(await count('charges', 'payment_id = $1 AND is_booked AND amount = 15050', [made.id])).toBe(1);
    expect((await shop.post(`/payments/${made.id}/resolve`, { outcome: 'paid' })).body).toEqual(resolved.body);
    expect(codeOf(await shop.post(`/payments/${made.id}/resolve`, { outcome: 'unpaid' }))).toBe('CONFLICT');
  });

  test('that are about nothing known are answered 200, and end in review (case A16)', async () => {
    const response = await fetch(`${payment.yoco.url}/api/checkouts`, {
      method: 'POST',
      headers: { authorization: 'Bearer sk_live_1', 'content-type': 'application/json' },
      body: JSON.stringify({ amount: 5000, currency: 'ZAR' }),
    });
    const { redirectUrl } = (await response.json()) as { redirectUrl: string };
    await choose({ id: '', url: redirectUrl }, 'pay');
    await payment.yoco.idle();
    expect(payment.yoco.notifications().map(({ status }) => status)).toEqual([200]);
    await database.query(`UPDATE notifications SET attempts = 4, due_at = now() WHERE state = 'new'`);
    await expect.poll(() => count('notifications', `state = 'review'`)).toBeGreaterThan(0);
    expect(await count('notifications', `state = 'review' AND sealed IS NOT NULL AND due_at IS NULL`)).toBe(1);
    expect(await refused('yoco', 'unmatched')).toBe(1);
  });

  test('that no key opens block no other, and wait for a person, who has them worked on again', async () => {
    payment.yoco.addFaults({ kind: 'never' });
    const [broken, other] = [
      await madePayment(shop, { provider: 'yoco' }),
      await madePayment(shop, { provider: 'payfast' }),
    ];
    const { rows } = await database.query<{ id: string }>(
      `INSERT INTO notifications (id, provider, event_key, sealed, state, attempts, due_at)
       VALUES (gen_random_uuid(), 'yoco', 'broken', 'x', 'new', 4, now() - interval '1 day') RETURNING id`,
    );
    const id = rows[0]?.id;
    await choose(other, 'pay');
    await untilPayment(shop, other.id, 'succeeded');
    expect((await shop.get(`/payments/${broken.id}`)).body).toMatchObject({ status: 'pending' });
    const admin = await payment.callerOf('root', 'payments:admin');
    const inReview = async () => (await admin.get('/provider-notifications')).body?.['notifications'];
    await expect
      .poll(inReview)
      .toContainEqual(expect.objectContaining({ id, provider: 'yoco', remark: 'it cannot be worked off' }));
    expect((await shop.get('/provider-notifications')).status).toBe(403);
    expect((await shop.post(`/provider-notifications/${id}/resolve`, { outcome: 'done' })).status).toBe(403);
    const metrics = await (await fetch(`${payment.service.adminUrl}/metrics`)).text();
    expect(metrics).toMatch(/rollcall_payment_in_review\{[^}]*kind="notification"[^}]*\} [1-9]/);
    const path = `/provider-notifications/${id}/resolve`;
    expect((await admin.post(path, { outcome: 'again' })).body).toEqual({ id, outcome: 'again' });
    await expect.poll(() => count('notifications', `id = $1 AND state = 'new' AND attempts = 1`, [id])).toBe(1);
    await database.query('UPDATE notifications SET attempts = 4, due_at = now() WHERE id = $1', [id]);
    await expect.poll(() => count('notifications', `id = $1 AND state = 'review'`, [id])).toBe(1);
    expect((await admin.post(path, { outcome: 'done' })).status).toBe(200);
    expect((await admin.post(path, { outcome: 'done' })).status).toBe(404);
    expect(await count('notifications', `id = $1 AND state = 'done' AND sealed IS NULL`, [id])).toBe(1);
  });

  test('are gone after 90 days, but for what a person has not seen to', async () => {
    const kept = [
      { id: randomUUID(), state: 'done', days: 91 },
      { id: randomUUID(), state: 'done', days: 89 },
      { id: randomUUID(), state: 'review', days: 91 },
      { id: randomUUID(), state: 'new', days: 91 },
    ];
    await database.query(
      `INSERT INTO notifications (id, provider, event_key, sealed, state, due_at, created_at)
       SELECT id, 'yoco', id::text, '\\x00', state, CASE state WHEN 'new' THEN now() + interval '1 day' END,
         now() - make_interval(days => days)
       FROM unnest($1::uuid[], $2::text[], $3::int[]) AS kept (id, state, days)`,
      [kept.map(({ id }) => id), kept.map(({ state }) => state), kept.map(({ days }) => days)],
    );
    const log = createLogger('test', 'silent');
    const pool = createPool({ url: payment.databaseUrl, schema: 'payment', maxConnections: 1, log });
    const vault = createVault([{ id: 'one', key: Buffer.alloc(32, 1) }]);
    expect(await createNotificationTable({ pool: () => pool, vault }).forget(10)).toBe(1);
    await pool.end();
    const { rows } = await database.query(
      `SELECT state, sealed IS NULL AS blank FROM notifications WHERE id = ANY($1) ORDER BY state`,
      [kept.map(({ id }) => id)],
    );
    expect(rows).toEqual([
      { state: 'done', blank: false },
      { state: 'new', blank: false },
      { state: 'review', blank: true },
    ]);
    await database.query('DELETE FROM notifications WHERE id = ANY($1)', [kept.map(({ id }) => id)]);
  });

  test('of a provider that there is not, and garbage, are refused', async () => {
    expect([
      (await sendGarbage(payment, 'payfast')).status,
      (await sendGarbage(payment, 'yoco')).status,
      (await sendGarbage(payment, 'paypal')).status,
    ]).toEqual([400, 401, 404]);
    expect(await refused('payfast', 'unreadable')).toBe(1);
    expect(await refused('paypal', 'unreadable')).toBe(0);
  });

  test('that are refused are in the log, without what was in them', async () => {
    const log = await readFile(payment.service.logFile, 'utf8');
    expect(log).toMatch(/"provider":"payfast","reason":"account".*notifications of a provider were refused/);
    expect(log).not.toContain(tea.customerEmail);
  });
});

/** How many were counted. */
async function refused(provider: string, reason: string): Promise<number> {
  const metrics = await (await fetch(`${payment.service.adminUrl}/metrics`)).text();
  const line = metrics
    .split('\n')
    .find(
      (each) =>
        each.startsWith('rollcall_provider_notifications_refused_total') &&
        each.includes(`provider="${provider}",reason="${reason}"`),
    );
  return Number(line?.split(' ').at(-1) ?? 0);
}

describe('money that comes too late', () => {
  test('for a payment that was cancelled is for a person to decide', async () => {
    const made = await madePayment(shop, { provider: 'yoco' });
    await shop.post(`/payments/${made.id}/cancel`);
    await choose(made, 'pay');
    await untilPayment(shop, made.id, 'needs_review');
    expect(await count('ledger_entries', 'payment_id = $1', [made.id])).toBe(0);
    expect((await shop.post(`/payments/${made.id}/resolve`, { outcome: 'refunded' })).body).toMatchObject({
      status: 'refunded',
      amountRefunded: 14_950,
    });
    expect(await count('ledger_entries', 'payment_id = $1', [made.id])).toBe(2);
  });

  test('goes back by itself where the settings say so', async () => {
    await using other = await startPayment({ ROLLCALL_LATE_CAPTURES: 'refund' });
    const caller = await other.callerOf('shop');
    const made = await madePayment(caller, { provider: 'yoco' });
    await caller.post(`/payments/${made.id}/cancel`);
    await choose(made, 'pay');
    expect((await untilPayment(caller, made.id, 'refunded')).body).toMatchObject({ amountRefunded: 14_950 });
    expect((await caller.get('/ledger/balances')).body).toMatchObject({ balances: [{ amount: 0 }, { amount: 0 }] });
  });
});

describe('payers who come back', () => {
  test('in crowds hold up nothing else', async () => {
    const ids: string[] = [];
    for (let left = 6; left > 0; left -= 1) {
      const made = await Promise.all(Array.from({ length: 10 }, () => madePayment(shop, { provider: 'yoco' })));
      ids.push(...made.map(({ id }) => id));
    }
    const alone = await madePayment(shop, { provider: 'stripe' });
    // Each lookup takes as long as may be: all of them, three at a time, more than half a minute.
    payment.yoco.addFaults({ kind: 'slow', delayMs: 5000, match: 'GET /api/checkouts' });
    await database.query('UPDATE payments SET due_at = now(), is_hurried = true WHERE id = ANY($1)', [ids]);
    await expect.poll(() => payment.yoco.requests().filter(({ method }) => method === 'GET').length).toBeGreaterThan(0);
    await database.query(
      `UPDATE payments SET expires_at = now() - interval '2 minutes', due_at = now() WHERE id = $1`,
      [alone.id],
    );
    await untilPayment(shop, alone.id, 'expired');
    expect(await count('payments', 'id = ANY($1) AND is_hurried', [ids])).toBeGreaterThan(0);
    await database.query('UPDATE payments SET is_hurried = false, due_at = expires_at WHERE id = ANY($1)', [ids]);
  });
});

describe('a payment that nobody pays', () => {
  test('expires after it was looked up', async () => {
    const made = await madePayment(shop, { provider: 'yoco' });
    await database.query(
      `UPDATE payments SET expires_at = now() - interval '2 minutes', due_at = now() WHERE id = $1`,
      [made.id],
    );
    expect((await untilPayment(shop, made.id, 'expired')).body).toMatchObject({ paymentUrl: null });
  });

  test('does not expire while its provider works on it', async () => {
    const made = await madePayment(shop, { provider: 'payfast' });
    await database.query(
      `UPDATE payments SET state = 'processing', processing_at = now(), expires_at = now() - interval '2 minutes',
         due_at = now() WHERE id = $1`,
      [made.id],
    );
    await expect.poll(() => count('payments', 'id = $1 AND look_ups > 0', [made.id]), { timeout: 10_000 }).toBe(1);
    expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({ status: 'processing' });
  });

  test('but was paid, without a notification, is found then', async () => {
    payment.yoco.addFaults({ kind: 'never' });
    const made = await madePayment(shop, { provider: 'yoco' });
    await choose(made, 'pay');
    await database.query(
      `UPDATE payments SET expires_at = now() - interval '2 minutes', due_at = now() WHERE id = $1`,
      [made.id],
    );
    expect((await untilPayment(shop, made.id, 'succeeded')).body).toMatchObject({ paymentUrl: null });
  });
});

function sendGarbage({ front }: PaymentService, provider: string): Promise<Response> {
  return fetch(`${front.url}/api/v1/payment/notifications/${provider}`, { method: 'POST', body: 'x=1' });
}

async function untilUrl(id: string): Promise<string> {
  for (let left = 800; left > 0; left -= 1) {
    const url = (await shop.get(`/payments/${id}`)).body?.['paymentUrl'];
    if (typeof url === 'string') return url;
    await delay(50);
  }
  throw new Error('It has no address');
}

async function stateOfYoco(): Promise<{ readonly checkouts: readonly unknown[] }> {
  const response = await fetch(`${payment.yoco.url}/_control/state`);
  return (await response.json()) as { readonly checkouts: readonly unknown[] };
}
