import type { Clock } from '@rollcall/platform/clock.ts';
import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import { foreignJson } from '@rollcall/platform/outbound/foreign-text.ts';
import type { Dispatcher } from 'undici';
import type {
  MessageProvider,
  NotificationReading,
  OutgoingSms,
  ProviderNotification,
  ProviderReport,
  SendOutcome,
} from '../domain/ports.ts';
import { MOST_SEGMENTS } from '../domain/segments.ts';
import type { Receipt } from '../domain/states.ts';
import {
  basicAuthorization,
  callProvider,
  fieldsOf,
  type HttpSettings,
  outcomeOfStatus,
  outcomeWithoutAnswer,
  textOf,
} from './http-call.ts';
import { hasToken } from './notification-token.ts';
import { reportsOfAnswer } from './sms-answers.ts';

export interface BulkSmsSettings extends HttpSettings {
  /** Of an API token: its id and its secret. */
  readonly user: string;
  readonly password: string;
  /** A number or name that the account may send from; its own where absent. */
  readonly sender?: string;
  /** In the query of the URL that notifications come to, as `token`: they are not signed. */
  readonly notificationToken: string;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

/** It forgets deduplication ids after about 12 hours. */
const IDEMPOTENT_FOR_MS = 11 * 3600 * 1000;

const RECEIPTS: Readonly<Record<string, Receipt>> = { SENT: 'sent', DELIVERED: 'delivered', FAILED: 'bounced' };

/** SMS by BulkSMS, JSON API 1.0. */
export function createBulkSms(
  { user, password, sender, notificationToken, baseUrl, timeoutMs }: BulkSmsSettings,
  { dispatcher, clock }: Deps,
): MessageProvider<OutgoingSms> {
  const headers = { authorization: basicAuthorization(user, password), 'content-type': 'application/json' };
  return {
    name: 'bulksms',
    channel: 'sms',
    idempotentForMs: IDEMPOTENT_FOR_MS,
    async send({ to, text, deduplicationId }, signal) {
      const url = urlBelow(baseUrl, 'v1/messages');
      url.search = `?auto-unicode=true&deduplication-id=${deduplicationId}`;
      const body = JSON.stringify({
        to,
        body: text,
        ...(sender !== undefined && { from: sender }),
        deliveryReports: 'ALL',
        // By itself it cuts a text after three.
        longMessageMaxParts: MOST_SEGMENTS,
      });
      const answer = await callProvider(dispatcher, { method: 'POST', url, headers, body, timeoutMs }, signal);
      if (answer.result !== 'answered') return outcomeWithoutAnswer(answer);
      if (answer.status === 200 || answer.status === 201) return acceptedOf(foreignJson(answer.body));
      // It answers 401 to bad credentials, and 403 where the account has no credits.
      if (answer.status === 403) return { outcome: 'refused', cause: 'credit', reason: '403' };
      return outcomeOfStatus(answer, clock.now());
    },
    readNotification: (notification) => readNotification(notification, notificationToken),
    close: async () => {},
  };
}

function acceptedOf(body: unknown): SendOutcome {
  const first: unknown = Array.isArray(body) ? body[0] : undefined;
  const providerId = textOf(fieldsOf(first)['id']);
  return providerId === undefined ? { outcome: 'unknown', reason: 'no id' } : { outcome: 'accepted', providerId };
}

function readNotification({ url, body }: ProviderNotification, token: string): NotificationReading {
  if (!hasToken(url, token)) return 'forged';
  const messages = foreignJson(Buffer.from(body).toString('utf8'));
  if (!Array.isArray(messages)) return 'unreadable';
  // Its trial of the URL is an empty list.
  return { reports: messages.flatMap(reportOf) };
}

function reportOf(message: unknown): readonly ProviderReport[] {
  const { id, type: kind, from, body, status } = fieldsOf(message);
  const providerId = textOf(id);
  if (kind === 'RECEIVED' && providerId !== undefined) {
    return reportsOfAnswer({ id: providerId, from: textOf(from) ?? '', text: textOf(body) ?? '' });
  }
  const { id: statusId, type } = fieldsOf(status);
  if (providerId === undefined || typeof statusId !== 'string' || typeof type !== 'string') return [];
  const receipt = RECEIPTS[type];
  return [
    {
      eventKey: `${providerId}:${statusId}`,
      providerId,
      ...(receipt !== undefined && { receipt }),
      ...(/^[A-Z_.]{1,40}$/.test(statusId) && { reason: statusId }),
    },
  ];
}
