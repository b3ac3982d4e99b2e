import { isStandardSignedWith } from '@rollcall/platform/webhooks/signatures.ts';
import { type Static, Type } from 'typebox';
import { NotificationError } from '../../domain/notification-error.ts';
import type { Money, PaymentReference, ProviderFact, RawNotification } from '../../domain/ports.ts';
import { readJson } from '../call.ts';
import { modeOf, type YocoSettings } from './settings.ts';

/** Of Standard Webhooks; each attempt to deliver is signed anew. */
const TOLERANCE_MS = 5 * 60 * 1000;

const Text = Type.String({ minLength: 1, maxLength: 255 });

/** An event (developer.yoco.com, "Events"). Metadata is what we gave to the checkout or refund. */
const Event = Type.Object({
  id: Text,
  type: Text,
  payload: Type.Object({
    id: Text,
    amount: Type.Integer({ minimum: 0 }),
    currency: Text,
    mode: Text,
    /** Of a refund. */
    paymentId: Type.Optional(Text),
    metadata: Type.Optional(
      Type.Object({
        checkoutId: Type.Optional(Text),
        paymentId: Type.Optional(Text),
        refundId: Type.Optional(Text),
      }),
    ),
  }),
});

type YocoEvent = Static<typeof Event>;

/**
 * Pure. The key of the event, where Yoco has signed it for us within five minutes of `now`.
 *
 * @throws NotificationError
 */
export function verifyEvent({ headers, body }: RawNotification, settings: YocoSettings, now: Date): string {
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature } = headers;
  if (id === undefined || timestamp === undefined || signature === undefined) throw forged('it is not signed');
  const sentAtMs = /^\d{1,11}$/.test(timestamp) ? Number(timestamp) * 1000 : Number.NaN;
  const isFresh = Math.abs(sentAtMs - now.getTime()) <= TOLERANCE_MS;
  const matches = settings.webhookSecrets.map((secret) =>
    isStandardSignedWith(secret, { id, timestamp, body }, signature),
  );
  if (!isFresh) throw forged('its time is more than five minutes off');
  if (!matches.includes(true)) throw forged('the signature is wrong');
  const event = parseEvent(body);
  if (event.payload.mode !== modeOf(settings)) throw forged('it is of another mode', 'account');
  return event.id;
}

/**
 * Pure. What a verified event says; nothing where its type is of no concern.
 *
 * @throws NotificationError MALFORMED
 */
export function factsOfEvent(body: Buffer): readonly ProviderFact[] {
  const { type, payload } = parseEvent(body);
  const money: Money = { amount: BigInt(payload.amount), currency: payload.currency };
  switch (type) {
    case 'payment.succeeded':
      return [{ kind: 'payment.succeeded', payment: paymentOf(payload), money }];
    case 'payment.failed':
      // The payer may try another card on the same page.
      return [{ kind: 'payment.attempt_failed', payment: paymentOf(payload), reason: 'declined' }];
    case 'refund.succeeded':
    case 'refund.failed':
      return [{ kind: type, refund: refundOf(payload), money }];
    default:
      return [];
  }
}

function paymentOf({ id, metadata }: YocoEvent['payload']): PaymentReference {
  return {
    chargeRef: id,
    ...(metadata?.checkoutId === undefined ? {} : { checkoutRef: metadata.checkoutId }),
    ...(metadata?.paymentId === undefined ? {} : { paymentId: metadata.paymentId }),
  };
}

function refundOf({ id, paymentId, metadata }: YocoEvent['payload']) {
  return {
    refundRef: id,
    ...(paymentId === undefined ? {} : { chargeRef: paymentId }),
    ...(metadata?.refundId === undefined ? {} : { refundId: metadata.refundId }),
  };
}

function parseEvent(body: Buffer): YocoEvent {
  const event = readJson(Event, body.toString('utf8'));
  if (event === undefined) throw new NotificationError('MALFORMED', 'The event of Yoco cannot be read');
  return event;
}

/** @param reason that of a signature when absent. */
function forged(what: string, reason?: 'account'): NotificationError {
  return new NotificationError('FORGED', `The event of Yoco is not taken: ${what}`, reason);
}
