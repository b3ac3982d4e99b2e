import { randomBytes } from 'node:crypto';
import { forgetOutcomes } from '@rollcall/platform/postgres/idempotency.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { PAYMENT_COLUMNS, type PaymentRow, pageTokenHash, paymentOf, sealedPersonal } from './payment-rows.ts';
import { sealedText } from './refunds.ts';

/** A payment, as far as it may keep its customer from being erased. */
interface LockedPayment {
  readonly id: string;
  /** Whether it, or a refund of it, may still change by what others do. */
  readonly isOpen: boolean;
}

/** Locks what a customer has paid until the transaction ends: payments come before all else (docs/decisions/0356). */
export async function lockPaymentsOf(client: PoolClient, customerId: string): Promise<readonly LockedPayment[]> {
  const { rows } = await client.query<LockedPayment>(
    `SELECT id, state IN ('pending', 'processing', 'needs_review', 'disputed') OR EXISTS (
       SELECT FROM refunds WHERE payment_id = payments.id AND refunds.state IN ('pending', 'processing', 'needs_review')
     ) AS "isOpen" FROM payments WHERE customer_id = $1 ORDER BY id FOR UPDATE`,
    [customerId],
  );
  return rows;
}

/** Leaves nothing of the payer in payments whose rows the transaction has. Amounts and references stay. */
export async function erasePayers(client: PoolClient, vault: Vault, ids: readonly string[]): Promise<void> {
  const { rows } = await client.query<PaymentRow>(`SELECT ${PAYMENT_COLUMNS} FROM payments WHERE id = ANY($1)`, [ids]);
  for (const row of rows) {
    const { id, itemName } = paymentOf(vault, row);
    // The old address of its page is nobody's.
    const pageToken = randomBytes(32).toString('base64url');
    const sealed = sealedPersonal(vault, id, { customerEmail: '', itemName, metadata: {}, pageToken });
    await client.query(
      `UPDATE payments SET sealed = $2, email_index = NULL, method_index = NULL, page_token_hash = $3, erased_at = now()
       WHERE id = $1`,
      [id, sealed, pageTokenHash(pageToken)],
    );
  }
  const { rows: refunds } = await client.query<{ id: string }>('SELECT id FROM refunds WHERE payment_id = ANY($1)', [
    ids,
  ]);
  for (const { id } of refunds)
    await client.query('UPDATE refunds SET sealed = $2 WHERE id = $1', [id, sealedText(vault, id, { reason: '' })]);
  await client.query('DELETE FROM payment_notes WHERE payment_id = ANY($1)', [ids]);
  await client.query('UPDATE notifications SET sealed = NULL WHERE payment_id = ANY($1)', [ids]);
  await forgetOutcomes(client, ids);
}
