import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import { paymentError } from '../../domain/errors.ts';
import type { PaymentState } from '../../domain/payment-states.ts';
import { type PaymentChange, planChange } from '../domain/changes.ts';
import { dueAt } from '../domain/due.ts';
import type { Payment, PaymentHistoryEntry, PaymentStore } from '../domain/payments.ts';
import { lockPayment } from './locked-payment.ts';
import { matchPayment } from './match.ts';
import { insertPayment } from './new-payments.ts';
import {
  foldedEmail,
  noteContext,
  PAYMENT_COLUMNS,
  type PaymentRow,
  pageTokenHash,
  paymentOf,
} from './payment-rows.ts';
import { type PaymentTableDeps, writeChange } from './write-payment.ts';

type HistoryRow = Omit<PaymentHistoryEntry, 'note'> & {
  readonly payment_id: string;
  readonly note_id: string | null;
  readonly sealed: Buffer | null;
};

export function createPaymentTable(deps: PaymentTableDeps): PaymentStore {
  const { pool, vault, emails, clock } = deps;
  const read = async (where: string, parameters: readonly unknown[]): Promise<Payment | undefined> => {
    const { rows } = await pool().query<PaymentRow>(`SELECT ${PAYMENT_COLUMNS} FROM payments WHERE ${where}`, [
      ...parameters,
    ]);
    return rows.map((row) => paymentOf(vault, row))[0];
  };

  return {
    async create(terms, expiresAt) {
      const payment = (await insertPayment(deps, terms, expiresAt)) ?? (await read('id = $1', [terms.id]));
      if (payment === undefined) throw new Error('The payment that was made is gone');
      return payment;
    },
    find: (id, owner) => read('id = $1 AND ($2::text IS NULL OR subject = $2)', [id, owner]),
    findByPageToken: (token) => read('page_token_hash = $1', [pageTokenHash(token)]),
    async list({ owner, status, provider, customerEmail, customerId, invoiceId, page }) {
      const { rows, ...rest } = await readNewest<PaymentRow>(pool(), {
        table: 'payments',
        columns: PAYMENT_COLUMNS,
        where: `($1::text IS NULL OR subject = $1) AND ($2::text IS NULL OR state = $2)
          AND ($3::text IS NULL OR provider = $3) AND ($4::bytea[] IS NULL OR email_index = ANY($4))
          AND ($5::uuid IS NULL OR customer_id = $5) AND ($6::uuid IS NULL OR invoice_id = $6)`,
        parameters: [
          owner,
          status,
          provider,
          customerEmail === undefined ? undefined : emails.candidates(foldedEmail(customerEmail)),
          customerId,
          invoiceId,
        ],
        page,
      });
      return { rows: rows.map((row) => paymentOf(vault, row)), ...rest };
    },
    async histories(ids) {
      const { rows } = await pool().query<HistoryRow>(
        `SELECT payment_events.payment_id, created_at AS at, event, source, from_state AS "from", to_state AS "to", reason, actor,
           payment_notes.id AS note_id, sealed
         FROM payment_events LEFT JOIN payment_notes ON event_id = payment_events.id
         WHERE payment_events.payment_id = ANY($1) ORDER BY payment_events.id`,
        [ids],
      );
      const entryOf = ({ payment_id: _id, note_id: noteId, sealed, ...entry }: HistoryRow): PaymentHistoryEntry => {
        const note = noteId === null || sealed === null ? null : vault.open(sealed, noteContext(noteId)).toString();
        return { ...entry, note };
      };
      const byPayment = Map.groupBy(rows, (row) => row.payment_id);
      return new Map([...byPayment].map(([id, each]) => [id, each.map(entryOf)]));
    },
    ...callMarks(pool),
    ...ofCustomers(deps),
    change: (id, decide) =>
      inTransaction(pool(), async (client) => {
        const snapshot = await lockPayment(client, vault, id);
        if (snapshot === undefined) throw new Error('The payment is gone');
        const change = decide(snapshot);
        if (change === undefined) return snapshot.payment;
        const planned = planChange(snapshot, change, deps.lateCapture);
        if (planned === undefined) throw refusedChange(change, snapshot.payment.state);
        return writeChange(deps, client, { told: change, planned });
      }),
    match: (provider, reference) => matchPayment(pool(), deps.methods, { provider, reference }),
    async lookedUp(id, retryAfterMs = 0) {
      await pool().query(
        'UPDATE payments SET look_ups = look_ups + 1, last_look_up_at = now(), is_hurried = false WHERE id = $1',
        [id],
      );
      const payment = await read('id = $1', [id]);
      if (payment === undefined) return;
      // Of a payment that moved meanwhile nothing is due.
      await pool().query(
        `UPDATE payments SET due_at = CASE WHEN $2::timestamptz IS NULL THEN NULL
           ELSE GREATEST($2, now() + make_interval(secs => $4)) END WHERE id = $1 AND state = $3`,
        [id, dueAt(payment, clock.now()), payment.state, retryAfterMs / 1000],
      );
    },
  };
}

/** In review a decision is refused for the money alone, whatever the state allows. */
function refusedChange({ event }: PaymentChange, status: PaymentState): Error {
  const isForMoney = status === 'needs_review' && event !== 'cancel';
  const message = isForMoney ? 'What is booked of the payment does not go with that outcome' : undefined;
  return paymentError('CONFLICT', { ...(message !== undefined && { message }), details: { status } });
}

const BEGIN_CALL = {
  name: 'begin call',
  text: `UPDATE payments SET called_at = now(), due_at = now() + interval '1 minute', updated_at = now()
    WHERE id = $1 AND called_at IS NULL AND state = 'pending'`,
};

/** Guarded updates of one statement each. */
function callMarks(pool: () => Pool): Pick<PaymentStore, 'beginCall' | 'withdrawCall' | 'hurry'> {
  return {
    async beginCall(id) {
      const { rowCount } = await pool().query({ ...BEGIN_CALL, values: [id] });
      return rowCount === 1;
    },
    async withdrawCall(id, againMs) {
      await pool().query(
        `UPDATE payments SET called_at = NULL, updated_at = now(),
           due_at = CASE WHEN $2::float8 IS NULL THEN expires_at ELSE now() + make_interval(secs => $2) END
         WHERE id = $1 AND state = 'pending' AND checkout_ref IS NULL`,
        [id, againMs === undefined ? undefined : againMs / 1000],
      );
    },
    async hurry(id) {
      const { rowCount } = await pool().query(
        `UPDATE payments SET due_at = now(), is_hurried = true
         WHERE id = $1 AND state IN ('pending', 'processing') AND checkout_ref IS NOT NULL
           AND (last_look_up_at IS NULL OR last_look_up_at < now() - interval '10 seconds')`,
        [id],
      );
      return rowCount === 1;
    },
  };
}

/** Of many customers at once. */
function ofCustomers({ pool, vault }: PaymentTableDeps): Pick<PaymentStore, 'newestOf'> {
  return {
    async newestOf(customerIds, owner, limit) {
      const { rows } = await pool().query<PaymentRow & { readonly customer_id: string }>(
        `SELECT newest.* FROM unnest($1::uuid[]) AS customer (id) CROSS JOIN LATERAL (
           SELECT ${PAYMENT_COLUMNS} FROM payments
           WHERE customer_id = customer.id AND ($2::text IS NULL OR subject = $2)
           ORDER BY created_at DESC, id DESC LIMIT $3
         ) AS newest ORDER BY created_at DESC, id DESC`,
        [customerIds, owner, limit],
      );
      const byCustomer = Map.groupBy(rows, (row) => row.customer_id);
      return new Map([...byCustomer].map(([id, each]) => [id, each.map((row) => paymentOf(vault, row))]));
    },
  };
}
