import type { Vault } from '@rollcall/platform/vault.ts';
import type { InvoiceLine } from '../../domain/invoices.ts';
import type { InvoiceTitle, Party } from '../../domain/tax-invoice.ts';
import type { CreditedLine } from '../domain/credit-notes.ts';

/** What of an invoice is for its parties alone. */
export interface InvoiceContent {
  readonly lines: readonly InvoiceLine[];
  /** Absent: none. In pairs, so that no name is taken for that of an amount. */
  readonly metadata?: readonly (readonly [string, string])[];
  /** Since it was issued. */
  readonly parties?: { readonly title: InvoiceTitle; readonly supplier: Party; readonly recipient: Party };
}

export interface CreditNoteContent {
  readonly lines: readonly CreditedLine[];
  readonly reason: string | null;
}

const isAmount: ReadonlySet<string> = new Set(['unitAmount', 'quantity', 'taxRate', 'net', 'tax', 'gross']);

/** Seals contents of invoices and credit notes. JSON has no bigint: amounts are texts of digits. */
export function createInvoiceSealer(vault: Vault) {
  return {
    seal: (id: string, content: InvoiceContent | CreditNoteContent): Buffer =>
      vault.seal(
        JSON.stringify(content, (_name, value: unknown) => (typeof value === 'bigint' ? value.toString() : value)),
        invoiceContext(id),
      ),
    openInvoice(id: string, sealed: Buffer): InvoiceContent {
      const content: InvoiceContent = JSON.parse(vault.open(sealed, invoiceContext(id)).toString(), withAmounts);
      return content;
    },
    openCreditNote(id: string, sealed: Buffer): CreditNoteContent {
      const content: CreditNoteContent = JSON.parse(vault.open(sealed, invoiceContext(id)).toString(), withAmounts);
      return content;
    },
  };
}

export type InvoiceSealer = ReturnType<typeof createInvoiceSealer>;

function withAmounts(name: string, value: unknown): unknown {
  return isAmount.has(name) && typeof value === 'string' ? BigInt(value) : value;
}

/** What an invoice or a credit note is sealed for. */
export function invoiceContext(id: string): string {
  return `invoice ${id}`;
}
