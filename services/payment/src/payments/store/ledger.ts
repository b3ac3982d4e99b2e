import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { LedgerEntry } from '../../domain/ledger.ts';

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
