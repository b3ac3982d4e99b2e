import { joined, type Statement } from '@rollcall/platform/postgres/joined.ts';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { LedgerEntry } from '../domain/ledger.ts';
import type { Owner } from '../domain/owner.ts';
import { addUp, type Balance, countTotalFaults, readBalances } from './totals.ts';

/** Whose movements they are. */
interface EntryOwner {
  readonly subject: string;
  readonly paymentId?: string;
}

/** Adds entries to the ledger, in the transaction of what they are of. */
export async function postEntries(
  client: PoolClient,
  owner: EntryOwner,
  entries: readonly LedgerEntry[],
): Promise<void> {
  const statements = entryStatements(owner, entries);
  if (statements.length > 0) await client.query(joined('enter', statements, 'SELECT FROM entry'));
}

/**
 * That add entries to the ledger. One whose key is there already is not entered again.
 *
 * @returns none where there is nothing to enter.
 */
export function entryStatements(
  { subject, paymentId }: EntryOwner,
  entries: readonly LedgerEntry[],
): readonly Statement[] {
  const entered = entries.filter(({ postings }) => postings.length > 0);
  if (entered.length === 0) return [];
  const places = entered.flatMap(({ key, postings }) =>
    postings.map(({ account, amount }, index) => ({ key, account, amount: amount.toString(), place: index + 1 })),
  );
  const entry = {
    name: 'entry',
    text: `INSERT INTO ledger_entries (subject, key, kind, currency, payment_id)
      SELECT $1, key, kind, currency, $2 FROM unnest($3::text[], $4::text[], $5::text[]) AS entered (key, kind, currency)
      ON CONFLICT (key) DO NOTHING RETURNING id, key`,
    values: [
      subject,
      paymentId,
      entered.map(({ key }) => key),
      entered.map(({ kind }) => kind),
      entered.map(({ currency }) => currency),
    ],
  };
  const posting = {
    name: 'posting',
    text: `INSERT INTO ledger_postings (entry_id, account, amount, place)
      SELECT id, account, amount, place
      FROM unnest($1::text[], $2::text[], $3::bigint[], $4::smallint[]) AS posted (key, account, amount, place)
        JOIN entry USING (key)`,
    values: [
      places.map(({ key }) => key),
      places.map(({ account }) => account),
      places.map(({ amount }) => amount),
      places.map(({ place }) => place),
    ],
  };
  return [entry, posting];
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
  /** Adds the next entries to the totals that balances are read of. @param limit how many at most. @returns how many. */
  addUp(limit: number): Promise<number>;
  /** The oldest first; read page by page. */
  movements(query: MovementQuery): AsyncGenerator<Movement>;
  /**
   * Counts what must not be, of the last two days: entries that do not sum to zero, and payments
   * whose balance is not that of their charges. Of all days: totals that do not sum to zero.
   */
  faults(): Promise<number>;
}

const PAGE = 1000;
const CHECKED_MS = 2 * 24 * 3_600_000;

interface MovementRow {
  readonly id: string;
  readonly at: Date;
  /** As exact as the database has it. */
  readonly position: string;
  readonly kind: string;
  readonly account: string;
  readonly currency: string;
  readonly amount: string;
  readonly payment_id: string | null;
}

/** @param pool throws while the schema is not there yet. */
export function createLedger(pool: () => Pool): Ledger {
  return {
    balances: (owner) => readBalances(pool(), owner),
    addUp: (limit) => addUp(pool(), limit),
    async *movements({ owner, from, to }) {
      for (let last: MovementRow | undefined; ; ) {
        const { rows } = await pool().query<MovementRow>(
          `SELECT ledger_entries.id, created_at AS at, created_at::text AS position, kind, account, currency, amount,
             payment_id
           FROM ledger_entries JOIN ledger_postings ON ledger_entries.id = entry_id
           WHERE ($1::text IS NULL OR subject = $1) AND created_at < $2 AND account LIKE 'provider:%'
             AND (created_at, ledger_entries.id) > ($3::timestamptz, $4::bigint)
           ORDER BY created_at, ledger_entries.id LIMIT ${PAGE}`,
          [owner, to, last?.position ?? from, last?.id ?? '0'],
        );
        for (const row of rows) yield movementOf(row);
        last = rows.at(-1);
        if (last === undefined || rows.length < PAGE) return;
      }
    },
    async faults() {
      const entries = await countFaults(pool(), {
        table: 'ledger_entries',
        at: 'created_at',
        isFaulty: 'COALESCE((SELECT sum(amount) FROM ledger_postings WHERE entry_id = ledger_entries.id), 1) <> 0',
        firstId: '0',
      });
      const payments = await countFaults(pool(), {
        table: 'payments',
        at: 'updated_at',
        isFaulty:
          'captured <> COALESCE((SELECT sum(amount) FROM charges WHERE payment_id = payments.id AND is_booked), 0)',
        firstId: '00000000-0000-0000-0000-000000000000',
      });
      return entries + payments + (await countTotalFaults(pool()));
    },
  };
}

/** All of it is SQL. */
interface Checked {
  readonly table: string;
  /** The column of a time that an index has. */
  readonly at: string;
  readonly isFaulty: string;
  readonly firstId: string;
}

/** Counts among the rows of two days, a page at a time: no query takes long, however many there are. */
async function countFaults(pool: Pool, { table, at, isFaulty, firstId }: Checked): Promise<number> {
  let count = 0;
  const since = new Date(Date.now() - CHECKED_MS);
  for (let last: { readonly id: string; readonly position: string } | undefined; ; ) {
    const { rows } = await pool.query<{ id: string; position: string; faulty: boolean }>(
      `SELECT id, ${at}::text AS position, ${isFaulty} AS faulty FROM ${table}
       WHERE (${at}, id) > ($1, $2) ORDER BY ${at}, id LIMIT ${PAGE}`,
      [last?.position ?? since, last?.id ?? firstId],
    );
    count += rows.filter(({ faulty }) => faulty).length;
    last = rows.at(-1);
    if (last === undefined || rows.length < PAGE) return count;
  }
}

function movementOf({ at, kind, account, currency, amount, payment_id }: MovementRow): Movement {
  const provider = account.slice('provider:'.length);
  return { at, kind, provider, currency, amount: BigInt(amount), paymentId: payment_id };
}
