import { createPublicKey, type KeyObject, verify } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { foreignJson } from '@rollcall/platform/outbound/foreign-text.ts';
import type { Dispatcher } from 'undici';
import type {
  Mailbox,
  MessageProvider,
  NotificationReading,
  OutgoingEmail,
  ProviderNotification,
  ProviderReport,
  SendOutcome,
  Suppression,
} from '../domain/ports.ts';
import { isUnknownAddress, statusCodeOf } from '../domain/smtp-status.ts';
import type { Receipt } from '../domain/states.ts';
import {
  callProvider,
  fieldsOf,
  type HttpSettings,
  outcomeOfStatus,
  outcomeWithoutAnswer,
  textOf,
} from './http-call.ts';
import { unsubscribeHeaders } from './unsubscribe-headers.ts';

export interface SendGridSettings extends HttpSettings {
  readonly apiKey: string;
  /** Of its event webhook: base64 of a DER SubjectPublicKeyInfo. Without it notifications are refused. */
  readonly notificationKey?: string;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

const RECEIPTS: Readonly<Record<string, Receipt>> = {
  delivered: 'delivered',
  open: 'opened',
  bounce: 'bounced',
  dropped: 'bounced',
  spamreport: 'complained',
};

/** Mail by SendGrid's v3 API. It has no idempotency key. */
export function createSendGrid(
  { apiKey, notificationKey, baseUrl, timeoutMs }: SendGridSettings,
  { dispatcher, clock }: Deps,
): MessageProvider<OutgoingEmail> {
  const url = urlBelow(baseUrl, 'v3/mail/send');
  const headers = { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' };
  const key =
    notificationKey === undefined
      ? undefined
      : createPublicKey({ key: Buffer.from(notificationKey, 'base64'), format: 'der', type: 'spki' });
  return {
    name: 'sendgrid',
    channel: 'email',
    async send(email, signal) {
      const body = JSON.stringify(bodyOf(email));
      const answer = await callProvider(dispatcher, { method: 'POST', url, headers, body, timeoutMs }, signal);
      if (answer.result !== 'answered') return outcomeWithoutAnswer(answer);
      if (answer.status === 202) return acceptedAs(textOf(answer.headers['x-message-id']));
      if (answer.status === 403) return { outcome: 'refused', cause: 'sender', reason: '403' };
      return outcomeOfStatus(answer, clock.now());
    },
    readNotification: (notification) => (key === undefined ? 'forged' : readNotification(notification, key)),
    close: async () => {},
  };
}

function acceptedAs(providerId: string | undefined): SendOutcome {
  return providerId === undefined
    ? { outcome: 'unknown', reason: 'no X-Message-Id' }
    : { outcome: 'accepted', providerId };
}

/** Pure. The body of https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send. */
function bodyOf({
  id,
  from,
  to,
  cc,
  bcc,
  replyTo,
  subject,
  text,
  html,
  attachments,
  unsubscribeUrl,
}: OutgoingEmail): unknown {
  return {
    personalizations: [
      {
        to: [mailboxOf(to)],
        ...(cc.length > 0 && { cc: cc.map(mailboxOf) }),
        ...(bcc.length > 0 && { bcc: bcc.map(mailboxOf) }),
      },
    ],
    // Of all recipients, and so in all their events.
    custom_args: { message_id: id },
    from: mailboxOf(from),
    ...(replyTo !== undefined && { reply_to: mailboxOf(replyTo) }),
    subject,
    content: [{ type: 'text/plain', value: text }, ...(html === undefined ? [] : [{ type: 'text/html', value: html }])],
    ...(attachments.length > 0 && {
      attachments: attachments.map(({ filename, contentType, content }) => ({
        filename,
        type: contentType,
        content: Buffer.from(content).toString('base64'),
        disposition: 'attachment',
      })),
    }),
    ...(unsubscribeUrl !== undefined && { headers: unsubscribeHeaders(unsubscribeUrl) }),
  };
}

function mailboxOf({ address, name }: Mailbox): { readonly email: string; readonly name?: string } {
  return { email: address, ...(name !== undefined && { name }) };
}

/** ECDSA over the time and the bytes that came, with the line break at their end. */
function readNotification({ headers, body }: ProviderNotification, key: KeyObject): NotificationReading {
  const signature = Buffer.from(headers['x-twilio-email-event-webhook-signature'] ?? '', 'base64');
  const timestamp = headers['x-twilio-email-event-webhook-timestamp'] ?? '';
  if (!verify('sha256', Buffer.concat([Buffer.from(timestamp), body]), key, signature)) return 'forged';
  const events = foreignJson(Buffer.from(body).toString('utf8'));
  return Array.isArray(events) ? { reports: events.flatMap(reportOf) } : 'unreadable';
}

function reportOf(value: unknown): readonly ProviderReport[] {
  const { sg_event_id, sg_message_id, message_id, email, event, status, reason } = fieldsOf(value);
  const eventKey = textOf(sg_event_id);
  if (eventKey === undefined || typeof event !== 'string') return [];
  const receipt = RECEIPTS[event];
  // Its own id is followed by what it did with the mail.
  const providerId = textOf(sg_message_id)?.split('.')[0];
  const messageId = textOf(message_id);
  const recipient = textOf(email);
  const code = statusCodeOf(textOf(status) ?? textOf(reason) ?? '');
  const suppress = suppressionOf(event, code);
  return [
    {
      eventKey,
      ...(providerId !== undefined && { providerId }),
      ...(messageId !== undefined && { messageId }),
      ...(recipient !== undefined && { recipient }),
      ...(receipt !== undefined && { receipt }),
      ...(code !== undefined && { reason: code }),
      ...(suppress !== undefined && { suppress }),
    },
  ];
}

function suppressionOf(event: string, code: string | undefined): Suppression | undefined {
  if (event === 'spamreport') return { kind: 'complained' };
  if (event === 'unsubscribe' || event === 'group_unsubscribe') return { kind: 'opted-out' };
  return event === 'bounce' && isUnknownAddress(code) ? { kind: 'address-unknown' } : undefined;
}
