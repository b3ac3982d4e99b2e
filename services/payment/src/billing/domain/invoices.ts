import type { ListPage, NewestPage } from '@rollcall/platform/lists.ts';
import { dateIn } from '../../domain/calendar.ts';
import { paymentError } from '../../domain/errors.ts';
import { type InvoiceState, invoiceTable } from '../../domain/invoice-states.ts';
import {
  type InvoiceItem,
  type InvoiceLine,
  isInvoiceable,
  priceItem,
  type TaxBehavior,
  totalsOf,
} from '../../domain/invoices.ts';
import { total } from '../../domain/money.ts';
import type { Owner } from '../../domain/owner.ts';
import type { Refusal } from '../../domain/refusals.ts';
import { type InvoiceTitle, invoiceTitle, missingOnTaxInvoice, type Party } from '../../domain/tax-invoice.ts';
import { move } from '../../domain/transitions.ts';
import type { CreditNote } from './credit-notes.ts';
import type { Customer } from './customers.ts';
import type { Seller } from './sellers.ts';

/** What an invoice says from the moment on at which it is issued. */
export interface Issued {
  readonly title: InvoiceTitle;
  /** Without gaps in its series. */
  readonly number: string;
  readonly supplier: Party;
  readonly recipient: Party;
  readonly issuedAt: Temporal.Instant;
  /** The date of `issuedAt` at the customer. */
  readonly issuedOn: Temporal.PlainDate;
  readonly dueOn: Temporal.PlainDate;
}

/** Amounts in minor units. */
export interface Invoice {
  readonly id: string;
  readonly subject: string;
  readonly customerId: string;
  /** Of a subscription: which one, and for which days; the last one is not in it. */
  readonly subscription: SubscriptionPeriod | undefined;
  readonly state: InvoiceState;
  readonly currency: string;
  readonly taxBehavior: TaxBehavior;
  readonly daysUntilDue: number;
  readonly lines: readonly InvoiceLine[];
  /** Of the caller; kept and given back as it came. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Of the total: paid by credit that the subscription had. */
  readonly fromCredit: bigint;
  /** By credit notes, with tax. */
  readonly credited: bigint;
  readonly issued: Issued | undefined;
  /** That pays it, or is about to. One that failed is none any more. */
  readonly paymentId: string | undefined;
  /** Money that came for it beside what was owed, and has not gone back. */
  readonly surplus: readonly SurplusPayment[];
  readonly createdAt: Date;
  readonly paidAt: Date | undefined;
  readonly voidedAt: Date | undefined;
  readonly creditNotes: readonly CreditNote[];
}

interface SurplusPayment {
  readonly paymentId: string;
  /** Of the payment, what is too much, in minor units. */
  readonly amount: bigint;
}

interface SubscriptionPeriod {
  readonly id: string;
  readonly start: Temporal.PlainDate;
  readonly end: Temporal.PlainDate;
}

export type NewInvoice = Pick<
  Invoice,
  | 'id'
  | 'subject'
  | 'customerId'
  | 'subscription'
  | 'currency'
  | 'taxBehavior'
  | 'daysUntilDue'
  | 'lines'
  | 'metadata'
  | 'fromCredit'
>;

/** An invoice that is to be issued: its number comes of the series as it is written. */
export type Issue = Omit<Issued, 'number'> & { readonly series: string };

/** What becomes of an invoice. */
export type InvoiceChange =
  | { readonly kind: 'stays' }
  | { readonly kind: 'issue'; readonly issue: Issue }
  | { readonly kind: 'void' };

interface InvoiceQuery {
  readonly owner: Owner;
  readonly customerId: string | undefined;
  readonly subscriptionId: string | undefined;
  readonly state: InvoiceState | undefined;
  readonly page: ListPage;
}

export interface InvoiceStore {
  /** Makes a draft, or finds the invoice that has the id; with what is decided of it, or not at all. */
  create(invoice: NewInvoice, decide?: (invoice: Invoice) => InvoiceChange): Promise<Invoice>;
  find(id: string, owner: Owner): Promise<Invoice | undefined>;
  list(query: InvoiceQuery): Promise<NewestPage<Invoice>>;
  /**
   * Carries out what is decided of the invoice while nobody else changes it; undefined where there
   * is none.
   */
  change(id: string, owner: Owner, decide: (invoice: Invoice) => InvoiceChange): Promise<Invoice | undefined>;
}

/** What is still to be paid of an invoice, in minor units. */
export function amountDue({ state, lines, fromCredit, credited }: Invoice): bigint {
  if (state !== 'open' && state !== 'draft') return 0n;
  const left = totalsOf(lines).gross - fromCredit - credited;
  return left > 0n ? left : 0n;
}

/** What is to be given back of an invoice's payments, in minor units. */
export function amountOverpaid({ surplus }: Invoice): bigint {
  return total(surplus.map(({ amount }) => amount));
}

/** Pure. The lines of items. */
export function linesOf(items: readonly InvoiceItem[], behavior: TaxBehavior): readonly InvoiceLine[] {
  return items.map((item) => priceItem(item, behavior));
}

/** Pure. Each line that cannot be paid; where there is none, their total that cannot. */
export function lineRefusals(lines: readonly InvoiceLine[]): readonly Refusal[] {
  const error = paymentError('INVOICE_TOTAL_NOT_ALLOWED');
  const refused = lines.flatMap(({ gross }, index) =>
    isInvoiceable({ gross: gross < 0n ? -gross : gross }) ? [] : [{ field: `items/${index}`, error }],
  );
  return refused.length > 0 || isInvoiceable(totalsOf(lines)) ? refused : [{ field: 'items', error }];
}

interface Parties {
  readonly customer: Customer;
  readonly seller: Seller;
  readonly now: Temporal.Instant;
}

/**
 * Issues a draft; what was issued stays as it is.
 *
 * @throws ServiceError CONFLICT for a void one; TAX_INVOICE_INCOMPLETE.
 */
export function finalizeInvoice(invoice: Invoice, parties: Parties): InvoiceChange {
  const transition = move(invoiceTable, invoice.state, 'finalize');
  if (transition.kind === 'refused') throw paymentError('CONFLICT', { details: { status: invoice.state } });
  if (transition.kind === 'stays') return transition;
  const { customer, seller } = parties;
  const missing = missingOnTaxInvoice({
    supplierCountry: seller.country,
    supplier: seller.party,
    recipient: { ...recipientOf(customer), name: customer.name ?? '' },
    currency: invoice.currency,
    totals: totalsOf(invoice.lines),
  });
  if (missing.length > 0) throw paymentError('TAX_INVOICE_INCOMPLETE', { details: { missing } });
  return { kind: 'issue', issue: issueOf(invoice, parties) };
}

/** What an invoice says when it is issued now. */
export function issueOf({ daysUntilDue }: Pick<Invoice, 'daysUntilDue'>, { customer, seller, now }: Parties): Issue {
  const issuedOn = dateIn(customer.timeZone, now);
  return {
    title: invoiceTitle({ supplierCountry: seller.country, supplier: seller.party }),
    series: seller.series,
    supplier: seller.party,
    recipient: recipientOf(customer),
    issuedAt: now,
    issuedOn,
    dueOn: issuedOn.add({ days: daysUntilDue }),
  };
}

/**
 * Takes an invoice back that nobody has paid a part of.
 *
 * @throws ServiceError CONFLICT for one that is paid, or being paid, or was partly credited.
 */
export function voidInvoice(invoice: Invoice): InvoiceChange {
  const { state, credited, fromCredit } = invoice;
  const { kind } = move(invoiceTable, state, 'void');
  if (kind === 'refused') throw paymentError('CONFLICT', { details: { status: state } });
  if (kind === 'stays') return { kind };
  refuseWhilePaid(invoice);
  if (state !== 'draft' && credited + fromCredit > 0n) {
    const message = 'A part of it was credited; issue a credit note for the rest';
    throw paymentError('CONFLICT', { message, details: { status: state } });
  }
  return { kind: 'void' };
}

/** @throws ServiceError CONFLICT while a payment of the invoice may still come. */
export function refuseWhilePaid({ state, paymentId }: Invoice): void {
  if (state !== 'open' || paymentId === undefined) return;
  const message = 'A payment of it is under way; cancel the payment, or wait for its end';
  throw paymentError('CONFLICT', { message, details: { status: state, paymentId } });
}

function recipientOf({ name, email, address, taxId }: Customer): Party {
  return { name: name ?? email, address, vatNumber: taxId ?? undefined };
}
