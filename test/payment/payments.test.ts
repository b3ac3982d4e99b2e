import { randomUUID } from 'node:crypto';
import { createLedger } from '@rollcall/payment/ledger/store.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { type Caller, codeOf, connectTo, faultsOf } from './billing-service.ts';
import { choose, madePayment, type PaymentService, startPayment, tea, untilPayment } from './payment-service.ts';

const stack = new AsyncDisposableStack();
let payment: PaymentService;
let shop: Caller;
let other: Caller;

beforeAll(async () => {
  payment = stack.use(await startPayment());
  [shop, other] = await Promise.all([payment.callerOf('shop'), payment.callerOf('other')]);
});

afterAll(() => stack.disposeAsync());

const providers = ['payfast', 'yoco', 'stripe', 'sandbox'] as const;

describe('the ledger', () => {
  test('holds what payments say, sums to zero, and is only added to', async () => {
    const merchant = await payment.callerOf('merchant');
    const made = await madePayment(merchant);
    await choose(made, 'pay');
    await untilPayment(merchant, made.id, 'succeeded');
    await merchant.post(`/payments/${made.id}/refunds`, { amount: 950, reason: 'a spoon less' });
    expect((await merchant.get('/ledger/balances')).body).toEqual({
      balances: [
        { account: 'provider:sandbox', currency: 'ZAR', amount: 14_000 },
        { account: 'sales', currency: 'ZAR', amount: -14_000 },
      ],
    });
    const day = new Date().toISOString().slice(0, 10);
    const report = await (await merchant.bytes(`/reports/settlement?from=${day}&to=${day}`)).text();
    const lines = report.split('\r\n').map((line) => line.replace(/^[^,]*,/, ''));
    expect(lines).toEqual([
      'kind,provider,currency,amount,paymentId',
      `capture,sandbox,ZAR,149.50,${made.id}`,
      `refund,sandbox,ZAR,-9.50,${made.id}`,
      '',
    ]);
    expect(faultsOf(await merchant.get('/reports/settlement?from=2026-02-30&to=2026'))).toEqual([
      'query/from',
      'query/to',
    ]);
    await using client = await connectTo(payment.databaseUrl);
    await expect(client.query('UPDATE ledger_postings SET amount = 1')).rejects.toThrow('only added to');
    await expect(client.query('DELETE FROM ledger_entries')).rejects.toThrow('only added to');
    await expect(client.query('TRUNCATE ledger_entries CASCADE')).rejects.toThrow('only added to');
    const lone = `WITH entry AS (INSERT INTO ledger_entries (subject, key, kind, currency) VALUES ('x', 'x', 'x', 'ZAR')
      RETURNING id) INSERT INTO ledger_postings SELECT id, 'sales', 1, 1 FROM entry`;
    await expect(client.query(lone)).rejects.toThrow('does not sum to zero');
  });

  test('is reported by time, over pages, and checked over pages', async () => {
    const merchant = await payment.callerOf('busy');
    await using client = await connectTo(payment.databaseUrl);
    // What came later in its day was entered first.
    await client.query(
      `WITH entries AS (
         INSERT INTO ledger_entries (subject, key, kind, currency, created_at)
         SELECT 'busy', 'busy:' || number, 'capture', 'ZAR', timestamptz '2026-03-02 00:00Z' - number * interval '1 second'
         FROM generate_series(1, 2500) AS number RETURNING id)
       INSERT INTO ledger_postings (entry_id, account, amount, place)
       SELECT id, account, amount, place FROM entries,
         (VALUES ('provider:yoco', 100, 1), ('sales', -100, 2)) AS posting (account, amount, place)`,
    );
    const report = await (await merchant.bytes('/reports/settlement?from=2026-03-01&to=2026-03-01')).text();
    const times = report
      .trim()
      .split('\r\n')
      .slice(1)
      .map((line) => line.slice(0, 24));
    expect(times).toHaveLength(2500);
    expect(times).toEqual(times.toSorted());

    const made = await madePayment(merchant);
    const pool = createPool({
      url: payment.databaseUrl,
      schema: 'payment',
      maxConnections: 1,
      log: createLogger('test', 'silent'),
    });
    const ledger = createLedger(() => pool);
    expect(await ledger.faults()).toBe(0);
    // More than a page of payments that agree comes before the one that does not.
    await client.query(
      `INSERT INTO payments (id, subject, provider, purpose, amount, currency, state, sealed, email_index,
         page_token_hash, expires_at, updated_at)
       SELECT gen_random_uuid(), 'filler', provider, purpose, amount, currency, 'cancelled', sealed, email_index,
         int4send(number), expires_at, now() - interval '1 hour'
       FROM payments, generate_series(1, 1500) AS number WHERE payments.id = $1`,
      [made.id],
    );
    await client.query('UPDATE payments SET captured = 1, updated_at = now() WHERE id = $1', [made.id]);
    expect(await ledger.faults()).toBe(1);
    await client.query('UPDATE payments SET captured = 0 WHERE id = $1', [made.id]);
    await pool.end();
  });
});

describe('the settlement check', () => {
  test.each(['stripe', 'payfast'] as const)('finds what only the books or only %s have', async (provider) => {
    const merchant = await payment.callerOf('settled');
    const admin = await payment.callerOf('root', 'payments:admin');
    const [paid, lost] = [await madePayment(merchant, { provider }), await madePayment(merchant, { provider })];
    for (const made of [paid, lost]) {
      await choose(made, 'pay');
      await untilPayment(merchant, made.id, 'succeeded');
    }
    await merchant.post(`/payments/${paid.id}/refunds`, { amount: 950, reason: 'a spoon less' });
    await untilPayment(merchant, paid.id, 'partially_refunded');
    const day = new Date().toISOString().slice(0, 10);
    const path = `/reports/settlement-check?provider=${provider}&from=${day}&to=${day}`;
    expect((await admin.get(path)).body).toEqual({ matched: 3, missingHere: [], missingAtProvider: [] });
    await using client = await connectTo(payment.databaseUrl);
    await client.query(`UPDATE charges SET charge_ref = 'nobody' WHERE payment_id = $1`, [lost.id]);
    expect((await admin.get(path)).body).toMatchObject({
      matched: 2,
      missingHere: [{ kind: 'payment', amount: 14_950, currency: 'ZAR' }],
      missingAtProvider: [{ kind: 'payment', amount: 14_950, chargeRef: 'nobody', paymentId: lost.id }],
    });
    expect((await merchant.get(path)).status).toBe(403);
  });

  test('is refused where there is no list, and where it is not given', async () => {
    const admin = await payment.callerOf('root', 'payments:admin');
    const days = 'from=2026-11-01&to=2026-11-02';
    const none = await admin.get(`/reports/settlement-check?provider=yoco&${days}`);
    expect([none.status, codeOf(none)]).toEqual([422, 'SETTLEMENT_NOT_LISTED']);
    payment.stripe.addFaults({ kind: 'status', status: 503, match: 'balance_transactions', times: 1 });
    const away = await admin.get(`/reports/settlement-check?provider=stripe&${days}`);
    expect([away.status, codeOf(away)]).toEqual([502, 'PROVIDER_ERROR']);
    const long = await admin.get('/reports/settlement-check?provider=stripe&from=2026-01-01&to=2026-03-01');
    expect(faultsOf(long)).toEqual(['query/to']);
  });
});

describe('payments', () => {
  test('of one key are one, whoever repeats the call, and another body with it is refused', async () => {
    const key = randomUUID();
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => shop.post('/payments', { ...tea, provider: 'yoco' }, key)),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map((answer) => JSON.stringify(answer.body))).size).toBe(1);
    const made = payment.yoco.requests().filter(({ body }) => body.includes(String(answers[0]?.body?.['id'])));
    expect(made).toHaveLength(1);
    expect((await shop.post('/payments', { ...tea, amount: 1 }, key)).status).toBe(422);
  });

  test('are of their subject alone, but for who administers payments', async () => {
    const { id } = await madePayment(shop);
    const refund = { amount: 1, reason: 'mine' };
    for (const answer of [
      await other.get(`/payments/${id}`),
      await other.get(`/payments/${id}/refunds`),
      await other.post(`/payments/${id}/cancel`),
      await other.post(`/payments/${id}/resolve`, { outcome: 'paid' }),
      await other.post(`/payments/${id}/refunds`, refund),
    ]) {
      expect([answer.status, codeOf(answer)]).toEqual([404, 'NOT_FOUND']);
    }
    expect((await other.get('/payments')).body).toMatchObject({ total: 0, payments: [] });
    const admin = await payment.callerOf('root', 'payments:read payments:admin');
    expect((await admin.get(`/payments/${id}`)).status).toBe(200);
    expect((await admin.post(`/payments/${id}/cancel`)).status).toBe(403);
  });

  test('are listed by state, provider and the address of the payer', async () => {
    const buyer = await payment.callerOf('buyer');
    const made = await madePayment(buyer, { customerEmail: 'Ann.Other@Example.com' });
    await madePayment(buyer, { provider: 'yoco' });
    expect((await buyer.get('/payments?customerEmail=ann.other@example.COM')).body).toMatchObject({
      total: 1,
      payments: [{ id: made.id, customerEmail: 'Ann.Other@Example.com' }],
    });
    expect((await buyer.get('/payments?provider=yoco&status=pending&limit=1')).body).toMatchObject({ total: 1 });
    expect((await buyer.get('/payments?status=succeeded')).body).toMatchObject({ total: 0 });
    expect(faultsOf(await buyer.get('/payments?status=paid&provider=x&limit=0&offset=-1'))).toEqual([
      'query/limit',
      'query/offset',
      'query/provider',
      'query/status',
    ]);
  });

  test('keep nothing of the payer in clear text', async () => {
    await madePayment(shop, { customerEmail: 'secret.person@example.com', metadata: { order: 'ORDER-4711' } });
    await using client = await connectTo(payment.databaseUrl);
    const { rows } = await client.query<{ text: string }>(
      `SELECT payments::text || encode(sealed, 'escape') AS text FROM payments
       UNION ALL SELECT events::text || encode(data, 'escape') FROM events
       UNION ALL SELECT idempotency_keys::text FROM idempotency_keys`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { text } of rows) expect(text).not.toMatch(/secret\.person|ORDER-4711|Tea/);
  });

  test('need no name of what is paid for, and a key that came with a fault counts for nothing', async () => {
    const key = randomUUID();
    const { itemName: _name, ...nameless } = tea;
    expect((await shop.post('/payments', { ...nameless, amount: 0 }, key)).status).toBe(400);
    const made = await shop.post('/payments', { ...nameless, provider: 'payfast' }, key);
    expect([made.status, made.body?.['itemName']]).toEqual([201, 'Payment']);
  });

  test('are cancelled before they are paid, and not after', async () => {
    const made = await madePayment(shop);
    expect((await shop.post(`/payments/${made.id}/cancel`)).body).toMatchObject({
      status: 'cancelled',
      paymentUrl: null,
    });
    const paid = await madePayment(shop);
    await choose(paid, 'pay');
    await untilPayment(shop, paid.id, 'succeeded');
    const refused = await shop.post(`/payments/${paid.id}/cancel`);
    expect([refused.status, codeOf(refused)]).toEqual([409, 'CONFLICT']);
  });

  test.each([
    ['no amount', { amount: 0 }, ['body/amount']],
    ['less than nothing', { amount: -1 }, ['body/amount']],
    ['half a cent', { amount: 0.5 }, ['body/amount']],
    ['a text', { amount: '100' }, ['body/amount']],
    ['an unsafe integer', { amount: 2 ** 53 }, ['body/amount']],
    ['too much', { amount: 1_000_000_000_001 }, ['body/amount']],
    ['currencies that there are not', { currency: 'XXX', provider: 'paypal' }, ['body/currency', 'body/provider']],
    [
      'line breaks',
      { customerEmail: 'a@b.c\r\nBcc: d@e.f', itemName: 'a\r\nb' },
      ['body/customerEmail', 'body/itemName'],
    ],
    ['a script for an address', { returnUrl: 'javascript:alert(1)' }, ['body/returnUrl']],
    ['credentials in an address', { returnUrl: 'https://a:b@example.com/' }, ['body/returnUrl']],
    ['what there is not', { id: 'x', status: 'succeeded' }, ['body/id', 'body/status']],
    [
      'nothing',
      { amount: undefined, currency: undefined, customerEmail: undefined },
      ['body/amount', 'body/currency', 'body/customerEmail'],
    ],
    [
      'other types',
      { currency: 710, customerEmail: ['a@b.example'], itemName: { text: 'Tea' }, metadata: { order: 7 }, provider: 1 },
      ['body/currency', 'body/customerEmail', 'body/itemName', 'body/metadata/order', 'body/provider'],
    ],
    [
      'too much text',
      {
        customerEmail: `${'a'.repeat(250)}@example.com`,
        itemName: 'a'.repeat(256),
        metadata: { order: 'a'.repeat(501) },
        returnUrl: `https://example.com/${'a'.repeat(2048)}`,
      },
      ['body/customerEmail', 'body/itemName', 'body/metadata/order', 'body/returnUrl'],
    ],
    [
      'control characters',
      { itemName: 'a\u0000b', metadata: { order: 'a\nb' } },
      ['body/itemName', 'body/metadata/order'],
    ],
  ])('with %s are refused, each fault named, and nothing is stored', async (_what, changes, paths) => {
    const careless = await payment.callerOf('careless');
    expect(faultsOf(await careless.post('/payments', { ...tea, ...changes }))).toEqual(paths);
    expect((await careless.get('/payments')).body).toMatchObject({ total: 0 });
  });

  test.each([
    [{ provider: 'payfast', currency: 'USD' }, 'CURRENCY_NOT_SUPPORTED', { currencies: ['ZAR'] }],
    [{ provider: 'yoco', amount: 199 }, 'AMOUNT_TOO_SMALL', { minimum: 200 }],
    [{ provider: 'stripe', currency: 'KWD', amount: 35_201 }, 'AMOUNT_NOT_SUPPORTED', { multipleOf: 10 }],
  ])('of %j are refused: %s', async (changes, code, details) => {
    const answer = await shop.post('/payments', { ...tea, ...changes });
    expect([answer.status, codeOf(answer)]).toEqual([422, code]);
    expect(answer.body).toMatchObject({ error: { details } });
  });

  test('name all that is refused at once', async () => {
    const wanted = { ...tea, customerId: 'x', provider: 'payfast', currency: 'USD', amount: 499 };
    const answer = await shop.post('/payments', wanted);
    const codes = ['CUSTOMER_NOT_FOUND', 'CURRENCY_NOT_SUPPORTED', 'AMOUNT_TOO_SMALL'];
    const paths = ['body/customerId', 'body/currency', 'body/amount'];
    const fields = codes.map((code, index) => ({ path: paths[index], code, message: expect.any(String) }));
    expect([answer.status, codeOf(answer)]).toEqual([422, 'CUSTOMER_NOT_FOUND']);
    expect(answer.body).toMatchObject({ error: { details: { currencies: ['ZAR'], minimum: 500, fields } } });
  });
});

describe.each(providers)('at %s', (provider) => {
  test('a payment is made, paid by its payer, and refunded in part and whole', async () => {
    const made = await madePayment(shop, { provider });
    expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({
      ...tea,
      status: 'pending',
      provider,
      amountRefunded: 0,
      paymentUrl: made.url,
    });
    await choose(made, 'pay');
    const paid = await untilPayment(shop, made.id, 'succeeded');
    expect(paid.body).toMatchObject({ paymentUrl: null, reason: null });
    expect(
      (await shop.post(`/payments/${made.id}/refunds`, { amount: 6000, reason: 'one cup less' })).body,
    ).toMatchObject({ amount: 6000, currency: 'ZAR' });
    await untilPayment(shop, made.id, 'partially_refunded');
    expect((await shop.post(`/payments/${made.id}/refunds`, { reason: 'no tea at all' })).body).toMatchObject({
      amount: 8950,
    });
    const refunded = await untilPayment(shop, made.id, 'refunded');
    expect(refunded.body).toMatchObject({ amountRefunded: 14_950 });
    expect(codeOf(await shop.post(`/payments/${made.id}/refunds`, { reason: 'again' }))).toBe('CONFLICT');
  });
});

describe.each(['payfast', 'yoco', 'stripe'] as const)('at %s, which tells of payments', (provider) => {
  afterEach(() => payment[provider].reset());

  test.each(['twice', 'out-of-order', 'before-the-answer'] as const)(
    'money is counted once where notifications come %s, and all of them again later',
    async (kind) => {
      payment[provider].addFaults({ kind });
      const made = await madePayment(shop, { provider });
      await choose(made, 'pay');
      await untilPayment(shop, made.id, 'succeeded');
      await shop.post(`/payments/${made.id}/refunds`, { amount: 6000 });
      await untilPayment(shop, made.id, 'partially_refunded');
      await shop.post(`/payments/${made.id}/refunds`, {});
      await untilPayment(shop, made.id, 'refunded');
      await payment[provider].idle();
      for (const { url, headers, body } of payment[provider].notifications()) {
        expect((await fetch(url, { method: 'POST', headers, body })).ok).toBe(true);
      }
      await using database = await connectTo(payment.databaseUrl);
      const waiting = async () =>
        (await database.query("SELECT FROM notifications WHERE state = 'new' AND provider = $1", [provider])).rowCount;
      await expect.poll(waiting).toBe(0);
      expect((await shop.get(`/payments/${made.id}`)).body).toMatchObject({
        status: 'refunded',
        amountRefunded: 14_950,
      });
      const { rows } = await database.query(
        `SELECT kind, sum(amount)::int AS amount FROM ledger_entries JOIN ledger_postings ON entry_id = id
         WHERE payment_id = $1 AND account = $2 AND kind <> 'fee' GROUP BY kind ORDER BY kind`,
        [made.id, `provider:${provider}`],
      );
      expect(rows).toEqual([
        { kind: 'capture', amount: 14_950 },
        { kind: 'refund', amount: -14_950 },
      ]);
    },
  );
});
