import type { Clock } from '@rollcall/platform/clock.ts';
import { urlBelow } from '@rollcall/platform/outbound/base-url.ts';
import type { Dispatcher } from 'undici';
import type { MessageProvider, OutgoingPush, SendOutcome } from '../domain/ports.ts';
import {
  type CallResult,
  callProvider,
  fieldsOf,
  type HttpSettings,
  jsonFields,
  outcomeOfStatus,
  outcomeWithoutAnswer,
  textOf,
} from './http-call.ts';
import { createServiceAccountTokens, type ServiceAccount } from './service-account-token.ts';

export interface FcmSettings extends HttpSettings {
  readonly projectId: string;
  readonly account: ServiceAccount;
}

interface Deps {
  readonly dispatcher: Dispatcher;
  readonly clock: Clock;
}

/** Firebase asks to wait so long where an answer of 429 does not say. */
const QUOTA_PAUSE_MS = 60_000;

/** Push messages by FCM's HTTP v1 API. It has no idempotency key. */
export function createFcm(
  { projectId, account, baseUrl, timeoutMs }: FcmSettings,
  { dispatcher, clock }: Deps,
): MessageProvider<OutgoingPush> {
  const url = urlBelow(baseUrl, `v1/projects/${projectId}/messages:send`);
  const tokens = createServiceAccountTokens(account, { dispatcher, clock, timeoutMs });
  return {
    name: 'fcm',
    channel: 'push',
    async send(push, signal) {
      if (push.target.platform !== 'fcm') return { outcome: 'refused', cause: 'recipient', reason: 'not of fcm' };
      const token = await tokens.get();
      if (typeof token !== 'string') return token;
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
      const body = JSON.stringify({ message: messageOf(push, push.target.token) });
      const answer = await callProvider(dispatcher, { method: 'POST', url, headers, body, timeoutMs }, signal);
      if (answer.result === 'answered' && answer.status === 401) tokens.forget();
      return outcomeOf(answer, clock.now());
    },
    close: async () => {},
  };
}

/** Pure. The resource `projects.messages` of FCM v1. */
function messageOf({ title, body, data }: OutgoingPush, token: string): unknown {
  const hasText = title !== undefined || body !== undefined;
  return {
    token,
    ...(hasText && { notification: { ...(title !== undefined && { title }), ...(body !== undefined && { body }) } }),
    ...(Object.keys(data).length > 0 && { data }),
    android: { priority: 'HIGH' },
  };
}

/** Pure. By https://firebase.google.com/docs/reference/fcm/rest/v1/ErrorCode. */
function outcomeOf(answer: CallResult, now: Date): SendOutcome {
  if (answer.result !== 'answered') return outcomeWithoutAnswer(answer);
  const { name, error } = jsonFields(answer.body);
  if (answer.status === 200) {
    const providerId = textOf(name);
    return providerId === undefined ? { outcome: 'unknown', reason: 'no name' } : { outcome: 'accepted', providerId };
  }
  const code = errorCodeOf(error);
  if (code !== undefined && TOKEN_GONE.has(code)) return goneFor(code);
  if (code === 'THIRD_PARTY_AUTH_ERROR') return { outcome: 'refused', cause: 'credentials', reason: code };
  if (code === 'INVALID_ARGUMENT') {
    return namesToken(error) ? goneFor(code) : { outcome: 'refused', cause: 'content', reason: code };
  }
  const outcome = outcomeOfStatus(answer, now);
  const isQuota = answer.status === 429 && outcome.outcome === 'failed' && outcome.retryAfterMs === undefined;
  return isQuota ? { ...outcome, retryAfterMs: QUOTA_PAUSE_MS } : outcome;
}

/** What says that the app is no longer there, or belongs to somebody else. */
const TOKEN_GONE: ReadonlySet<string> = new Set(['UNREGISTERED', 'SENDER_ID_MISMATCH']);

function goneFor(reason: string): SendOutcome {
  return { outcome: 'refused', cause: 'recipient', reason, suppress: { kind: 'token-gone' } };
}

function detailsOf(error: unknown): readonly Readonly<Record<string, unknown>>[] {
  const { details } = fieldsOf(error);
  return Array.isArray(details) ? details.map(fieldsOf) : [];
}

function errorCodeOf(error: unknown): string | undefined {
  const detail = detailsOf(error).find((found) => String(found['@type']).endsWith('google.firebase.fcm.v1.FcmError'));
  return textOf(detail?.['errorCode']);
}

/**
 * Whether the token is what is wrong with the argument. A payload that is too large is an
 * INVALID_ARGUMENT, too, and says nothing of the device.
 */
function namesToken(error: unknown): boolean {
  const violations = detailsOf(error).flatMap(({ fieldViolations }) =>
    Array.isArray(fieldViolations) ? fieldViolations.map(fieldsOf) : [],
  );
  return violations.length > 0 && violations.every(({ field }) => field === 'message.token');
}
