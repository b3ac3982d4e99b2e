import { dateIn } from '../../domain/calendar.ts';
import { totalsOf } from '../../domain/invoices.ts';
import { formatDecimal, total } from '../../domain/money.ts';
import type { Customer } from '../domain/customers.ts';
import { amountDue, type Invoice } from '../domain/invoices.ts';

/** What templates of communication take. */
const LONGEST = 200;
const MOST_ITEMS = 200;

export interface QueuedMail {
  readonly kind: 'invoice' | 'receipt' | 'payment-failed';
  /** A word for programs. */
  readonly reason: string | undefined;
  readonly retryOn: Temporal.PlainDate | undefined;
}

interface MailParts {
  readonly mail: QueuedMail;
  readonly invoice: Invoice;
  readonly customer: Customer;
  /** Where the customer sees the invoice and pays it. */
  readonly url: string;
}

/** The variables of a mail's template, which has the name of its kind; undefined where it has lost its point. */
export function variablesOf({
  mail,
  invoice,
  customer,
  url,
}: MailParts): Readonly<Record<string, unknown>> | undefined {
  const { issued, state, lines, currency, paidAt } = invoice;
  if (issued === undefined) return undefined;
  const money = (amount: bigint): string => `${currency} ${formatDecimal(amount, currency)}`;
  const company = issued.supplier.name;
  const name = customer.name === null ? {} : { name: short(customer.name) };
  // Whoever adds them up comes to the total: without tax, which has a line of its own, and less the credit.
  const { tax, gross } = totalsOf(lines);
  const owed = state === 'paid' ? amountPaid(invoice) : amountDue(invoice);
  const billed = lines.slice(0, MOST_ITEMS - 1).map(({ description, net }) => ({ description, amount: net }));
  const credit = owed === gross ? [] : [{ description: 'Credit', amount: owed - gross }];
  const items = [...billed, ...credit].map(({ description, amount }) => ({
    description: short(description),
    amount: money(amount),
  }));
  const taxed = tax === 0n ? {} : { tax: money(tax) };
  const bill = { company, ...name, number: issued.number, items, ...taxed, total: money(owed) };
  if (mail.kind === 'receipt') {
    const paidOn = dateIn(customer.timeZone, instantOf(paidAt ?? new Date(issued.issuedAt.epochMilliseconds)));
    // Credit alone is no payment.
    return state === 'paid' && owed > 0n ? { ...bill, paidOn: paidOn.toString() } : undefined;
  }
  if (state !== 'open') return undefined;
  if (mail.kind === 'invoice') return { ...bill, dueOn: issued.dueOn.toString(), url };
  const reason = mail.reason === undefined ? {} : { reason: mail.reason.replaceAll('_', ' ') };
  const retryOn = mail.retryOn === undefined ? {} : { retryOn: mail.retryOn.toString() };
  return { company, ...name, amount: money(owed), ...reason, ...retryOn, url };
}

/** What was paid of an invoice that is paid, in minor units: later credit notes are owed to the customer. */
function amountPaid({ lines, fromCredit, creditNotes, paidAt }: Invoice): bigint {
  const before = creditNotes.filter(({ issuedAt }) => paidAt === undefined || +paidAt >= issuedAt.epochMilliseconds);
  const credited = total(before.map((note) => totalsOf(note.lines).gross));
  return totalsOf(lines).gross - fromCredit - credited;
}

function instantOf(date: Date): Temporal.Instant {
  return Temporal.Instant.fromEpochMilliseconds(date.getTime());
}

function short(text: string): string {
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}
