import { createLedger } from '@rollcall/payment/ledger/store.ts';
import { createPool } from '@rollcall/platform/postgres/pool.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, test } from 'vitest';
import { createDatabase } from '../support/postgres.ts';
import { connectTo, sandbox, startBilling } from './billing-service.ts';

test('balances are the same, however much of them is added up, and by however many', async () => {
  await using stack = new AsyncDisposableStack();
  const { url: databaseUrl } = stack.use(await createDatabase());
  const billing = stack.use(await startBilling({ databaseUrl, ...sandbox }));
  const database = stack.use(await connectTo(databaseUrl));
  const [shop, admin] = await Promise.all(
    ['payments:read', 'payments:read payments:admin'].map((scope) => billing.callerOf('shop', scope)),
  );
  const enter = (name: string, count: number, age: string) =>
    database.query(
      `WITH entries AS (
         INSERT INTO ledger_entries (subject, key, kind, currency, created_at)
         SELECT CASE number % 3 WHEN 0 THEN 'other' ELSE 'shop' END, $1 || number, 'capture',
           CASE number % 2 WHEN 0 THEN 'ZAR' ELSE 'USD' END, now() - $3::interval
         FROM generate_series(1, $2::int) AS number RETURNING id)
       INSERT INTO ledger_postings (entry_id, account, amount, place)
       SELECT id, account, sign * (1000000000000 - id), place FROM entries,
         (VALUES ('provider:yoco', 1, 1), ('sales', -1, 2)) AS posting (account, sign, place)`,
      [name, count, age],
    );
  const read = async () => [(await shop?.get('/ledger/balances'))?.body, (await admin?.get('/ledger/balances'))?.body];
  await enter('old', 5000, '1 hour');
  await enter('young', 10, '1 minute');
  // By a clock that was set back.
  await enter('back', 10, '2 hours');
  const { rows: all } = await database.query<{ account: string; currency: string; amount: number }>(
    `SELECT account, currency, sum(amount)::float8 AS amount FROM ledger_postings JOIN ledger_entries ON id = entry_id
     GROUP BY account, currency ORDER BY account, currency`,
  );
  const before = await read();
  expect(before[1]).toEqual({ balances: all });
  expect(before[0]).not.toEqual(before[1]);

  const log = createLogger('test', 'silent');
  const pool = createPool({ url: databaseUrl, schema: 'payment', maxConnections: 8, log });
  stack.defer(() => pool.end());
  const ledger = createLedger(() => pool);
  const addAll = async (): Promise<void> => {
    for (let added = 1; added > 0; ) added = await ledger.addUp(100);
  };
  const readOften = async (): Promise<void> => {
    for (let round = 0; round < 20; round += 1) expect(await read()).toEqual(before);
  };
  await Promise.all([addAll(), addAll(), addAll(), readOften()]);
  expect(await read()).toEqual(before);
  const { rows } = await database.query(
    `SELECT (SELECT count(*)::int FROM ledger_entries WHERE id <= last_entry_id) AS added,
       (SELECT sum(amount)::text FROM ledger_totals WHERE amount > 0) AS debits FROM ledger_totals_until`,
  );
  expect(rows).toEqual([{ added: 5000, debits: String(5000n * 1_000_000_000_000n - (5000n * 5001n) / 2n) }]);
  expect(await ledger.faults()).toBe(0);
  await database.query(`UPDATE ledger_totals SET amount = amount + 1 WHERE subject = 'shop' AND account = 'sales'`);
  expect(await ledger.faults()).toBe(2);
}, 90_000);
