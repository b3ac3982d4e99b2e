import type { Clock } from '@rollcall/platform/clock.ts';
import { type AddressRule, addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import webPush from 'web-push';
import { causesOfMessage, type MessageProvider, type OutgoingPush, type SendOutcome } from '../domain/ports.ts';
import { type CallResult, callProvider, outcomeOfStatus, outcomeWithoutAnswer } from './http-call.ts';

export interface WebPushSettings {
  /** Of VAPID (RFC 8292): who sends, as a URL of https or mailto, and its keys in base64url. */
  readonly vapid: { readonly subject: string; readonly publicKey: string; readonly privateKey: string };
  /** For so long push services keep a message for a device that is not there. */
  readonly ttlSeconds: number;
  readonly timeoutMs: number;
  /** Browsers name the push service, so anybody does: the internet alone where absent. */
  readonly mayConnect?: AddressRule;
}

interface Deps {
  readonly clock: Clock;
}

const CONNECT_TIMEOUT_MS = 3000;
/** Push services take 4096 bytes (RFC 8030, section 7.2); 103 are of the encryption. */
const MOST_BYTES = 3993;

/** Push messages to browsers, by their push services (RFC 8030), encrypted for the browser (RFC 8291). */
export function createWebPush(
  { vapid, ttlSeconds, timeoutMs, mayConnect = addressRules.public }: WebPushSettings,
  { clock }: Deps,
): MessageProvider<OutgoingPush> {
  const agent = createGuardedAgent({ mayConnect, connectTimeoutMs: CONNECT_TIMEOUT_MS, keepAlive: true });
  return {
    name: 'webpush',
    channel: 'push',
    async send(push, signal) {
      const { id, target, title, body, data } = push;
      if (target.platform !== 'webpush') return { outcome: 'refused', cause: 'recipient', reason: 'not of webpush' };
      const payload = JSON.stringify({ id, title, body, data });
      if (Buffer.byteLength(payload) > MOST_BYTES) return { outcome: 'refused', cause: 'size', reason: 'too large' };
      const { endpoint, p256dh, auth } = target;
      const request = encrypt({ endpoint, keys: { p256dh, auth } }, payload, { vapidDetails: vapid, TTL: ttlSeconds });
      if (request === undefined) return { outcome: 'refused', cause: 'recipient', reason: 'keys' };
      const answer = await callProvider(
        agent,
        { method: 'POST', url: new URL(endpoint), ...request, timeoutMs },
        signal,
      );
      return outcomeOf(answer, { id, now: clock.now() });
    },
    close: () => agent.close(),
  };
}

interface EncryptedRequest {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** @returns undefined where the keys of the subscription are no keys. */
function encrypt(
  subscription: webPush.PushSubscription,
  payload: string,
  options: webPush.RequestOptions,
): EncryptedRequest | undefined {
  try {
    const { headers, body } = webPush.generateRequestDetails(subscription, payload, {
      ...options,
      urgency: 'high',
      contentEncoding: 'aes128gcm',
    });
    // Its length is the business of who sends it.
    const { 'Content-Length': _, ...fields } = headers;
    const texts = Object.fromEntries(Object.entries(fields).map(([name, value]) => [name.toLowerCase(), value]));
    return { headers: texts, body: body ?? new Uint8Array() };
  } catch {
    return undefined;
  }
}

interface Sent {
  readonly id: string;
  readonly now: Date;
}

/** Pure. A refusal says nothing of us: whoever gave the endpoint chose who answers. */
function outcomeOf(answer: CallResult, { id, now }: Sent): SendOutcome {
  if (answer.result !== 'answered') {
    const isForbidden = answer.reason === 'ADDRESS_REFUSED';
    return isForbidden
      ? { outcome: 'refused', cause: 'recipient', reason: answer.reason }
      : outcomeWithoutAnswer(answer);
  }
  const { status, headers } = answer;
  if (status === 200 || status === 201 || status === 202) {
    return { outcome: 'accepted', providerId: headers['location'] ?? id };
  }
  if (status === 404 || status === 410) {
    return { outcome: 'refused', cause: 'recipient', reason: String(status), suppress: { kind: 'token-gone' } };
  }
  const outcome = outcomeOfStatus(answer, now);
  const isOfUs = outcome.outcome === 'refused' && !causesOfMessage.has(outcome.cause);
  return isOfUs ? { ...outcome, cause: 'recipient' } : outcome;
}
