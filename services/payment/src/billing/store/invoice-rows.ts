import type { Pool, PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { InvoiceState } from '../../domain/invoice-states.ts';
import { type TaxBehavior, totalsOf } from '../../domain/invoices.ts';
import type { Owner } from '../../domain/owner.ts';
import type { CreditNote } from '../domain/credit-notes.ts';
import type { Invoice, Issue, Issued, NewInvoice } from '../domain/invoices.ts';
import type { InvoiceSealer } from './sealed-invoices.ts';

/** Of `invoices`, with dates as text: `Date` would move them to another time zone. */
export interface InvoiceRow {
  readonly id: string;
  readonly subject: string;
  readonly customer_id: string;
  readonly subscription_id: string | null;
  readonly period_start: string | null;
  readonly period_end: string | null;
  readonly state: InvoiceState;
  readonly number: string | null;
  readonly currency: string;
  readonly tax_behavior: TaxBehavior;
  readonly days_until_due: number;
  readonly from_credit: string;
  readonly sealed: Buffer;
  readonly issued_on: string | null;
  readonly due_on: string | null;
  readonly finalized_at: Date | null;
  readonly created_at: Date;
  readonly credited: string;
  readonly payment_id: string | null;
  readonly paid_at: Date | null;
  readonly voided_at: Date | null;
  readonly surplus: readonly { readonly paymentId: string; readonly amount: string }[];
}

/** SQL: what payments have brought beside what was owed, and has not gone back. */
const SURPLUS = `ARRAY(
  SELECT jsonb_build_object('paymentId', id, 'amount', surplus::text)
  FROM (SELECT id, created_at, captured - refunded
      - CASE WHEN id = invoices.payment_id AND invoices.state = 'paid' THEN amount ELSE 0 END AS surplus
    FROM payments WHERE invoice_id = invoices.id) received
  WHERE surplus > 0 ORDER BY created_at, id) AS surplus`;

export const INVOICE_COLUMNS = `id, subject, customer_id, subscription_id, period_start::text, period_end::text, state,
  number, currency, tax_behavior, days_until_due, from_credit, sealed, issued_on::text, due_on::text, finalized_at,
  created_at, credited, payment_id, paid_at, voided_at, ${SURPLUS}`;

/** Reads invoices with their credit notes. */
export async function invoicesOf(
  client: Pool | PoolClient,
  sealer: InvoiceSealer,
  rows: readonly InvoiceRow[],
): Promise<readonly Invoice[]> {
  const ids = rows.map(({ id }) => id);
  const { rows: notes } = await client.query<CreditNoteRow>(
    `SELECT id, invoice_id, number, sealed, issued_on::text, created_at FROM credit_notes
     WHERE invoice_id = ANY($1) ORDER BY created_at, sequence`,
    [ids],
  );
  const byInvoice = Map.groupBy(notes, (note) => note.invoice_id);
  return rows.map((row) =>
    invoiceOf(
      row,
      sealer,
      (byInvoice.get(row.id) ?? []).map((note) => noteOf(note, sealer)),
    ),
  );
}

/** Reads one; in a transaction nobody else changes it until its end. */
export async function findInvoice(
  client: Pool | PoolClient,
  sealer: InvoiceSealer,
  { id, owner, isLocked = false }: { readonly id: string; readonly owner: Owner; readonly isLocked?: boolean },
): Promise<Invoice | undefined> {
  const { rows } = await client.query<InvoiceRow>(
    `SELECT ${INVOICE_COLUMNS} FROM invoices WHERE id = $1 AND ($2::text IS NULL OR subject = $2)
     ${isLocked ? 'FOR UPDATE' : ''}`,
    [id, owner],
  );
  const [invoice] = await invoicesOf(client, sealer, rows);
  return invoice;
}

/** Writes a draft. @returns whether there was none with its id. */
export async function insertDraft(
  client: Pool | PoolClient,
  sealer: InvoiceSealer,
  invoice: NewInvoice & { readonly createdAt: Date },
): Promise<boolean> {
  const { id, subject, customerId, subscription, currency, taxBehavior, daysUntilDue, lines, metadata, fromCredit } =
    invoice;
  const { net, tax, gross } = totalsOf(lines);
  const { rowCount } = await client.query(
    `INSERT INTO invoices (id, subject, customer_id, subscription_id, period_start, period_end, state, currency,
       tax_behavior, days_until_due, net, tax, gross, from_credit, sealed, created_at)
     VALUES ($1, $2, $3, $4, $5, $6, 'draft', $7, $8, $9, $10, $11, $12, $13, $14, $15)
     ON CONFLICT (id) DO NOTHING`,
    [
      id,
      subject,
      customerId,
      subscription?.id,
      subscription?.start.toString(),
      subscription?.end.toString(),
      currency,
      taxBehavior,
      daysUntilDue,
      net,
      tax,
      gross,
      fromCredit,
      sealer.seal(id, { lines, metadata: Object.entries(metadata) }),
      invoice.createdAt,
    ],
  );
  return rowCount === 1;
}

/**
 * Issues a draft whose row the transaction has. Its number is taken with the last statement, so that
 * others wait for it as short as can be. @returns its number.
 */
export async function writeIssue(
  client: PoolClient,
  sealer: InvoiceSealer,
  { invoice, issue }: Issuing,
): Promise<string> {
  const { title, supplier, recipient, series } = issue;
  const { rows } = await client.query<{ number: string }>(
    `WITH taken AS (${TAKE_NUMBER})
     UPDATE invoices SET state = 'open', series = $1, sequence = taken.last, number = ${NUMBER}, sealed = $3,
       issued_on = $4, due_on = $5, finalized_at = $6, updated_at = now()
     FROM taken WHERE id = $2 AND state = 'draft' RETURNING number`,
    [
      series,
      invoice.id,
      sealer.seal(invoice.id, {
        lines: invoice.lines,
        metadata: Object.entries(invoice.metadata),
        parties: { title, supplier, recipient },
      }),
      issue.issuedOn.toString(),
      issue.dueOn.toString(),
      issue.issuedAt.toString(),
    ],
  );
  const [row] = rows;
  if (row === undefined) throw new Error('The draft that was to be issued is none');
  return row.number;
}

interface Issuing {
  readonly invoice: Pick<Invoice, 'id' | 'lines' | 'metadata'>;
  readonly issue: Issue;
}

/** SQL: the next number of the series `$1`, which is kept where the transaction is. */
export const TAKE_NUMBER = `INSERT INTO invoice_series (series, last) VALUES ($1, 1)
  ON CONFLICT (series) DO UPDATE SET last = invoice_series.last + 1 RETURNING last`;
/** SQL: how {@link TAKE_NUMBER} is written. */
export const NUMBER = `$1 || '-' || lpad(taken.last::text, greatest(6, length(taken.last::text)), '0')`;

interface CreditNoteRow {
  readonly id: string;
  readonly invoice_id: string;
  readonly number: string;
  readonly sealed: Buffer;
  readonly issued_on: string;
  readonly created_at: Date;
}

function noteOf(row: CreditNoteRow, sealer: InvoiceSealer): CreditNote {
  return {
    id: row.id,
    number: row.number,
    ...sealer.openCreditNote(row.id, row.sealed),
    issuedAt: instantOf(row.created_at),
    issuedOn: Temporal.PlainDate.from(row.issued_on),
  };
}

function invoiceOf(row: InvoiceRow, sealer: InvoiceSealer, creditNotes: readonly CreditNote[]): Invoice {
  const content = sealer.openInvoice(row.id, row.sealed);
  return {
    id: row.id,
    subject: row.subject,
    customerId: row.customer_id,
    subscription: periodOf(row),
    state: row.state,
    currency: row.currency,
    taxBehavior: row.tax_behavior,
    daysUntilDue: row.days_until_due,
    lines: content.lines,
    metadata: Object.fromEntries(content.metadata ?? []),
    fromCredit: BigInt(row.from_credit),
    credited: BigInt(row.credited),
    issued: issuedOf(row, content.parties),
    paymentId: row.payment_id ?? undefined,
    createdAt: row.created_at,
    paidAt: row.paid_at ?? undefined,
    voidedAt: row.voided_at ?? undefined,
    surplus: row.surplus.map(({ paymentId, amount }) => ({ paymentId, amount: BigInt(amount) })),
    creditNotes,
  };
}

function periodOf({ subscription_id: id, period_start: start, period_end: end }: InvoiceRow): Invoice['subscription'] {
  if (id === null || start === null || end === null) return undefined;
  return { id, start: Temporal.PlainDate.from(start), end: Temporal.PlainDate.from(end) };
}

type Parties = Pick<Issued, 'title' | 'supplier' | 'recipient'>;

function issuedOf(row: InvoiceRow, parties: Parties | undefined): Issued | undefined {
  const { number, finalized_at: issuedAt, issued_on: issuedOn, due_on: dueOn } = row;
  if (parties === undefined || number === null || issuedAt === null || issuedOn === null || dueOn === null) {
    return undefined;
  }
  return {
    ...parties,
    number,
    issuedAt: instantOf(issuedAt),
    issuedOn: Temporal.PlainDate.from(issuedOn),
    dueOn: Temporal.PlainDate.from(dueOn),
  };
}

/** An instant of the database. */
export function instantOf(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}
