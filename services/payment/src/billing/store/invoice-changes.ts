import type { Clock } from '@rollcall/platform/clock.ts';
import type { RecordEvents } from '@rollcall/platform/events/events.ts';
import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import type { Vault } from '@rollcall/platform/vault.ts';
import { totalsOf } from '../../domain/invoices.ts';
import { type InvoiceEntryKind, invoiceEntry } from '../../domain/ledger.ts';
import { closeInvoice } from '../../domain/subscription-changes.ts';
import { postEntries } from '../../ledger/store.ts';
import type { NewCreditNote } from '../domain/credit-notes.ts';
import { amountDue, amountOverpaid, type Invoice, type InvoiceChange, type Issue } from '../domain/invoices.ts';
import { findInvoice, instantOf, NUMBER, TAKE_NUMBER, writeIssue } from './invoice-rows.ts';
import type { QueueMail } from './mail-rows.ts';
import type { InvoiceSealer } from './sealed-invoices.ts';
import { tellOfChange } from './subscription-events.ts';
import { findSubscription, updateSubscription } from './subscription-rows.ts';

export interface InvoiceChangeDeps {
  readonly vault: Vault;
  readonly sealer: InvoiceSealer;
  readonly clock: Clock;
  readonly recordEvents: RecordEvents;
  readonly queueMail: QueueMail;
}

interface InvoiceDecision {
  /** Whose row the transaction has, and that of its subscription. */
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
      await issueInvoice(client, deps, { invoice, issue: change.issue });
      if (amountDue(invoice) > 0n)
        await deps.queueMail(client, { kind: 'invoice', invoiceId: invoice.id, occasion: 0 });
      return;
    case 'void':
      return writeVoid(client, deps, invoice);
    case 'stays':
  }
}

/** Issues a draft; one of which nothing is due is paid. */
export async function issueInvoice(
  client: PoolClient,
  deps: InvoiceChangeDeps,
  { invoice, issue }: { readonly invoice: Invoice; readonly issue: Issue },
): Promise<void> {
  await writeIssue(client, deps.sealer, { invoice, issue });
  await enter(client, invoice, { kind: 'invoice', id: invoice.id, lines: invoice.lines });
  await tell(client, deps, { id: invoice.id, type: 'invoice.finalized' });
  if (amountDue(invoice) === 0n) await markPaid(client, deps, invoice);
}

/** Takes an invoice back that is not paid. */
export async function writeVoid(client: PoolClient, deps: InvoiceChangeDeps, invoice: Invoice): Promise<void> {
  const { id, issued, lines } = invoice;
  await client.query(`UPDATE invoices SET state = 'void', voided_at = $2, updated_at = now() WHERE id = $1`, [
    id,
    deps.clock.now(),
  ]);
  if (issued !== undefined) await enter(client, invoice, { kind: 'invoice_void', id, lines });
  await tell(client, deps, { id, type: 'invoice.voided' });
  await closeAtSubscription(client, deps, invoice);
}

/** An open invoice of which nothing is due any more. */
export async function markPaid(client: PoolClient, deps: InvoiceChangeDeps, invoice: Invoice): Promise<void> {
  const { id, lines } = invoice;
  const { rowCount } = await client.query(
    `UPDATE invoices SET state = 'paid', paid_at = $2, updated_at = now() WHERE id = $1 AND state = 'open'`,
    [id, deps.clock.now()],
  );
  if (rowCount === 0) return;
  await tell(client, deps, { id, type: 'invoice.paid' });
  if (totalsOf(lines).gross > 0n) await deps.queueMail(client, { kind: 'receipt', invoiceId: id, occasion: 0 });
  await closeAtSubscription(client, deps, invoice);
}

/** Money has come for an invoice that is not owed it. */
export function tellOfSurplus(client: PoolClient, deps: InvoiceChangeDeps, { id }: Invoice): Promise<void> {
  return tell(client, deps, { id, type: 'invoice.overpaid' });
}

async function closeAtSubscription(client: PoolClient, deps: InvoiceChangeDeps, invoice: Invoice): Promise<void> {
  if (invoice.subscription === undefined) return;
  const { id } = invoice.subscription;
  const before = await findSubscription(client, deps.vault, { id, owner: undefined });
  if (before?.openInvoiceId !== invoice.id || before.subscription.open === undefined) return;
  const change = closeInvoice(before.subscription, before.subscription.open.key, instantOf(deps.clock.now()));
  if (change.kind !== 'changed') return;
  const after = { ...before, subscription: change.subscription };
  await updateSubscription(client, after);
  await tellOfChange(client, deps.recordEvents, { before, after });
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
  await enter(client, invoice, { kind: 'credit_note', id: note.id, lines: note.lines });
  await tell(client, deps, { id: invoice.id, type: 'invoice.credited' });
  if (invoice.state === 'open' && amountDue(credited) === 0n) await markPaid(client, deps, credited);
}

interface Entered {
  readonly kind: InvoiceEntryKind;
  readonly id: string;
  readonly lines: Invoice['lines'];
}

async function enter(client: PoolClient, { subject, currency }: Invoice, { kind, id, lines }: Entered): Promise<void> {
  await postEntries(client, { subject }, [invoiceEntry(kind, { causeId: id, currency, ...totalsOf(lines) })]);
}

export interface InvoiceEvent {
  readonly id: string;
  readonly type: `invoice.${'finalized' | 'paid' | 'overpaid' | 'voided' | 'credited'}`;
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
    amountOverpaid: Number(amountOverpaid(invoice)),
  };
  await deps.recordEvents(client, [{ subject, type, resourceId: id, data }]);
}
