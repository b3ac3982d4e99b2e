import { portOf } from '@rollcall/platform/outbound/url-host.ts';
import { Stripe } from 'stripe';
import { NotificationError } from '../../domain/notification-error.ts';
import type { PaymentProvider, RawNotification, VerifiedNotification } from '../../domain/ports.ts';
import type { Calls } from '../call.ts';
import { rejectionsOf } from './amounts.ts';
import { createStripeCharges } from './charges.ts';
import { closeCheckout, createCheckout } from './checkouts.ts';
import { factsOfEvent, parseEvent } from './events.ts';
import { createStripeHttpClient } from './http-client.ts';
import { lookUpPayment } from './lookups.ts';
import { lookUpRefund, refundPayment } from './refunds.ts';
import { isLive, type StripeSettings } from './settings.ts';
import { fetchSettlement } from './settlement.ts';

/** Of Stripe's own libraries. */
const TOLERANCE_SECONDS = 300;

export interface StripeDeps extends Calls {
  readonly settings: StripeSettings;
}

/**
 * Stripe, by its own client. It knows the keys of calls for 24 hours and more.
 *
 * @throws Error for a base URL with a path, which the client does not know.
 */
export function createStripe(deps: StripeDeps): PaymentProvider {
  const { settings, clock } = deps;
  const stripe = clientOf(deps);
  const now = () => clock.now();

  return {
    name: 'stripe',
    repeatable: new Set(['checkout', 'charge', 'refund']),
    rejectionsOf,
    createCheckout: (request) => createCheckout(stripe, request, now()),
    closeCheckout: (checkoutRef) => closeCheckout(stripe, checkoutRef, now()),
    lookUp: (question) => lookUpPayment(stripe, question, now()),
    refund: (request) => refundPayment(stripe, request, now()),
    lookUpRefund: (request) => lookUpRefund(stripe, request, now()),
    stored: createStripeCharges(stripe, clock),
    verify: async (notification) => verifyEvent(stripe, settings, { notification, now: now() }),
    readFacts: factsOfEvent,
    settlement: (from, to) => fetchSettlement(stripe, { from, to }, now()),
  };
}

function clientOf({ settings, ...calls }: StripeDeps): Stripe {
  const { protocol, hostname, pathname } = settings.apiUrl;
  if (pathname !== '/') throw new Error('the base URL of Stripe must have no path');
  return new Stripe(settings.secretKey, {
    protocol: protocol === 'http:' ? 'http' : 'https',
    host: hostname,
    port: portOf(settings.apiUrl),
    httpClient: createStripeHttpClient(calls),
    maxNetworkRetries: 0,
    telemetry: false,
  });
}

function verifyEvent(
  stripe: Stripe,
  settings: StripeSettings,
  { notification, now }: { readonly notification: RawNotification; readonly now: Date },
): VerifiedNotification {
  const { headers, body } = notification;
  const signature = headers['stripe-signature'];
  const isSigned = settings.webhookSecrets.map((secret) => {
    try {
      if (signature === undefined) return false;
      stripe.webhooks.constructEvent(body, signature, secret, TOLERANCE_SECONDS, undefined, now.getTime());
      return true;
    } catch {
      return false;
    }
  });
  if (!isSigned.includes(true)) throw forged('it is not signed by a secret of ours, or too old');
  const event = parseEvent(body);
  if (event.livemode !== isLive(settings)) throw forged('it is of another mode', 'account');
  return { eventKey: event.id, warnings: [] };
}

/** @param reason that of a signature when absent. */
function forged(what: string, reason?: 'account'): NotificationError {
  return new NotificationError('FORGED', `The event of Stripe is not taken: ${what}`, reason);
}
