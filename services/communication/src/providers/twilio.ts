import { createHmac } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { storableText } from '@rollcall/platform/outbound/foreign-text.ts';
import { isSameSecret } from '@rollcall/platform/webhooks/signatures.ts';
import type { Dispatcher } from 'undici';
import type {
  MessageProvider,
  NotificationReading,
  OutgoingSms,
  ProviderNotification,
  RefusalCause,
  SendOutcome,
} from '../domain/ports.ts';
import type { Receipt } from '../domain/states.ts';
import {
  basicAuthorization,
  callProvider,
  type HttpSettings,
  jsonFields,
  outcomeOfStatus,
  outcomeWithoutAnswer,
  textOf,
} from './http-call.ts';
import { reportsOfAnswer } from './sms-answers.ts';

export interface TwilioSettings extends HttpSettings {
  readonly accountSid: string;
  /** Also the key of the signatures of its notifications. */
  readonly authToken: string;
  /** A number of ours, an alphanumeric sender, or the sid of a messaging service (`MG…`). */
  readonly sender: string;
  /** Where Twilio reports to; a query with the message's id is added. */
  readonly statusCallbackUrl?: string;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

/** Of https://www.twilio.com/docs/api/errors. */
const REFUSALS: Readonly<Record<number, RefusalCause>> = {
  20003: 'credentials',
  21211: 'recipient',
  21212: 'sender',
  21408: 'sender',
  21603: 'sender',
  21606: 'sender',
  21610: 'recipient',
  21612: 'sender',
  21614: 'recipient',
  21617: 'content',
  21659: 'sender',
  30002: 'credentials',
};
/** A sid; senders of letters may begin so, too. https://www.twilio.com/docs/glossary/what-is-a-sid */
const MESSAGING_SERVICE = /^MG[0-9a-f]{32}$/i;
/** The recipient answered STOP. */
const OPTED_OUT = 21610;

const RECEIPTS: Readonly<Record<string, Receipt>> = {
  sent: 'sent',
  delivered: 'delivered',
  read: 'opened',
  undelivered: 'bounced',
  failed: 'bounced',
};

/** SMS by Twilio's Messages resource, of 2010-04-01. It has no idempotency key. */
export function createTwilio(
  { accountSid, authToken, sender, statusCallbackUrl, baseUrl, timeoutMs }: TwilioSettings,
  { dispatcher, clock }: Deps,
): MessageProvider<OutgoingSms> {
  const url = urlBelow(baseUrl, `2010-04-01/Accounts/${accountSid}/Messages.json`);
  const headers = {
    authorization: basicAuthorization(accountSid, authToken),
    'content-type': 'application/x-www-form-urlencoded',
  };
  return {
    name: 'twilio',
    channel: 'sms',
    async send({ id, to, text }, signal) {
      const form = new URLSearchParams({ To: to, Body: text });
      form.set(MESSAGING_SERVICE.test(sender) ? 'MessagingServiceSid' : 'From', sender);
      if (statusCallbackUrl !== undefined) form.set('StatusCallback', withMessage(statusCallbackUrl, id));
      const answer = await callProvider(
        dispatcher,
        { method: 'POST', url, headers, body: form.toString(), timeoutMs },
        signal,
      );
      if (answer.result !== 'answered') return outcomeWithoutAnswer(answer);
      const { sid, code } = jsonFields(answer.body);
      if (answer.status === 201 || answer.status === 200) return acceptedAs(textOf(sid));
      return refusedFor(code) ?? outcomeOfStatus(answer, clock.now());
    },
    readNotification: (notification) => readNotification(notification, authToken),
    close: async () => {},
  };
}

/** An answer of success without an id cannot be followed, and may yet be one. */
function acceptedAs(sid: string | undefined): SendOutcome {
  return sid === undefined ? { outcome: 'unknown', reason: 'no sid' } : { outcome: 'accepted', providerId: sid };
}

function refusedFor(code: unknown): SendOutcome | undefined {
  const cause = typeof code === 'number' ? REFUSALS[code] : undefined;
  if (cause === undefined) return undefined;
  const refused = { outcome: 'refused', cause, reason: `twilio ${String(code)}` } as const;
  return code === OPTED_OUT ? { ...refused, suppress: { kind: 'opted-out' } } : refused;
}

function withMessage(callback: string, id: string): string {
  const url = new URL(callback);
  url.searchParams.set('message', id);
  return url.href;
}

function readNotification(notification: ProviderNotification, authToken: string): NotificationReading {
  const form = new URLSearchParams(Buffer.from(notification.body).toString('utf8'));
  const signature = notification.headers['x-twilio-signature'];
  if (signature === undefined || !isSameSecret(signature, signTwilio(notification.url, form, authToken)))
    return 'forged';
  const said = (name: string) => storableText(form.get(name) ?? '');
  const [sid, status] = [said('MessageSid'), said('MessageStatus')];
  if (sid === '') return 'unreadable';
  if (status === '') {
    const [from, text, decided] = [said('From'), said('Body'), said('OptOutType')];
    return { reports: reportsOfAnswer({ id: sid, from, text, decided }) };
  }
  const receipt = RECEIPTS[status];
  const code = said('ErrorCode');
  const messageId = new URL(notification.url).searchParams.get('message');
  const isOptOut = Number(code) === OPTED_OUT;
  return {
    reports: [
      {
        eventKey: `${sid}:${status}`,
        providerId: sid,
        ...(messageId !== null && { messageId }),
        ...(receipt !== undefined && { receipt }),
        ...(/^\d{1,6}$/.test(code) && { reason: `twilio ${code}` }),
        ...(isOptOut && { suppress: { kind: 'opted-out' } }),
      },
    ],
  };
}

/**
 * Twilio's signature of a form: the URL and each name with its value, sorted by name.
 * https://www.twilio.com/docs/usage/security#validating-requests
 */
export function signTwilio(url: string, form: URLSearchParams, authToken: string): string {
  const names = [...new Set(form.keys())].sort();
  const pairs = names.flatMap((name) => [...new Set(form.getAll(name))].sort().map((value) => name + value));
  return createHmac('sha1', authToken)
    .update(url + pairs.join(''))
    .digest('base64');
}
