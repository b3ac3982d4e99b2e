import type { Clock } from '@rollcall/platform/clock.ts';
import { commonError } from '@rollcall/platform/common-errors.ts';
import type { CreditItem } from '../../domain/credit-notes.ts';
import { paymentError } from '../../domain/errors.ts';
import type { InvoiceItem, TaxBehavior } from '../../domain/invoices.ts';
import type { Owner } from '../../domain/owner.ts';
import { refuseAll } from '../../domain/refusals.ts';
import { type CreditNoteStore, type CreditRequest, creditNoteOf } from './credit-notes.ts';
import { type Customer, type CustomerStore, customerRefusals } from './customers.ts';
import { finalizeInvoice, type Invoice, type InvoiceStore, lineRefusals, linesOf, voidInvoice } from './invoices.ts';
import type { FindSeller, Seller } from './sellers.ts';

export interface InvoicingDeps {
  readonly customers: CustomerStore;
  readonly invoices: InvoiceStore & CreditNoteStore;
  readonly sellerOf: FindSeller;
  readonly clock: Clock;
}

interface InvoiceRequest {
  readonly id: string;
  readonly owner: Owner;
  readonly customerId: string;
  readonly items: readonly InvoiceItem[];
  /** Of the seller where undefined. */
  readonly currency: string | undefined;
  readonly taxBehavior: TaxBehavior;
  readonly daysUntilDue: number;
  readonly metadata: Invoice['metadata'];
  readonly isFinal: boolean;
}

/** Where no seller is set. */
const DEFAULT_CURRENCY = 'ZAR';

/**
 * Makes an invoice for a customer, or finds the one that has the id.
 *
 * @throws ServiceError CUSTOMER_NOT_FOUND, INVOICE_TOTAL_NOT_ALLOWED; those of {@link issueInvoice}
 * where it is final.
 */
export async function createInvoice(deps: InvoicingDeps, request: InvoiceRequest): Promise<Invoice> {
  const { id, owner, customerId, items, taxBehavior, daysUntilDue, metadata, isFinal } = request;
  const customer = await deps.customers.find(customerId, owner);
  const lines = linesOf(items, taxBehavior);
  refuseAll([...customerRefusals(customer), ...lineRefusals(lines)], 'body');
  if (customer === undefined) throw new Error('What is not there was not refused');
  const { subject } = customer;
  const currency = request.currency ?? deps.sellerOf(subject)?.currency ?? DEFAULT_CURRENCY;
  const draft = { id, subject, customerId, subscription: undefined, currency, taxBehavior, daysUntilDue, lines };
  const seller = isFinal ? sellerFor(deps, subject) : undefined;
  return deps.invoices.create(
    { ...draft, metadata, fromCredit: 0n },
    seller && ((made) => finalizeInvoice(made, { customer, seller, now: nowOf(deps.clock) })),
  );
}

/**
 * Gives an invoice its number and date.
 *
 * @throws ServiceError CONFLICT, NO_SELLER, TAX_INVOICE_INCOMPLETE.
 */
export async function issueInvoice(deps: InvoicingDeps, { id, subject, customerId }: Invoice): Promise<Invoice> {
  const [customer, seller] = [await customerFor(deps, customerId), sellerFor(deps, subject)];
  const now = nowOf(deps.clock);
  return known(await deps.invoices.change(id, subject, (draft) => finalizeInvoice(draft, { customer, seller, now })));
}

/** @throws ServiceError NOT_FOUND, CONFLICT. */
export async function cancelInvoice(deps: InvoicingDeps, id: string, owner: Owner): Promise<Invoice> {
  return known(await deps.invoices.change(id, owner, voidInvoice));
}

interface CreditInput extends CreditRequest {
  readonly reason: string | null;
  readonly items: readonly CreditItem[] | undefined;
}

/** @throws ServiceError NOT_FOUND, CONFLICT, CREDIT_EXCEEDS_INVOICE, NO_SELLER. */
export async function creditInvoice(deps: InvoicingDeps, { reason, items, ...request }: CreditInput): Promise<Invoice> {
  const { subject, customerId } = known(await deps.invoices.find(request.invoiceId, request.owner));
  const { timeZone } = await customerFor(deps, customerId);
  const { creditNoteSeries: series } = sellerFor(deps, subject);
  const credit = { id: request.id, reason, items, series, timeZone, now: nowOf(deps.clock) };
  return known(await deps.invoices.issue(request, (invoice) => creditNoteOf(invoice, credit)));
}

/** @throws ServiceError NOT_FOUND. */
function known(invoice: Invoice | undefined): Invoice {
  if (invoice === undefined) throw commonError('NOT_FOUND');
  return invoice;
}

async function customerFor({ customers }: InvoicingDeps, id: string): Promise<Customer> {
  const customer = await customers.find(id, undefined);
  if (customer === undefined) throw new Error('The customer of an invoice is gone');
  return customer;
}

function sellerFor({ sellerOf }: InvoicingDeps, subject: string): Seller {
  const seller = sellerOf(subject);
  if (seller === undefined) throw paymentError('NO_SELLER');
  return seller;
}

function nowOf(clock: Clock): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(clock.now().getTime());
}
