import { randomUUID } from 'node:crypto';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';

/** A mail about an invoice, as it is put into the queue. */
interface NewMail {
  readonly kind: 'invoice' | 'receipt' | 'payment-failed';
  readonly invoiceId: string;
  /** One mail for each: the attempt, or the reminder; 0 for what happens once. */
  readonly occasion: number;
  /** Why a payment failed: a word for programs. */
  readonly reason?: string | undefined;
  /** When it is tried again. */
  readonly retryOn?: Temporal.PlainDate | undefined;
}

/** Puts a mail into the queue, in the transaction of what it tells. */
export type QueueMail = (client: PoolClient, mail: NewMail) => Promise<void>;

export const queueMail: QueueMail = async (client, { kind, invoiceId, occasion, reason, retryOn }) => {
  await client.query(
    `INSERT INTO billing_mails (id, kind, invoice_id, occasion, reason, retry_on) VALUES ($1, $2, $3, $4, $5, $6)
     ON CONFLICT (invoice_id, kind, occasion) DO NOTHING`,
    [randomUUID(), kind, invoiceId, occasion, reason, retryOn?.toString()],
  );
};
