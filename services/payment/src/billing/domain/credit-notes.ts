import { dateIn } from '../../domain/calendar.ts';
import { type CreditItem, creditLines, type Excess, restOf } from '../../domain/credit-notes.ts';
import { paymentError } from '../../domain/errors.ts';
import type { InvoiceLine } from '../../domain/invoices.ts';
import type { Owner } from '../../domain/owner.ts';
import { type Refusal, refuseAll } from '../../domain/refusals.ts';
import { type Invoice, refuseWhilePaid } from './invoices.ts';

/** Takes back of an invoice what was not owed. Amounts are positive, in minor units. */
export interface CreditNote {
  readonly id: string;
  /** Without gaps in its series. */
  readonly number: string;
  readonly reason: string | null;
  readonly lines: readonly CreditedLine[];
  readonly issuedAt: Temporal.Instant;
  readonly issuedOn: Temporal.PlainDate;
}

/** A line as it is printed: one piece of what is credited. */
export interface CreditedLine extends InvoiceLine {
  /** Of the invoice, from 0. */
  readonly lineIndex: number;
}

/** A credit note that is to be issued: its number comes of the series as it is written. */
export type NewCreditNote = Omit<CreditNote, 'number'>;

export interface CreditNoteStore {
  /**
   * Issues what is decided of the invoice while nobody else changes it, or finds the credit note
   * that has the id; undefined where there is no such invoice.
   */
  issue(
    request: CreditRequest,
    decide: (invoice: Invoice) => NewCreditNote & { series: string },
  ): Promise<Invoice | undefined>;
}

export interface CreditRequest {
  readonly id: string;
  readonly invoiceId: string;
  readonly owner: Owner;
}

interface Credit {
  readonly id: string;
  readonly reason: string | null;
  /** All that is left of all lines where undefined. */
  readonly items: readonly CreditItem[] | undefined;
  readonly series: string;
  readonly timeZone: string;
  readonly now: Temporal.Instant;
}

/**
 * The credit note for an invoice that was issued.
 *
 * @throws ServiceError CONFLICT where the invoice is a draft, void or being paid; CREDIT_EXCEEDS_INVOICE.
 */
export function creditNoteOf(invoice: Invoice, credit: Credit): NewCreditNote & { readonly series: string } {
  const { state, lines, creditNotes } = invoice;
  if (state === 'draft' || state === 'void') throw paymentError('CONFLICT', { details: { status: state } });
  refuseWhilePaid(invoice);
  const { id, reason, series, timeZone, now } = credit;
  const credited = creditedOf(creditNotes);
  const { lines: creditedLines, excesses } = creditLines(
    { lines, credited },
    credit.items ?? restOf({ lines, credited }),
  );
  refuseAll(excesses.map(excessRefusal), 'body');
  const printed = creditedLines.map((line) => ({ ...line, unitAmount: line.net, quantity: 1n }));
  return { id, reason, series, lines: printed, issuedAt: now, issuedOn: dateIn(timeZone, now) };
}

function excessRefusal({ item, lineIndex, left }: Excess): Refusal {
  const error = paymentError('CREDIT_EXCEEDS_INVOICE', { details: { line: lineIndex ?? null, left: Number(left) } });
  return { field: item === undefined ? 'items' : `items/${item}`, error };
}

/** Gross by index of the line. */
export function creditedOf(notes: readonly CreditNote[]): ReadonlyMap<number, bigint> {
  const credited = new Map<number, bigint>();
  for (const { lineIndex, gross } of notes.flatMap((note) => note.lines)) {
    credited.set(lineIndex, (credited.get(lineIndex) ?? 0n) + gross);
  }
  return credited;
}
