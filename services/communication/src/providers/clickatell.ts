import type { Clock } from '@rollcall/platform/clock.ts';
import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import type { Dispatcher } from 'undici';
import type {
  MessageProvider,
  NotificationReading,
  OutgoingSms,
  ProviderNotification,
  ProviderReport,
  RefusalCause,
  SendOutcome,
} from '../domain/ports.ts';
import type { Receipt } from '../domain/states.ts';
import {
  callProvider,
  fieldsOf,
  type HttpSettings,
  jsonFields,
  outcomeOfStatus,
  outcomeWithoutAnswer,
  textOf,
} from './http-call.ts';
import { hasToken } from './notification-token.ts';
import { reportsOfAnswer } from './sms-answers.ts';

export interface ClickatellSettings extends HttpSettings {
  readonly apiKey: string;
  /** In the query of the URL that notifications come to, as `token`: they are not signed. */
  readonly notificationToken: string;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

/** Of One API, for one message. Others pass. */
const REFUSALS: Readonly<Record<number, RefusalCause>> = {
  20: 'credit',
  21: 'content',
  23: 'content',
  24: 'content',
  25: 'recipient',
  26: 'recipient',
  27: 'recipient',
};
const OPTED_OUT = 26;

const RECEIPTS: Readonly<Record<string, Receipt>> = {
  SENT_TO_SUPPLIER: 'sent',
  DEVICE_ACK: 'delivered',
  EXPIRED: 'bounced',
  DELIVERY_FAILURE: 'bounced',
  RECIPIENT_DOES_NOT_EXIST: 'bounced',
  STOPPED_BY_USER: 'bounced',
};

/** SMS by Clickatell's One API. It has no idempotency key. */
export function createClickatell(
  { apiKey, notificationToken, baseUrl, timeoutMs }: ClickatellSettings,
  { dispatcher, clock }: Deps,
): MessageProvider<OutgoingSms> {
  const url = urlBelow(baseUrl, 'v1/message');
  // The key alone, without the name of a scheme.
  const headers = { authorization: apiKey, 'content-type': 'application/json' };
  return {
    name: 'clickatell',
    channel: 'sms',
    async send({ id, to, text }, signal) {
      const message = { channel: 'sms', to: to.replace(/^\+/, ''), content: text, clientMessageId: id };
      const body = JSON.stringify({ messages: [message] });
      const answer = await callProvider(dispatcher, { method: 'POST', url, headers, body, timeoutMs }, signal);
      if (answer.result !== 'answered') return outcomeWithoutAnswer(answer);
      // 207: some were taken. Ours is the only one.
      if (answer.status === 202 || answer.status === 207) return outcomeOf(jsonFields(answer.body)['messages']);
      return outcomeOfStatus(answer, clock.now());
    },
    readNotification: (notification) => readNotification(notification, notificationToken),
    close: async () => {},
  };
}

function outcomeOf(messages: unknown): SendOutcome {
  const first: unknown = Array.isArray(messages) ? messages[0] : undefined;
  const { apiMessageId, accepted, error } = fieldsOf(first);
  if (accepted === false) return refusedFor(fieldsOf(error)['code']);
  const providerId = textOf(apiMessageId);
  if (accepted !== true || providerId === undefined) return { outcome: 'unknown', reason: 'no apiMessageId' };
  return { outcome: 'accepted', providerId };
}

function refusedFor(code: unknown): SendOutcome {
  const reason = typeof code === 'number' ? `clickatell ${code}` : 'clickatell';
  const cause = typeof code === 'number' ? REFUSALS[code] : undefined;
  if (cause === undefined) return { outcome: 'failed', reason };
  const refused = { outcome: 'refused', cause, reason } as const;
  return code === OPTED_OUT ? { ...refused, suppress: { kind: 'opted-out' } } : refused;
}

function readNotification({ url, body }: ProviderNotification, token: string): NotificationReading {
  if (!hasToken(url, token)) return 'forged';
  const { event } = jsonFields(Buffer.from(body).toString('utf8'));
  const { messageStatusUpdate: updates, moText: answers } = fieldsOf(event);
  if (!Array.isArray(updates) && !Array.isArray(answers)) return 'unreadable';
  return {
    reports: [
      ...(Array.isArray(updates) ? updates.flatMap(reportOf) : []),
      ...(Array.isArray(answers) ? answers.flatMap(answerOf) : []),
    ],
  };
}

/** A text that a person wrote (mobile originated). */
function answerOf(answer: unknown): readonly ProviderReport[] {
  const { messageId, from, content } = fieldsOf(answer);
  const id = textOf(messageId);
  return id === undefined ? [] : reportsOfAnswer({ id, from: textOf(from) ?? '', text: textOf(content) ?? '' });
}

function reportOf(update: unknown): readonly ProviderReport[] {
  const { messageId, clientMessageId, status } = fieldsOf(update);
  const providerId = textOf(messageId);
  if (providerId === undefined || typeof status !== 'string') return [];
  const receipt = RECEIPTS[status];
  const ourId = textOf(clientMessageId);
  return [
    {
      eventKey: `${providerId}:${status}`,
      providerId,
      ...(ourId !== undefined && { messageId: ourId }),
      ...(receipt !== undefined && { receipt, reason: status }),
      ...(status === 'STOPPED_BY_USER' && { suppress: { kind: 'opted-out' } }),
    },
  ];
}
