import type { Clock } from '@rollcall/platform/clock.ts';
import { createDueWork, type DueWork, takeDueRows } from '@rollcall/platform/postgres/due-work.ts';
import type { Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { backoffMs } from '@rollcall/platform/retry.ts';
import type { CustomerStore } from '../domain/customers.ts';
import type { InvoiceStore } from '../domain/invoices.ts';
import type { Communication, MailOutcome } from './communication.ts';
import { type QueuedMail, variablesOf } from './mail-texts.ts';

const CONCURRENCY = 8;
/** Longer than a token and a mail take. */
const LEASE_SECONDS = 60;
const BACKOFF = { baseMs: 10_000, maxMs: 3_600_000 };
/** Then nobody waits for the mail any more. */
const GIVE_UP_AFTER_MS = 3 * 86_400_000;
const KEPT_DAYS = 90;

interface MailRow {
  readonly id: string;
  readonly kind: QueuedMail['kind'];
  readonly invoice_id: string;
  readonly reason: string | null;
  readonly retry_on: string | null;
  readonly attempts: number;
  readonly created_at: Date;
}

export interface MailWorkDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
  readonly customers: CustomerStore;
  readonly invoices: InvoiceStore;
  readonly communication: Communication;
  /** Where the customer of an invoice sees and pays it. */
  readonly invoiceUrl: (invoiceId: string) => string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Hands mails over to communication until it has taken or refused them. */
export function createMailWork(deps: MailWorkDeps): DueWork {
  const { pool, log } = deps;
  const columns = 'id, kind, invoice_id, reason, retry_on::text, attempts, created_at';
  return createDueWork<MailRow>({
    name: 'billing mails',
    take: (limit) =>
      takeDueRows<MailRow>({ pool: pool(), table: 'billing_mails', columns, leaseSeconds: LEASE_SECONDS, limit }),
    work: async (row) => end(deps, row, await send(deps, row)),
    concurrency: CONCURRENCY,
    log,
  });
}

/** Forgets mails that are over. @returns how many. */
export async function pruneMails(pool: Pool, limit: number): Promise<number> {
  const { rowCount } = await pool.query(
    `DELETE FROM billing_mails WHERE id IN (
       SELECT id FROM billing_mails WHERE created_at < now() - make_interval(days => $1) AND due_at IS NULL
       ORDER BY created_at LIMIT $2 FOR UPDATE SKIP LOCKED)`,
    [KEPT_DAYS, limit],
  );
  return rowCount ?? 0;
}

async function send(deps: MailWorkDeps, row: MailRow): Promise<MailOutcome> {
  const invoice = await deps.invoices.find(row.invoice_id, undefined);
  const customer = invoice && (await deps.customers.find(invoice.customerId, undefined));
  if (invoice === undefined || customer === undefined) throw new Error('What a mail is about is gone');
  // Nobody is there to be told.
  if (customer.erasedAt !== undefined) return { outcome: 'accepted' };
  const retryOn = row.retry_on === null ? undefined : Temporal.PlainDate.from(row.retry_on);
  const mail = { kind: row.kind, reason: row.reason ?? undefined, retryOn };
  const variables = variablesOf({ mail, invoice, customer, url: deps.invoiceUrl(invoice.id) });
  if (variables === undefined) return { outcome: 'accepted' };
  const { email: to, locale } = customer;
  return deps.communication.send({ id: row.id, to, template: row.kind, locale, variables });
}

async function end({ pool, clock, log }: MailWorkDeps, row: MailRow, result: MailOutcome): Promise<void> {
  const { id, kind, attempts, created_at: createdAt } = row;
  const isLate = clock.now().getTime() - createdAt.getTime() > GIVE_UP_AFTER_MS;
  const isOver = result.outcome !== 'failed' || isLate;
  const state = result.outcome === 'accepted' ? 'sent' : isOver ? 'failed' : 'pending';
  if (result.outcome !== 'accepted')
    log.warn({ mail: id, kind, status: result.status, attempts, isOver }, 'communication has not taken a mail');
  await pool().query(
    `UPDATE billing_mails SET state = $2, attempts = attempts + 1,
       due_at = CASE WHEN $3 THEN NULL ELSE now() + make_interval(secs => $4) END
     WHERE id = $1 AND state = 'pending'`,
    [id, state, isOver, backoffMs(attempts, BACKOFF) / 1000],
  );
}
