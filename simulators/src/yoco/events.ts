import { Webhook } from 'standardwebhooks';
import type { Notification, NotificationAttempt, NotificationRequest } from '../notifier.ts';
import { type Checkout, createId, type ProcessingMode, type Refund } from './checkouts.ts';

/** A webhook as `POST /webhooks` makes it. */
export interface WebhookSubscription {
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly mode: ProcessingMode;
  /** `whsec_` and base64. */
  readonly secret: string;
}

/** An event before it is sent. */
export interface YocoEvent {
  readonly id: string;
  readonly type: 'payment.succeeded' | 'payment.failed' | 'refund.succeeded' | 'refund.failed';
  readonly createdDate: string;
  readonly payload: {
    readonly id: string;
    readonly type: 'payment' | 'refund';
    readonly createdDate: string;
    readonly amount: number;
    readonly currency: string;
    readonly status: 'succeeded' | 'failed';
    readonly mode: ProcessingMode;
    readonly metadata: Readonly<Record<string, string>>;
    readonly [more: string]: unknown;
  };
}

const ONE_RAND = 100;

/** What is said of a payment that was tried. @param paymentId of a payment that failed, one of its own. */
export function paymentEvent(
  checkout: Checkout,
  { status, at, paymentId }: { readonly status: 'succeeded' | 'failed'; readonly at: Date; readonly paymentId: string },
): YocoEvent {
  const { id: checkoutId, amount, currency, processingMode: mode, metadata = {} } = checkout;
  const createdDate = dateOf(at);
  const card = { expiryMonth: 12, expiryYear: 2030, maskedCard: '************1111', scheme: 'visa' };
  const payload = {
    id: paymentId,
    type: 'payment' as const,
    createdDate,
    amount,
    currency,
    status,
    mode,
    paymentMethodDetails: { type: 'card', card },
    metadata: { ...metadata, checkoutId },
  };
  return { id: createId('evt'), type: `payment.${status}`, createdDate, payload };
}

/** What became of a refund. */
export function refundEvent(
  checkout: Checkout,
  { refund, at, refundableAmount }: { readonly refund: Refund; readonly at: Date; readonly refundableAmount: number },
): YocoEvent {
  const { id: checkoutId, currency, processingMode: mode } = checkout;
  const status: 'failed' | 'succeeded' = refund.status === 'failed' ? 'failed' : 'succeeded';
  const createdDate = dateOf(at);
  const payload = {
    id: refund.id,
    type: 'refund' as const,
    createdDate,
    amount: refund.amount,
    currency,
    status,
    mode,
    paymentId: checkout.paymentId,
    refundableAmount,
    metadata: { ...refund.metadata, checkoutId },
    ...(status === 'failed' ? { failureReason: 'The refund was declined by the bank.' } : {}),
  };
  return { id: createId('evt'), type: `refund.${status}`, createdDate, payload };
}

/** An event for one webhook, signed anew for each attempt (Standard Webhooks). */
export function eventNotification({ url, secret }: WebhookSubscription, event: YocoEvent): Notification {
  const id = createId('msg');
  return (attempt): NotificationRequest => {
    const body = JSON.stringify(distorted(event, attempt));
    const seconds = Math.floor(attempt.at.getTime() / 1000);
    const signature = new Webhook(secret).sign(id, attempt.at, attempt.isForged ? `${body} ` : body);
    const headers = { 'webhook-id': id, 'webhook-timestamp': String(seconds), 'webhook-signature': signature };
    return { url, headers: { 'content-type': 'application/json', ...headers }, body };
  };
}

/** As it would be said of a payment of another merchant, who knows no such checkout; or of another amount. */
function distorted(event: YocoEvent, { wrong }: NotificationAttempt): YocoEvent {
  const { payload } = event;
  if (wrong === 'wrong-amount') return { ...event, payload: { ...payload, amount: payload.amount + ONE_RAND } };
  if (wrong !== 'wrong-merchant') return event;
  return { ...event, payload: { ...payload, metadata: { ...payload.metadata, checkoutId: createId('ch') } } };
}

/** ISO 8601 with six digits after the second. */
function dateOf(at: Date): string {
  return at.toISOString().replace('Z', '000Z');
}
