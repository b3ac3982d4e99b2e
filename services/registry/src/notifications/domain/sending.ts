import type { Clock } from '@rollcall/platform/clock.ts';
import type { OutboxAttempt } from '@rollcall/platform/queues/outbox-states.ts';
import { failureOf, type Post } from '@rollcall/platform/webhooks/post.ts';
import { type StandardMessage, sign, signStandard } from '@rollcall/platform/webhooks/signatures.ts';
import {
  type Endpoint,
  findEndpoint,
  settingsWithSecret,
  type WebhookConfigsDeps,
} from '../../webhooks/domain/webhook-configs.ts';
import type { Notification } from './notifications.ts';
import { isSlackEndpoint, slackMessage } from './slack.ts';

export interface SendDeps extends WebhookConfigsDeps {
  readonly post: Post;
  readonly clock: Clock;
}

/**
 * Makes one attempt to send a message, to the URL and signed with the secret that are configured
 * now. The body is the same at every attempt, and so is the id, by which a receiver knows a
 * repetition.
 *
 * @throws the store's errors when the configuration cannot be read: the attempt is to be made
 * again.
 */
export async function sendNotification(deps: SendDeps, notification: Notification): Promise<OutboxAttempt> {
  const { id, serviceName, channel, event, payload } = notification;
  const endpoint = await findEndpoint(deps, serviceName, channel);
  if (endpoint === undefined) return { result: 'refused', reason: 'the channel is no longer configured' };
  const { url } = endpoint;
  const body = JSON.stringify(isSlackEndpoint(channel, url) ? slackMessage(event, payload) : { ...payload, id });
  const timestamp = String(Math.floor(deps.clock.now().getTime() / 1000));
  const signatures = await signaturesOf(deps, endpoint, { id, timestamp, body });
  if (signatures === 'missing') return { result: 'failed', reason: 'the secret to sign with is missing' };
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    ...signatures,
  };
  try {
    const { status } = await deps.post({ url, headers, body });
    return attemptOf(status);
  } catch (error) {
    return { result: 'failed', reason: failureOf(error) };
  }
}

/**
 * Signed with the secret of the configuration that names the URL, for its receiver knows no other;
 * the global secret where that has none.
 */
async function signaturesOf(
  deps: SendDeps,
  { settings }: Endpoint,
  message: StandardMessage,
): Promise<Readonly<Record<string, string>> | 'missing'> {
  const signing = settings.secretRef === undefined ? await settingsWithSecret(deps, settings.serviceName) : settings;
  if (signing === undefined) return {};
  const secret = await deps.configs.readSecret(signing);
  if (secret === undefined) return 'missing';
  return {
    'x-webhook-signature': sign(secret, message.body),
    'webhook-signature': signStandard(secret, message),
  };
}

/**
 * What an answer says: accepted, never to be accepted (4xx but 408 and 429), or to be tried again.
 */
export function attemptOf(status: number): OutboxAttempt {
  const reason = `answer ${status}`;
  if (status >= 200 && status < 300) return { result: 'delivered', reason };
  const final = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { result: final ? 'refused' : 'failed', reason };
}
