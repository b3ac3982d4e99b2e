import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type BillingService, type Caller, connectTo, faultsOf, idOf, startBilling } from './billing-service.ts';

const stack = new AsyncDisposableStack();
let billing: BillingService;
let shop: Caller;
let other: Caller;
let databaseUrl: string;

beforeAll(async () => {
  ({ url: databaseUrl } = stack.use(await createDatabase()));
  billing = stack.use(await startBilling({ databaseUrl }));
  [shop, other] = await Promise.all([billing.callerOf('shop'), billing.callerOf('other')]);
});

afterAll(() => stack.disposeAsync());

const customer = { email: 'Ann.Other@Example.com', name: 'Ann Other', address: ['1 Long Street', 'Cape Town'] };
const plan = { name: 'Tea', amount: 14_950, currency: 'ZAR', interval: 'month', taxRate: 15 };

describe('customers', () => {
  test('are made, found by address whatever its capitals, changed and listed', async () => {
    const made = await shop.post('/customers', { ...customer, timeZone: 'Africa/Johannesburg' });
    expect(made.status).toBe(201);
    const id = idOf(made);
    expect(made.headers.get('location')).toBe(`customers/${id}`);
    expect(made.body).toMatchObject({ ...customer, timeZone: 'Africa/Johannesburg', taxId: null, locale: 'en' });
    const changed = await shop.patch(`/customers/${id}`, { name: null, email: 'ann@example.com', taxId: '4123456789' });
    expect(changed.body).toMatchObject({ name: null, email: 'ann@example.com', address: customer.address });
    expect((await shop.get('/customers?email=ANN@example.com')).body).toMatchObject({
      total: 1,
      customers: [{ id, taxId: '4123456789' }],
    });
    expect((await shop.get(`/customers?email=${customer.email}`)).body).toMatchObject({ total: 0 });
  });

  test('keep metadata of their caller, and another in its place', async () => {
    const made = await shop.post('/customers', { ...customer, metadata: { crm: 'c-7', tax: 'none' } });
    expect(made.body).toMatchObject({ metadata: { crm: 'c-7', tax: 'none' } });
    const path = `/customers/${idOf(made)}`;
    expect((await shop.patch(path, { name: 'Ann' })).body).toMatchObject({ metadata: { crm: 'c-7' } });
    expect((await shop.patch(path, { metadata: {} })).body).toMatchObject({ metadata: {} });
    expect((await shop.get(`/customers/${idOf(await shop.post('/customers', customer))}`)).body?.['metadata']).toEqual(
      {},
    );
  });

  test('are of their subject alone, but for who administers billing', async () => {
    const path = `/customers/${idOf(await shop.post('/customers', customer))}`;
    const missing = await other.get(`/customers/${randomUUID()}`);
    for (const answer of [await other.get(path), await other.patch(path, { name: 'Eve' })]) {
      expect(answer.status).toBe(404);
      expect(answer.body).toEqual(missing.body);
    }
    expect((await other.get('/customers')).body).toMatchObject({ total: 0 });
    const admin = await billing.callerOf('root', 'billing:read billing:admin');
    expect((await admin.get(path)).status).toBe(200);
    expect((await admin.patch(path, {})).status).toBe(403);
    expect((await (await billing.callerOf('shop', 'billing:read')).post('/customers', customer)).status).toBe(403);
  });

  test('have nothing personal in clear text in the database', async () => {
    await shop.post('/customers', { ...customer, taxId: '4999999999' });
    await using client = await connectTo(databaseUrl);
    const { rows } = await client.query<{ text: string }>(
      `SELECT customers::text || encode(sealed, 'escape') AS text FROM customers
       UNION ALL SELECT idempotency_keys::text FROM idempotency_keys`,
    );
    expect(rows.length).toBeGreaterThan(0);
    for (const { text } of rows) expect(text).not.toMatch(/ann other|ann\.other|long street|4999999999/i);
  });

  test('of one key are one, and another body with it is refused', async () => {
    const key = randomUUID();
    const answers = await Promise.all(Array.from({ length: 20 }, () => shop.post('/customers', customer, key)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
    expect(new Set(answers.map(({ body }) => body?.['id'])).size).toBe(1);
    expect((await shop.post('/customers', { ...customer, name: 'Eve' }, key)).status).toBe(422);
    expect((await other.post('/customers', customer, key)).body?.['id']).not.toBe(answers[0]?.body?.['id']);
  });

  test.each([
    ['a line break in the address', { email: 'a@example.com\r\nBcc: eve@example.com' }, ['body/email']],
    ['two addresses', { email: 'a@example.com, b@example.com' }, ['body/email']],
    ['an address with a name', { email: 'Ann <a@example.com>' }, ['body/email']],
    ['none', {}, ['body/email']],
    ['a NUL and an escape', { email: 'a@b.c', name: 'a\0', address: ['\u001B[31m'] }, ['body/address/0', 'body/name']],
    ['white space alone', { email: 'a@b.c', name: '  ', taxId: '' }, ['body/name', 'body/taxId']],
    ['an offset for a zone', { email: 'a@b.c', timeZone: '+02:00', locale: 'en_ZA' }, ['body/locale', 'body/timeZone']],
    ['a whole time for a zone', { email: 'a@b.c', timeZone: '2026-01-01T00:00[Africa/Cairo]' }, ['body/timeZone']],
    ['too much', { email: 'a@b.c', name: 'x'.repeat(201), address: Array(9).fill('x') }, ['body/address', 'body/name']],
    ['other types', { email: 1, name: {}, address: 'x' }, ['body/address', 'body/email', 'body/name']],
    [
      'metadata that is no words',
      { email: 'a@b.c', metadata: { a: 1, b: 'x\n' } },
      ['body/metadata/a', 'body/metadata/b'],
    ],
    ['what there is not', { email: 'a@b.c', subject: 'other', id: 'x' }, ['body/id', 'body/subject']],
  ])('with %s are refused, each fault named', async (_what, body, paths) => {
    const answer = await shop.post('/customers', body);
    expect(faultsOf(answer)).toEqual(paths);
  });
});

test('an address is one that communication takes, and its domain is in ASCII', async () => {
  const { body } = await shop.post('/customers', { email: 'Ana@SÖHNE.example' });
  expect(body).toMatchObject({ email: 'Ana@xn--shne-5qa.example' });
  expect((await shop.get('/customers?email=ana@s%C3%B6hne.example')).body).toMatchObject({ total: 1 });
  for (const email of ['ana@localhost', 'ana@127.0.0.1', 'a..b@example.com', '.a@example.com'])
    expect(faultsOf(await shop.post('/customers', { email }))).toEqual(['body/email']);
});

describe('plans', () => {
  test('get a version by a change of their terms, and none by the same', async () => {
    const made = await shop.post('/plans', plan);
    const { body, status } = made;
    expect(status).toBe(201);
    const path = `/plans/${idOf(made)}`;
    expect(body).toMatchObject({ ...plan, intervalCount: 1, trialDays: 0, taxBehavior: 'exclusive', version: 1 });
    expect((await shop.patch(path, { amount: 14_950, taxRate: 15 })).body).toMatchObject({ version: 1, active: true });
    expect((await shop.patch(path, { intervalCount: 3, taxRate: 9.975 })).body).toMatchObject({
      version: 2,
      interval: 'month',
      intervalCount: 3,
      taxRate: 9.975,
    });
    expect((await shop.patch(path, { active: false })).body).toMatchObject({ version: 2, active: false });
    expect((await shop.get('/plans?active=false')).body).toMatchObject({ total: 1, plans: [{ version: 2 }] });
    await using client = await connectTo(databaseUrl);
    const { rows } = await client.query<{ amount: string }>(
      'SELECT version, interval_count FROM plan_versions WHERE plan_id = $1 ORDER BY version',
      [body?.['id']],
    );
    expect(rows).toEqual([
      { version: 1, interval_count: 1 },
      { version: 2, interval_count: 3 },
    ]);
  });

  test('get a version for each of many changes at once', async () => {
    const path = `/plans/${idOf(await shop.post('/plans', plan))}`;
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, index) => shop.patch(path, { amount: 1000 + index })),
    );
    const versions = answers.map((answer) => Number(answer.body?.['version'])).sort((one, two) => one - two);
    expect(versions).toEqual(Array.from({ length: 20 }, (_, index) => index + 2));
  });

  test('are of their subject alone', async () => {
    const path = `/plans/${idOf(await shop.post('/plans', plan))}`;
    expect((await other.get(path)).status).toBe(404);
    expect((await other.patch(path, { amount: 1 })).status).toBe(404);
    expect((await shop.get('/plans/none')).status).toBe(404);
  });

  test.each([
    ['a negative amount', { amount: -1 }, ['body/amount']],
    ['half a cent', { amount: 0.5 }, ['body/amount']],
    ['a text', { amount: '100' }, ['body/amount']],
    ['too much', { amount: 2 ** 53 }, ['body/amount']],
    ['more than there may be', { amount: 1_000_000_000_001 }, ['body/amount']],
    ['small letters', { currency: 'zar', interval: 'decade' }, ['body/currency', 'body/interval']],
    ['gold', { currency: 'XAU' }, ['body/currency']],
    ['too many decimals', { taxRate: 15.00001 }, ['body/taxRate']],
    ['counts of nothing', { intervalCount: 0, trialDays: -1 }, ['body/intervalCount', 'body/trialDays']],
    ['a line break', { name: 'Tea\r\nSubject: x' }, ['body/name']],
  ])('with %s are refused', async (_what, change, paths) => {
    const answer = await shop.post('/plans', { ...plan, ...change });
    expect(faultsOf(answer)).toEqual(paths);
    const path = `/plans/${idOf(await shop.post('/plans', plan))}`;
    expect((await shop.patch(path, change)).status).toBe(400);
  });
});
