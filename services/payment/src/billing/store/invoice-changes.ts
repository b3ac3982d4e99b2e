import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { totalsOf } from '../../domain/invoices.ts';
import type { NewCreditNote } from '../domain/credit-notes.ts';
import { amountDue, type Invoice, type InvoiceChange, type Issue } from '../domain/invoices.ts';
import { findInvoice, NUMBER, TAKE_NUMBER, writeIssue } from './invoice-rows.ts';
import type { InvoiceSealer } from './sealed-invoices.ts';

export interface InvoiceChangeDeps {
  readonly sealer: InvoiceSealer;
  readonly clock: Clock;
  readonly recordEvents: RecordEvents;
}

interface InvoiceDecision {
  /** Whose row the transaction has. */
  readonly invoice: Invoice;
  readonly change: InvoiceChange;
}

/** Writes what was decided of an invoice, and tells of it. */
export async function changeInvoice(
  client: PoolClient,
  deps: InvoiceChangeDeps,
  { invoice, change }: InvoiceDecision,
): Promise<void> {
  switch (change.kind) {
    case 'issue':
      return issueInvoice(client, deps, { invoice, issue: change.issue });
    case 'void':
      await client.query(`UPDATE invoices SET state = 'void', voided_at = $2, updated_at = now() WHERE id = $1`, [
        invoice.id,
        deps.clock.now(),
      ]);
      return tell(client, deps, { id: invoice.id, type: 'invoice.voided' });
    case 'stays':
  }
}

/** Issues a draft; one of which nothing is due is paid. */
async function issueInvoice(
  client: PoolClient,
  deps: InvoiceChangeDeps,
  { invoice, issue }: { readonly invoice: Invoice; readonly issue: Issue },
): Promise<void> {
  await writeIssue(client, deps.sealer, { invoice, issue });
  await tell(client, deps, { id: invoice.id, type: 'invoice.finalized' });
  if (amountDue(invoice) === 0n) await markPaid(client, deps, invoice.id);
}

/** An open invoice of which nothing is due any more. */
async function markPaid(client: PoolClient, deps: InvoiceChangeDeps, id: string): Promise<void> {
  const { rowCount } = await client.query(
    `UPDATE invoices SET state = 'paid', paid_at = $2, updated_at = now()
     WHERE id = $1 AND state IN ('open', 'uncollectible')`,
    [id, deps.clock.now()],
  );
  if (rowCount === 1) await tell(client, deps, { id, type: 'invoice.paid' });
}

/** Issues a credit note for an invoice whose row the transaction has. */
export async function issueCreditNote(
  client: PoolClient,
  deps: InvoiceChangeDeps,
  { invoice, note }: { readonly invoice: Invoice; readonly note: NewCreditNote & { readonly series: string } },
): Promise<void> {
  const { net, tax, gross } = totalsOf(note.lines);
  const credited = { ...invoice, credited: invoice.credited + gross };
  await client.query('UPDATE invoices SET credited = $2, updated_at = now() WHERE id = $1', [
    invoice.id,
    credited.credited,
  ]);
  await client.query(
    `WITH taken AS (${TAKE_NUMBER})
     INSERT INTO credit_notes (id, invoice_id, subject, series, sequence, number, currency, net, tax, gross, sealed,
       issued_on, created_at)
     SELECT $2::uuid, $3::uuid, $4, $1, taken.last, ${NUMBER}, $5, $6::bigint, $7::bigint, $8::bigint, $9::bytea,
       $10::date, $11::timestamptz FROM taken`,
    [
      note.series,
      note.id,
      invoice.id,
      invoice.subject,
      invoice.currency,
      net,
      tax,
      gross,
      deps.sealer.seal(note.id, { lines: note.lines, reason: note.reason }),
      note.issuedOn.toString(),
      note.issuedAt.toString(),
    ],
  );
  await tell(client, deps, { id: invoice.id, type: 'invoice.credited' });
  if (invoice.state === 'open' && amountDue(credited) === 0n) await markPaid(client, deps, invoice.id);
}

interface InvoiceEvent {
  readonly id: string;
  readonly type: `invoice.${'finalized' | 'paid' | 'voided' | 'credited'}`;
}

async function tell(client: PoolClient, deps: InvoiceChangeDeps, { id, type }: InvoiceEvent): Promise<void> {
  const invoice = await findInvoice(client, deps.sealer, { id, owner: undefined });
  if (invoice === undefined) return;
  const { subject, state, customerId, subscription, currency, lines, issued } = invoice;
  const data = {
    id,
    number: issued?.number ?? null,
    status: state,
    customerId,
    subscriptionId: subscription?.id ?? null,
    currency,
    total: Number(totalsOf(lines).gross),
    amountDue: Number(amountDue(invoice)),
  };
  await deps.recordEvents(client, [{ subject, type, resourceId: id, data }]);
}
