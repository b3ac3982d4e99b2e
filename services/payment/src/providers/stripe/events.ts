import { type Static, Type } from 'typebox';
import { NotificationError } from '../../domain/notification-error.ts';
import type { ProviderFact } from '../../domain/ports.ts';
import { readJson } from '../call.ts';
import { disputeFacts, intentFacts, refundFacts, sessionFacts, setupFacts } from './objects.ts';

const Event = Type.Object({
  id: Type.String({ minLength: 1, maxLength: 255 }),
  type: Type.String(),
  livemode: Type.Boolean(),
  data: Type.Object({ object: Type.Unknown() }),
});

export type StripeEvent = Static<typeof Event>;

/** @throws NotificationError MALFORMED */
export function parseEvent(body: Buffer): StripeEvent {
  const event = readJson(Event, body.toString('utf8'));
  if (event === undefined) throw new NotificationError('MALFORMED', 'The event of Stripe cannot be read');
  return event;
}

/**
 * Pure. What a verified event says; nothing where its type is of no concern, or where it is about
 * something that another program of the account made.
 *
 * @throws NotificationError MALFORMED
 */
export function factsOfEvent(body: Buffer): readonly ProviderFact[] {
  const { type, data } = parseEvent(body);
  const facts = factsOfObject(type, data.object);
  if (facts === undefined) throw new NotificationError('MALFORMED', 'The object of the event cannot be read');
  return facts;
}

/** Undefined where the object is not what its type promises. */
function factsOfObject(type: string, object: unknown): readonly ProviderFact[] | undefined {
  switch (type) {
    case 'checkout.session.completed':
    case 'checkout.session.expired':
    case 'checkout.session.async_payment_succeeded':
    case 'checkout.session.async_payment_failed':
      return sessionFacts(object, type === 'checkout.session.async_payment_failed');
    case 'payment_intent.succeeded':
    case 'payment_intent.processing':
    case 'payment_intent.canceled':
    case 'payment_intent.payment_failed':
      return intentFacts(object);
    case 'setup_intent.succeeded':
      return setupFacts(object);
    case 'refund.created':
    case 'refund.updated':
    case 'refund.failed':
      return refundFacts(object);
    case 'charge.dispute.created':
    case 'charge.dispute.closed':
      return disputeFacts(object);
    default:
      return [];
  }
}
