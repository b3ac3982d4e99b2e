import { createPrivateKey } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { retryAfterMs } from '@rollcall/platform/outbound/retry-after.ts';
import { SignJWT } from 'jose';
import type { MessageProvider, OutgoingPush, SendOutcome } from '../domain/ports.ts';
import { jsonFields, textOf } from './http-call.ts';
import { createHttp2Client, type Http2Answer } from './http2-client.ts';

export interface ApnsSettings {
  /** `https://api.push.apple.com`, or the sandbox. */
  readonly baseUrl: URL;
  readonly teamId: string;
  readonly keyId: string;
  /** The `.p8` file: PKCS #8 as PEM. */
  readonly privateKey: string;
  /** The bundle id of the app. */
  readonly topic: string;
  /** For so long APNs keeps a message for a device that is not there. */
  readonly ttlSeconds: number;
  readonly timeoutMs: number;
}

interface Deps {
  readonly clock: Clock;
}

/** APNs wants a token of 20 to 60 minutes. */
const TOKEN_FOR_MS = 40 * 60 * 1000;
const MOST_BYTES = 4096;

/** Push messages to Apple's devices by APNs, over one connection. It has no idempotency key. */
export function createApns(settings: ApnsSettings, { clock }: Deps): MessageProvider<OutgoingPush> {
  const { baseUrl, topic, ttlSeconds, timeoutMs } = settings;
  const client = createHttp2Client(baseUrl, clock);
  const tokens = createProviderTokens(settings, clock);
  return {
    name: 'apns',
    channel: 'push',
    async send(push, signal) {
      const { id, target } = push;
      if (target.platform !== 'apns') return { outcome: 'refused', cause: 'recipient', reason: 'not of apns' };
      const payload = JSON.stringify(payloadOf(push));
      if (Buffer.byteLength(payload) > MOST_BYTES) return { outcome: 'refused', cause: 'size', reason: 'too large' };
      const headers = {
        authorization: `bearer ${await tokens.get()}`,
        'apns-id': id,
        'apns-topic': topic,
        'apns-push-type': 'alert',
        'apns-priority': '10',
        'apns-expiration': String(Math.floor(clock.now().getTime() / 1000) + ttlSeconds),
      };
      const limit = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      const answer = await client.post({ path: `/3/device/${target.token}`, headers, body: payload }, limit);
      if (answer.result !== 'answered') {
        return { outcome: answer.result === 'not-sent' ? 'failed' : 'unknown', reason: answer.reason };
      }
      const outcome = outcomeOf(answer, { id, now: clock.now() });
      if (outcome.outcome === 'failed' && outcome.reason === 'ExpiredProviderToken') tokens.forget();
      return outcome;
    },
    close: async () => client.close(),
  };
}

/** Pure. What is in `data` stands beside `aps`, where apps look for it. */
function payloadOf({ title, body, data }: OutgoingPush): unknown {
  const { aps: _, ...own } = data;
  return { ...own, aps: { alert: { title, body }, sound: 'default' } };
}

interface Sent {
  readonly id: string;
  readonly now: Date;
}

/** Pure. By the table of reasons in Apple's "Handling notification responses from APNs". */
function outcomeOf({ status, retryAfter, body }: Http2Answer, { id, now }: Sent): SendOutcome {
  // The id of a message is ours, so there is no other to wait for.
  if (status === 200) return { outcome: 'accepted', providerId: id };
  const { reason: given, timestamp } = jsonFields(body);
  const reason = /^[A-Za-z]{1,40}$/.exec(textOf(given) ?? '')?.[0] ?? String(status);
  if (TOKEN_GONE.has(reason)) {
    const since = status === 410 && typeof timestamp === 'number' ? { since: new Date(timestamp) } : {};
    return { outcome: 'refused', cause: 'recipient', reason, suppress: { kind: 'token-gone', ...since } };
  }
  if (reason === 'ExpiredProviderToken') return { outcome: 'failed', reason };
  if (status === 429 || status === 503) {
    const waitMs = retryAfterMs(retryAfter, now);
    // With the status, for it may be one device alone that gets too many.
    return { outcome: 'failed', reason: `${status} ${reason}`, ...(waitMs !== undefined && { retryAfterMs: waitMs }) };
  }
  if (reason === 'BadTopic' || reason === 'TopicDisallowed') return { outcome: 'refused', cause: 'sender', reason };
  if (status === 403) return { outcome: 'refused', cause: 'credentials', reason };
  if (status === 413) return { outcome: 'refused', cause: 'size', reason };
  if (status >= 400 && status < 500) return { outcome: 'refused', cause: 'content', reason };
  return { outcome: 'unknown', reason };
}

const TOKEN_GONE: ReadonlySet<string> = new Set([
  'BadDeviceToken',
  'DeviceTokenNotForTopic',
  'ExpiredToken',
  'Unregistered',
]);

interface ProviderTokens {
  get(): Promise<string>;
  forget(): void;
}

/** One token for all messages: APNs refuses who makes them too often. */
function createProviderTokens({ teamId, keyId, privateKey }: ApnsSettings, clock: Clock): ProviderTokens {
  const key = createPrivateKey(privateKey);
  let current: { readonly token: Promise<string>; readonly untilMs: number } | undefined;
  return {
    get() {
      if (current === undefined || clock.monotonicMs() >= current.untilMs) {
        const token = new SignJWT({})
          .setProtectedHeader({ alg: 'ES256', kid: keyId })
          .setIssuer(teamId)
          .setIssuedAt(Math.floor(clock.now().getTime() / 1000))
          .sign(key);
        current = { token, untilMs: clock.monotonicMs() + TOKEN_FOR_MS };
      }
      return current.token;
    },
    forget() {
      current = undefined;
    },
  };
}
