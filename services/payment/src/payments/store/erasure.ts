import { randomBytes } from 'node:crypto';
import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { PAYMENT_COLUMNS, type PaymentRow, pageTokenHash, paymentOf, sealedPersonal } from './payment-rows.ts';
import { sealedText } from './refunds.ts';

/** So many rows are read and written by one statement. */
const BATCH = 500;

/** A payment, as far as it may keep its customer from being erased. */
interface LockedPayment {
  readonly id: string;
  /** Whether it, or a refund of it, may still change by what others do. */
  readonly isOpen: boolean;
}

/** Locks what a customer has paid until the transaction ends: payments come before all else (docs/decisions/0356). */
export function lockPaymentsOf(client: PoolClient, customerId: string): Promise<readonly LockedPayment[]> {
  return lockPayments(client, 'customer_id = $1', [customerId]);
}

/** Locks payments until the transaction ends. @param where a condition of SQL on their table. */
export async function lockPayments(
  client: PoolClient,
  where: string,
  parameters: readonly unknown[],
): Promise<readonly LockedPayment[]> {
  const { rows } = await client.query<LockedPayment>(
    `SELECT id, state IN ('pending', 'processing', 'needs_review', 'disputed') OR EXISTS (
       SELECT FROM refunds WHERE payment_id = payments.id AND refunds.state IN ('pending', 'processing', 'needs_review')
     ) AS "isOpen" FROM payments WHERE ${where} ORDER BY id FOR UPDATE`,
    [...parameters],
  );
  return rows;
}

/** Leaves nothing of the payer in payments whose rows the transaction has. Amounts and references stay. */
export async function erasePayers(client: PoolClient, vault: Vault, ids: readonly string[]): Promise<void> {
  for (let from = 0; from < ids.length; from += BATCH) {
    const some = ids.slice(from, from + BATCH);
    await blankPayments(client, vault, some);
    await blankRefunds(client, vault, some);
    await client.query('DELETE FROM payment_notes WHERE payment_id = ANY($1)', [some]);
    await client.query('UPDATE notifications SET sealed = NULL WHERE payment_id = ANY($1)', [some]);
  }
}

async function blankPayments(client: PoolClient, vault: Vault, ids: readonly string[]): Promise<void> {
  const { rows } = await client.query<PaymentRow>(`SELECT ${PAYMENT_COLUMNS} FROM payments WHERE id = ANY($1)`, [ids]);
  const blank = rows.map((row) => {
    const { id, itemName } = paymentOf(vault, row);
    // The old address of its page is nobody's.
    const pageToken = randomBytes(32).toString('base64url');
    const sealed = sealedPersonal(vault, id, { customerEmail: '', itemName, metadata: {}, pageToken });
    return { id, sealed, hash: pageTokenHash(pageToken) };
  });
  await client.query(
    `UPDATE payments SET sealed = blank.sealed, email_index = NULL, method_index = NULL, page_token_hash = blank.hash,
       erased_at = now()
     FROM unnest($1::uuid[], $2::bytea[], $3::bytea[]) AS blank (id, sealed, hash) WHERE payments.id = blank.id`,
    [blank.map(({ id }) => id), blank.map(({ sealed }) => sealed), blank.map(({ hash }) => hash)],
  );
}

async function blankRefunds(client: PoolClient, vault: Vault, paymentIds: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ id: string }>('SELECT id FROM refunds WHERE payment_id = ANY($1)', [
    paymentIds,
  ]);
  await client.query(
    `UPDATE refunds SET sealed = blank.sealed FROM unnest($1::uuid[], $2::bytea[]) AS blank (id, sealed)
     WHERE refunds.id = blank.id`,
    [rows.map(({ id }) => id), rows.map(({ id }) => sealedText(vault, id, { reason: '' }))],
  );
}

/**
 * Drops the bytes of notifications that an older version ended: whom they were about is not told. Some
 * at a time, each of them for good.
 */
export async function dropUnnamedNotifications(pool: Pool): Promise<void> {
  for (let dropped = BATCH; dropped === BATCH; ) {
    const { rowCount } = await pool.query(
      `UPDATE notifications SET sealed = NULL WHERE id IN (
         SELECT id FROM notifications WHERE state = 'done' AND payment_id IS NULL AND sealed IS NOT NULL
         LIMIT ${BATCH} FOR UPDATE SKIP LOCKED)`,
    );
    dropped = rowCount ?? 0;
  }
}
