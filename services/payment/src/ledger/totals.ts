import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Owner } from '../domain/owner.ts';

/** Of one account in one currency, in minor units: a debit is positive. */
export interface Balance {
  readonly account: string;
  readonly currency: string;
  readonly amount: bigint;
}

/**
 * Entries get their numbers before they are seen. No transaction is open for so long, so that none
 * with a lesser number than one of that age is still to come.
 */
const SETTLED_MINUTES = 15;

/** Up to the first entry that is younger, whatever the clock said of those after it. */
const ADD_UP = `
  WITH next AS (SELECT id, subject, currency, created_at FROM ledger_entries WHERE id > $1 ORDER BY id LIMIT $2),
  settled AS (
    SELECT id, subject, currency FROM next WHERE id < ALL (
      SELECT id FROM next WHERE created_at >= now() - make_interval(mins => ${SETTLED_MINUTES}))),
  added AS (
    INSERT INTO ledger_totals (subject, account, currency, amount)
    SELECT subject, account, currency, sum(amount) FROM settled JOIN ledger_postings ON entry_id = settled.id
    GROUP BY subject, account, currency
    ON CONFLICT (subject, account, currency) DO UPDATE SET amount = ledger_totals.amount + excluded.amount)
  UPDATE ledger_totals_until SET last_entry_id = (SELECT COALESCE(max(id), $1) FROM settled)
  RETURNING (SELECT count(*)::int FROM settled) AS count`;

/** Adds the next entries to the totals. @param limit how many at most. @returns how many. */
export async function addUp(pool: Pool, limit: number): Promise<number> {
  return inTransaction(pool, async (client) => {
    // A statement of its own: the next one sees what the one who had the row before has added.
    const { rows: until } = await client.query<{ last_entry_id: string }>(
      'SELECT last_entry_id FROM ledger_totals_until FOR UPDATE',
    );
    const { rows } = await client.query<{ count: number }>(ADD_UP, [until[0]?.last_entry_id, limit]);
    return rows[0]?.count ?? 0;
  });
}

/** The totals, with what has been entered since. */
const BALANCES = `
  SELECT account, currency, sum(amount)::text AS amount FROM (
    SELECT account, currency, amount FROM ledger_totals WHERE $1::text IS NULL OR subject = $1
    UNION ALL
    SELECT account, currency, amount FROM ledger_entries JOIN ledger_postings ON entry_id = ledger_entries.id
    WHERE ledger_entries.id > (SELECT last_entry_id FROM ledger_totals_until) AND ($1::text IS NULL OR subject = $1)
  ) AS moved GROUP BY account, currency ORDER BY account, currency`;

export async function readBalances(pool: Pool, owner: Owner): Promise<readonly Balance[]> {
  const { rows } = await pool.query<{ account: string; currency: string; amount: string }>(BALANCES, [owner]);
  return rows.map(({ amount, ...row }) => ({ ...row, amount: BigInt(amount) }));
}

/** How many totals do not sum to zero, as the entries do that are in them. */
export async function countTotalFaults(pool: Pool): Promise<number> {
  const { rows } = await pool.query<{ count: number }>(
    `SELECT count(*)::int FROM (
       SELECT FROM ledger_totals GROUP BY subject, currency HAVING sum(amount) <> 0) AS faulty`,
  );
  return rows[0]?.count ?? 0;
}
