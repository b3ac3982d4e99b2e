import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { LedgerEntry } from '../domain/ledger.ts';
import type { Owner } from '../domain/owner.ts';

/** Whose movements they are. */
interface EntryOwner {
  readonly subject: string;
  readonly paymentId?: string;
}

/**
 * Adds entries to the ledger, in the transaction of what they are of. One whose key is there already
 * is not entered again.
 */
export async function postEntries(
  client: PoolClient,
  { subject, paymentId }: EntryOwner,
  entries: readonly LedgerEntry[],
): Promise<void> {
  for (const { key, kind, currency, postings } of entries.filter((entry) => entry.postings.length > 0)) {
    const { rows } = await client.query<{ id: string }>(
      `INSERT INTO ledger_entries (subject, key, kind, currency, payment_id) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (key) DO NOTHING RETURNING id`,
      [subject, key, kind, currency, paymentId],
    );
    const [entry] = rows;
    if (entry === undefined) continue;
    await client.query(
      `INSERT INTO ledger_postings (entry_id, account, amount, place)
       SELECT $1, account, amount, place
       FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS posting (account, amount, place)`,
      [entry.id, postings.map(({ account }) => account), postings.map(({ amount }) => amount.toString())],
    );
  }
}

/** Of one account in one currency, in minor units: a debit is positive. */
interface Balance {
  readonly account: string;
  readonly currency: string;
  readonly amount: bigint;
}

/** What moved at a provider. */
export interface Movement {
  readonly at: Date;
  readonly kind: string;
  readonly provider: string;
  readonly currency: string;
  /** In minor units: what we got is positive, what left us negative. */
  readonly amount: bigint;
  readonly paymentId: string | null;
}

/** Which movements: from an instant to before another. */
interface MovementQuery {
  readonly owner: Owner;
  readonly from: Date;
  readonly to: Date;
}

/** Reads what was entered. */
export interface Ledger {
  balances(owner: Owner): Promise<readonly Balance[]>;
  /** The oldest first; read page by page. */
  movements(query: MovementQuery): AsyncGenerator<Movement>;
  /**
   * Counts what must not be, of the last two days: entries that do not sum to zero, and payments
   * whose balance is not that of their charges.
   */
  faults(): Promise<number>;
}

const PAGE = 1000;

interface MovementRow {
  readonly id: string;
  readonly at: Date;
  readonly kind: string;
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
  readonly payment_id: string | null;
}

/** @param pool throws while the schema is not there yet. */
export function createLedger(pool: () => Pool): Ledger {
  return {
    async balances(owner) {
      const { rows } = await pool().query<{ account: string; currency: string; amount: string }>(
        `SELECT account, currency, sum(amount)::text AS amount
         FROM ledger_postings JOIN ledger_entries ON ledger_entries.id = entry_id
         WHERE $1::text IS NULL OR subject = $1
         GROUP BY account, currency ORDER BY account, currency`,
        [owner],
      );
      return rows.map(({ amount, ...row }) => ({ ...row, amount: BigInt(amount) }));
    },
    async *movements({ owner, from, to }) {
      for (let after = '0'; ; ) {
        const { rows } = await pool().query<MovementRow>(
          `SELECT ledger_entries.id, created_at AS at, kind, account, currency, amount, payment_id
           FROM ledger_entries JOIN ledger_postings ON ledger_entries.id = entry_id
           WHERE ($1::text IS NULL OR subject = $1) AND created_at >= $2 AND created_at < $3
             AND account LIKE 'provider:%' AND ledger_entries.id > $4
           ORDER BY ledger_entries.id LIMIT ${PAGE}`,
          [owner, from, to, after],
        );
        for (const row of rows) yield movementOf(row);
        const last = rows.at(-1);
        if (last === undefined || rows.length < PAGE) return;
        after = last.id;
      }
    },
    async faults() {
      const { rows } = await pool().query<{ faults: number }>(
        `SELECT (SELECT count(*) FROM ledger_entries
             WHERE created_at > now() - interval '2 days' AND COALESCE(
               (SELECT sum(amount) FROM ledger_postings WHERE entry_id = ledger_entries.id), 1) <> 0)::int
           + (SELECT count(*) FROM payments
             WHERE updated_at > now() - interval '2 days' AND captured <> COALESCE(
               (SELECT sum(amount) FROM charges WHERE payment_id = payments.id AND is_booked), 0))::int AS faults`,
      );
      return rows[0]?.faults ?? 0;
    },
  };
}

function movementOf({ at, kind, account, currency, amount, payment_id }: MovementRow): Movement {
  const provider = account.slice('provider:'.length);
  return { at, kind, provider, currency, amount: BigInt(amount), paymentId: payment_id };
}
