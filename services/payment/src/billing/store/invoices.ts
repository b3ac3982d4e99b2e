import { readNewest } from '@rollcall/platform/postgres/page.ts';
import { inTransaction, type Pool } from '@rollcall/platform/postgres/pool.ts';
import type { Owner } from '../../domain/owner.ts';
import type { CreditNoteStore } from '../domain/credit-notes.ts';
import type { Invoice, InvoiceStore } from '../domain/invoices.ts';
import { holdCustomer } from './customer-rows.ts';
import { changeInvoice, issueCreditNote } from './invoice-changes.ts';
import { findInvoice, INVOICE_COLUMNS, type InvoiceRow, insertDraft, invoicesOf } from './invoice-rows.ts';
import { lockInvoice } from './settlement.ts';
import type { StepDeps } from './subscription-steps.ts';

export interface InvoiceTableDeps extends StepDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
}

export function createInvoiceTable(deps: InvoiceTableDeps): InvoiceStore & CreditNoteStore {
  const { pool, sealer, clock } = deps;
  return {
    create: (invoice, decide) =>
      inTransaction(pool(), async (client) => {
        const { id, customerId } = invoice;
        const isNew = await insertDraft(client, sealer, { ...invoice, createdAt: clock.now() });
        if (isNew) await holdCustomer(client, customerId);
        const made = known(await lockInvoice(client, deps, id));
        if (decide === undefined) return made;
        await changeInvoice(client, deps, { invoice: made, change: decide(made) });
        return known(await findInvoice(client, sealer, { id, owner: undefined }));
      }),
    find: (id, owner) => findInvoice(pool(), sealer, { id, owner }),
    async list({ owner, customerId, subscriptionId, state, page }) {
      const { rows, ...rest } = await readNewest<InvoiceRow>(pool(), {
        table: 'invoices',
        columns: INVOICE_COLUMNS,
        where: `($1::text IS NULL OR subject = $1) AND ($2::uuid IS NULL OR customer_id = $2)
          AND ($3::uuid IS NULL OR subscription_id = $3) AND ($4::text IS NULL OR state = $4)`,
        parameters: [owner, customerId, subscriptionId, state],
        page,
      });
      return { rows: await invoicesOf(pool(), sealer, rows), ...rest };
    },
    change: (id, owner, decide) =>
      inTransaction(pool(), async (client) => {
        const invoice = await lockInvoice(client, deps, id);
        if (invoice === undefined || !isOf(invoice, owner)) return undefined;
        await changeInvoice(client, deps, { invoice, change: decide(invoice) });
        return findInvoice(client, sealer, { id, owner });
      }),
    issue: ({ id, invoiceId, owner }, decide) =>
      inTransaction(pool(), async (client) => {
        const before = await lockInvoice(client, deps, invoiceId);
        if (before === undefined || !isOf(before, owner)) return undefined;
        if (before.creditNotes.some((note) => note.id === id)) return before;
        await issueCreditNote(client, deps, { invoice: before, note: decide(before) });
        return findInvoice(client, sealer, { id: invoiceId, owner });
      }),
  };
}

function known(made: Invoice | undefined): Invoice {
  if (made === undefined) throw new Error('The invoice that was made is gone');
  return made;
}

function isOf({ subject }: Invoice, owner: Owner): boolean {
  return owner === undefined || subject === owner;
}
