import { createHmac } from 'node:crypto';
import type { Notification, NotificationAttempt } from '../notifier.ts';
import type { StripeEvent, WebhookEndpoint } from './objects.ts';

/** What npm stripe 23.1.0 pins. */
export const API_VERSION = '2026-10-28.endive';

/** One major unit of a currency with two places. */
const WRONG_BY = 100;

/** An event for one endpoint, signed anew for each attempt. */
export function eventNotification({ url }: WebhookEndpoint, secret: string, event: StripeEvent): Notification {
  return (attempt) => {
    const body = JSON.stringify(distorted(event, attempt), null, 2);
    const seconds = Math.floor(attempt.at.getTime() / 1000);
    const signature = signatureOf(attempt.isForged ? `${secret}?` : secret, seconds, body);
    const headers = { 'content-type': 'application/json; charset=utf-8', 'stripe-signature': signature };
    return { url, headers, body };
  };
}

/**
 * The header `Stripe-Signature` (docs.stripe.com/webhooks/signature): an HMAC by the whole text of
 * the secret. @param at Unix seconds.
 */
export function signatureOf(secret: string, at: number, body: string): string {
  return `t=${at},v1=${createHmac('sha256', secret).update(`${at}.${body}`).digest('hex')}`;
}

/** Whether an endpoint asked for events of the type. */
export function isWanted({ enabled_events: wanted }: WebhookEndpoint, type: string): boolean {
  return wanted.includes('*') || wanted.includes(type);
}

/** As it would be said of a payment of another account, or of another amount. */
function distorted(event: StripeEvent, { wrong }: NotificationAttempt): unknown {
  if (wrong === 'wrong-merchant') return { ...event, account: 'acct_ofsomebodyelse' };
  if (wrong !== 'wrong-amount') return event;
  const amounts = Object.entries(event.data.object)
    .filter(([name, value]) => name.startsWith('amount') && typeof value === 'number')
    .map(([name, value]) => [name, Number(value) + WRONG_BY] as const);
  return { ...event, data: { object: { ...event.data.object, ...Object.fromEntries(amounts) } } };
}
