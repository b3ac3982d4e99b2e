import { forgetOutcomes } from '@rollcall/platform/postgres/idempotency.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { paymentError } from '../../domain/errors.ts';
import type { ErasePayer } from '../domain/payers.ts';
import { dropUnnamedNotifications, erasePayers, lockPayments } from './erasure.ts';
import { foldedEmail, type PaymentSealing } from './payment-rows.ts';

/** So many of a kind are named. */
const NAMED = 10;

interface PayerErasureDeps extends Pick<PaymentSealing, 'vault' | 'emails'> {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
}

/** See {@link ErasePayer}. */
export function createPayerErasure({ pool, vault, emails }: PayerErasureDeps): ErasePayer {
  return async ({ email, subject }) => {
    const parameters = [emails.candidates(foldedEmail(email)), subject];
    const isTheirs = 'email_index = ANY($1) AND ($2::text IS NULL OR subject = $2)';
    const ids = await inTransaction(pool(), async (client) => {
      const payments = await lockPayments(client, `${isTheirs} AND customer_id IS NULL`, parameters);
      const open = payments.flatMap(({ id, isOpen }) => (isOpen ? [id] : [])).slice(0, NAMED);
      if (open.length > 0) throw paymentError('CUSTOMER_IN_USE', { details: { open: { payments: open } } });
      const all = payments.map(({ id }) => id);
      await erasePayers(client, vault, all);
      // Nothing finds them by the address afterwards, so that it is done once here, and again below.
      await forgetOutcomes(client, all);
      return all;
    });
    await forgetOutcomes(pool(), ids);
    await dropUnnamedNotifications(pool());
    const { rows } = await pool().query<{ id: string }>(
      `SELECT DISTINCT customer_id AS id FROM payments WHERE ${isTheirs} AND customer_id IS NOT NULL
       ORDER BY id LIMIT ${NAMED}`,
      parameters,
    );
    return { payments: ids.length, customers: rows.map(({ id }) => id) };
  };
}
