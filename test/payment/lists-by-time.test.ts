import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { type Caller, connectTo, faultsOf, idOf, sandbox, startBilling } from './billing-service.ts';

const stack = new AsyncDisposableStack();
let caller: Caller;
let databaseUrl: string;

beforeAll(async () => {
  ({ url: databaseUrl } = stack.use(await createDatabase()));
  const billing = stack.use(await startBilling({ databaseUrl, ...sandbox }));
  caller = await billing.callerOf('shop', 'payments:write payments:read billing:write billing:read');
});

afterAll(() => stack.disposeAsync());

const tea = { amount: 100, currency: 'ZAR', customerEmail: 'ann@example.com', itemName: 'Tea' };
const items = [{ description: 'Tea', amount: 100, quantity: 1 }];
const TIMES = ['2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z', '2026-01-03T00:00:00Z'];

const makers: Readonly<Record<string, () => Promise<unknown>>> = {
  customers: () => caller.post('/customers', { email: `${randomBytes(4).toString('hex')}@example.com` }),
  payments: () => caller.post('/payments', tea),
  invoices: async () =>
    caller.post('/invoices', { customerId: idOf(await caller.post('/customers', { email: 'a@b.example' })), items }),
};

test.each(Object.keys(makers))('%s are listed by when they were made', async (what) => {
  await using database = await connectTo(databaseUrl);
  await database.query(`UPDATE ${what} SET created_at = '2020-01-01T00:00:00Z'`);
  const made: string[] = [];
  for (const at of TIMES) {
    const id = idOf((await makers[what]?.()) as Parameters<typeof idOf>[0]);
    await database.query(`UPDATE ${what} SET created_at = $2 WHERE id = $1`, [id, at]);
    made.push(id);
  }
  const idsOf = async (query: string) => {
    const { body } = await caller.get(`/${what}?${query}`);
    const rows = body?.[what] as readonly { readonly id: string }[];
    return [rows.map(({ id }) => made.indexOf(id)), body?.['total']];
  };
  expect(await idsOf('from=2026-01-02T00:00:00Z&to=2026-01-03T00:00:00Z')).toEqual([[1], 1]);
  expect(await idsOf('from=2026-01-02T02:00:00%2B02:00&to=2026-12-01T00:00:00Z')).toEqual([[2, 1], 2]);
  expect(await idsOf('from=2021-01-01T00:00:00Z&to=2026-01-02T00:00:00Z')).toEqual([[0], 1]);
  expect(await idsOf('from=2026-01-03T00:00:00Z&to=2026-01-03T00:00:00Z')).toEqual([[], 0]);
  const page = await caller.get(`/${what}?limit=1&from=2026-01-01T00:00:00Z&to=2026-01-03T00:00:00Z`);
  expect(page.body).toMatchObject({ total: 2 });
  expect(
    await idsOf(`from=2026-01-01T00:00:00Z&to=2026-02-01T00:00:00Z&cursor=${String(page.body?.['nextCursor'])}`),
  ).toEqual([[0], 3]);
});

test.each([
  ['a day', 'from=2026-01-01', ['query/from']],
  ['no day', 'from=2026-02-30T00:00:00Z&to=soon', ['query/from', 'query/to']],
  ['an end before the beginning', 'from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z', ['query/to']],
])('%s is refused', async (_what, query, paths) => {
  for (const list of ['payments', 'refunds', 'invoices', 'customers', 'subscriptions'])
    expect(faultsOf(await caller.get(`/${list}?${query}`))).toEqual(paths);
});
