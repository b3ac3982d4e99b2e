import type { InvoiceEvent } from './billing/store/invoice-changes.ts';
import type { SubscriptionEventType } from './billing/store/subscription-events.ts';
import type { PaymentState } from './domain/payment-states.ts';
import type { RefundState } from './domain/refunds.ts';

/** Each type once: the compiler says which one lacks, or is none. */
const isTold: Readonly<
  Record<
    | 'payment.created'
    | `payment.${PaymentState}`
    | `refund.${RefundState}`
    | InvoiceEvent['type']
    | SubscriptionEventType,
    true
  >
> = {
  'payment.created': true,
  'payment.pending': true,
  'payment.processing': true,
  'payment.succeeded': true,
  'payment.failed': true,
  'payment.expired': true,
  'payment.cancelled': true,
  'payment.partially_refunded': true,
  'payment.refunded': true,
  'payment.disputed': true,
  'payment.needs_review': true,
  'refund.pending': true,
  'refund.processing': true,
  'refund.succeeded': true,
  'refund.failed': true,
  'refund.needs_review': true,
  'invoice.finalized': true,
  'invoice.paid': true,
  'invoice.overpaid': true,
  'invoice.voided': true,
  'invoice.credited': true,
  'subscription.created': true,
  'subscription.plan_changed': true,
  'subscription.updated': true,
  'subscription.incomplete': true,
  'subscription.trialing': true,
  'subscription.active': true,
  'subscription.past_due': true,
  'subscription.unpaid': true,
  'subscription.paused': true,
  'subscription.cancelled': true,
};

/** What subjects are told of. */
export const eventTypes: readonly string[] = Object.keys(isTold);
