import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import type { Answer } from '../support/replica.ts';
import { connectTo, idOf, sellers, startBilling } from './billing-service.ts';

const SCOPES = 'billing:write billing:read payments:write payments:read refunds:write';
const SANDBOX = { default: 'sandbox', providers: { sandbox: { secret: 'whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYX' } } };
const TABLES = {
  payments: 'sealed',
  customers: 'sealed',
  subscriptions: 'sealed',
  invoices: 'sealed',
  credit_notes: 'sealed',
  events: 'data',
};
const keyOf = (id: string, fill: number) => ({ id, key: Buffer.alloc(32, fill).toString('base64') });
const ONE = keyOf('one', 1);
const TWO = keyOf('key-two', 2);

const stack = new AsyncDisposableStack();
let databaseUrl: string;

beforeAll(async () => {
  databaseUrl = stack.use(await createDatabase()).url;
});

afterAll(() => stack.disposeAsync());

const start = (...keys: readonly object[]) =>
  startBilling({
    databaseUrl,
    files: { ...sellers, ROLLCALL_PROVIDERS_FILE: SANDBOX, ROLLCALL_VAULT_KEYS_FILE: { keys } },
    settings: { ROLLCALL_MODE: 'trial' },
  });

test('payments, customers, subscriptions and what was issued are sealed with the newest key, and say the same', {
  timeout: 90_000,
}, async () => {
  const first = await start(ONE);
  const shop = await first.callerOf('shop', SCOPES);
  const customerId = idOf(await shop.post('/customers', { email: 'Ann@example.com', name: 'Ann' }));
  const items = [{ description: 'Tea', amount: 24_167, quantity: 1, taxRate: 15 }];
  const invoice = `/invoices/${idOf(await shop.post('/invoices', { customerId, items, finalize: true }))}`;
  expect((await shop.post(`${invoice}/credit-notes`, { items: [{ line: 0, amount: 792 }] })).status).toBe(201);
  const tea = { amount: 14_950, currency: 'ZAR', customerEmail: 'Ann@example.com', itemName: 'Tea' };
  const payment = `/payments/${idOf(await shop.post('/payments', tea))}`;
  const plan = { name: 'Tea', amount: 100, currency: 'ZAR', interval: 'month' };
  const planId = idOf(await shop.post('/plans', plan));
  const wish = { customerId, planId, collection: 'send_invoice', metadata: { seat: '7' } };
  const subscription = `/subscriptions/${idOf(await shop.post('/subscriptions', wish))}`;
  const paths = [invoice, `${invoice}/credit-notes`, payment, subscription];
  const before = await Promise.all(paths.map((path) => shop.get(path)));
  await first[Symbol.asyncDispose]();

  const both = await start(TWO, ONE);
  await using database = await connectTo(databaseUrl);
  const head = Buffer.concat([Buffer.of(TWO.id.length), Buffer.from(TWO.id)]);
  for (const [table, column] of Object.entries(TABLES)) {
    const counted = `SELECT count(*)::int AS all, count(*) FILTER (WHERE substring(${column} FROM 1 FOR $2) <> $1)::int
      AS old FROM ${table}`;
    await vi.waitFor(
      async () => {
        const { rows } = await database.query<{ all: number; old: number }>(counted, [head, head.length]);
        expect([table, rows[0]?.old]).toEqual([table, 0]);
        expect(rows[0]?.all).toBeGreaterThan(0);
      },
      { timeout: 30_000, interval: 250 },
    );
  }
  await both[Symbol.asyncDispose]();
  await expect(database.query("UPDATE invoices SET sealed = '\\x00'")).rejects.toThrow(
    'what was issued is not changed',
  );

  await using last = await start(TWO);
  const again = await last.callerOf('shop', SCOPES);
  const after = await Promise.all(paths.map((path) => again.get(path)));
  expect(after.map(said)).toEqual(before.map(said));
  expect((await again.get('/customers?email=ann@example.com')).body).toMatchObject({ total: 1 });
  expect((await again.get('/payments?customerEmail=ann@example.com')).body).toMatchObject({ total: 1 });
});

/** All but the address of the page, which is signed by the newest key. */
function said({ status, body }: Answer) {
  return { status, ...body, pageUrl: undefined };
}
