import { formatAge } from './age.ts';
import { formatFacts, formatTable } from './table.ts';
import { printable } from './text.ts';

/** A payment of the payment service, as far as it is shown. */
export interface PaymentRecord {
  readonly id: string;
  /** In minor units. */
  readonly amount: number;
  readonly currency: string;
  readonly status: string;
  readonly reason: string | null;
  readonly provider: string;
  readonly customerEmail: string;
  readonly itemName: string;
  readonly amountRefunded: number;
  readonly paymentUrl: string | null;
  readonly createdAt: string;
}

/** One payment, with what happened to it. */
export interface PaymentDetails extends PaymentRecord {
  readonly events: readonly {
    readonly at: string;
    readonly event: string;
    readonly source: string;
    readonly to: string;
    readonly reason: string | null;
  }[];
}

export interface RefundRecord {
  readonly id: string;
  readonly amount: number;
  readonly status: string;
}

/** One refund, as lists have it. */
export interface RefundDetails extends RefundRecord {
  readonly paymentId: string;
  readonly currency: string;
  /** Why it failed, or is in review. */
  readonly failure: string | null;
  readonly createdAt: string;
}

export function formatPayments(payments: readonly PaymentRecord[], now: Date): string {
  const rows = payments.map((payment) => [
    payment.id,
    formatAmount(payment.amount, payment.currency),
    payment.status,
    payment.provider,
    payment.customerEmail,
    formatAge(payment.createdAt, now),
    payment.itemName,
  ]);
  return formatTable(['PAYMENT', 'AMOUNT', 'STATUS', 'PROVIDER', 'PAYER', 'AGE', 'ITEM'], rows);
}

export function formatPayment(payment: PaymentDetails, now: Date): string {
  const { amount, currency, amountRefunded, createdAt, events } = payment;
  const facts = formatFacts({
    Payment: payment.id,
    Item: payment.itemName,
    Amount: formatAmount(amount, currency),
    Refunded: amountRefunded === 0 ? '' : formatAmount(amountRefunded, currency),
    Status: payment.status,
    Reason: payment.reason ?? '',
    Provider: payment.provider,
    Payer: payment.customerEmail,
    'To be paid at': payment.paymentUrl ?? '',
    Created: `${createdAt} (${formatAge(createdAt, now)} ago)`,
  });
  if (events.length === 0) return facts;
  const rows = events.map(({ at, event, source, to, reason }) => [at, event, source, to, reason ?? '']);
  return `${facts}\n${formatTable(['AT', 'EVENT', 'SOURCE', 'STATUS', 'REASON'], rows)}`;
}

export function formatRefund({ id, amount, status }: RefundRecord): string {
  return printable(`refund ${id} of ${amount} (minor units) ${status}`) + '\n';
}

export function formatRefunds(refunds: readonly RefundDetails[], now: Date): string {
  const rows = refunds.map(({ id, paymentId, amount, currency, status, failure, createdAt }) => [
    id,
    paymentId,
    formatAmount(amount, currency),
    status,
    failure ?? '',
    formatAge(createdAt, now),
  ]);
  return formatTable(['REFUND', 'PAYMENT', 'AMOUNT', 'STATUS', 'FAILURE', 'AGE'], rows);
}

/** `ZAR 149.50`: with as many digits as the currency has (ISO 4217). */
function formatAmount(amount: number, currency: string): string {
  try {
    const { maximumFractionDigits: digits = 2 } = new Intl.NumberFormat('en', {
      style: 'currency',
      currency,
    }).resolvedOptions();
    return `${currency} ${(amount / 10 ** digits).toFixed(digits)}`;
  } catch {
    return `${currency} ${amount}`;
  }
}
