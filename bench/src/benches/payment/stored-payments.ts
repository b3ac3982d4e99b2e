import { randomUUID } from 'node:crypto';
import { createBlindIndex, createVault } from '@rollcall/platform/vault.ts';
import type { Paying } from './paying.ts';

/** Who has three quarters of all payments; the rest is of a thousand others. */
export const LARGE_SUBJECT = 'large';
export const SMALL_SUBJECT = 'small-1';
/** So many people paid. */
export const PAYERS = 50_000;
const BATCH = 10_000;

export function payerOf(number: number): string {
  return `payer-${String(number % PAYERS).padStart(5, '0')}@example.com`;
}

/** Fills the table with payments of the last year that are over. The vault seals each for its id. */
export async function storePayments({ tables, keys }: Paying, count: number): Promise<void> {
  const vault = createVault(keys);
  const index = createBlindIndex(keys, 'payer email');
  const indexes = Array.from({ length: PAYERS }, (_, number) => index.of(payerOf(number)));
  for (let first = 0; first < count; first += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - first) }, (_, each) => first + each);
    const ids = numbers.map(() => randomUUID());
    const sealed = numbers.map((number, place) => {
      const metadata = { order: String(number) };
      const personal = { customerEmail: payerOf(number), itemName: 'Tea', metadata, pageToken: String(number) };
      return vault.seal(JSON.stringify(personal), `payment ${ids[place]}`);
    });
    const emails = numbers.map((number) => indexes[number % PAYERS]);
    await tables.query(STORE, [numbers, ids, emails, sealed, count]);
  }
  await tables.query('VACUUM ANALYZE payments');
}

const STORE = `
  INSERT INTO payments (id, subject, provider, purpose, amount, currency, state, captured, refunded, sealed, email_index,
    page_token_hash, checkout_ref, charge_ref, called_at, expires_at, created_at, updated_at)
  SELECT id, CASE WHEN n % 4 = 0 THEN 'small-' || n / 4 % 1000 ELSE '${LARGE_SUBJECT}' END,
    CASE WHEN n % 10 < 6 THEN 'payfast' WHEN n % 10 < 9 THEN 'yoco' ELSE 'stripe' END, 'pay', 14950, 'ZAR', state,
    CASE WHEN state IN ('succeeded', 'refunded', 'disputed') THEN 14950 ELSE 0 END,
    CASE WHEN state = 'refunded' THEN 14950 ELSE 0 END, sealed, email, uuid_send(id), 'checkout-' || n, 'charge-' || n,
    made, made + interval '1 day', made, made
  FROM unnest($1::int[], $2::uuid[], $3::bytea[], $4::bytea[]) AS stored (n, id, email, sealed),
    LATERAL (SELECT now() - (n + 1) * (interval '1 year' / $5::int) AS made,
      CASE WHEN n % 1009 < 2 THEN 'disputed' WHEN n % 1009 < 5 THEN 'needs_review' WHEN n % 1009 < 30 THEN 'refunded'
        WHEN n % 1009 < 150 THEN 'failed' WHEN n % 1009 < 300 THEN 'expired' ELSE 'succeeded' END AS state) AS more`;
