import { createHash, randomUUID } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import { type StandardMessage, sign, signStandard } from '../../webhooks/domain/signatures.ts';
import {
  channelFault,
  type Endpoint,
  findEndpoint,
  settingsWithSecret,
  type WebhookConfigsDeps,
} from '../../webhooks/domain/webhook-configs.ts';
import {
  channelFull,
  type Delivery,
  type DeliveryAttempt,
  type DeliveryStore,
  type Severity,
} from './notifications.ts';
import { isSlackEndpoint, slackMessage } from './slack.ts';

const MESSAGE_MAX_BYTES = 16 * 1024;

export interface NotificationInput {
  readonly serviceName: string;
  readonly channel: string;
  readonly message: string;
  readonly severity: Severity;
}

export interface NotifyDeps extends WebhookConfigsDeps {
  readonly deliveries: Pick<DeliveryStore, 'add'>;
  readonly clock: Clock;
}

/**
 * Accepts a notification for sending (contract 1, `/webhooks/notify`). It is stored durably once this returns.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST, CHANNEL_NOT_FOUND, CHANNEL_FULL.
 */
export async function notify(deps: NotifyDeps, input: NotificationInput): Promise<void> {
  const { serviceName, channel, message, severity } = input;
  checkServiceName(serviceName);
  const fault = channelFault(channel) ?? messageFault(message);
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', fault);
  const endpoint = await findEndpoint(deps, serviceName, channel);
  if (endpoint === undefined) {
    const reason = `No endpoint is configured for channel '${channel}' of service '${serviceName}'`;
    throw new RegistryError('CHANNEL_NOT_FOUND', reason);
  }
  const createdAt = deps.clock.now();
  const isStored = await deps.deliveries.add({
    id: randomUUID(),
    serviceName,
    channel,
    event: 'notification',
    payload: { service_name: serviceName, channel, message, severity, timestamp: createdAt.toISOString() },
    lane: laneOf(endpoint.url),
    createdAt,
  });
  if (!isStored) throw channelFull({ serviceName, channel });
}

/** What goes to the same host has the same lane, which does not tell the host. */
export function laneOf(url: string): string {
  const { host = url } = URL.parse(url) ?? {};
  return createHash('sha256').update(host).digest('hex').slice(0, 16);
}

/** The database's JSON holds neither NUL nor half of a surrogate pair. */
function messageFault(message: string): string | undefined {
  if (message === '') return 'message must not be empty';
  if (Buffer.byteLength(message) > MESSAGE_MAX_BYTES) return `message must have at most ${MESSAGE_MAX_BYTES} bytes`;
  if (message.includes('\0') || !message.isWellFormed()) return 'message must not contain NUL or broken surrogates';
  return undefined;
}

export interface HttpPost {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface SendDeps extends WebhookConfigsDeps {
  /** @returns the status of the answer. Throws when there was none in time. */
  readonly post: (request: HttpPost) => Promise<number>;
  readonly clock: Clock;
}

/**
 * Makes one attempt to send a message, to the URL and signed with the secret that are configured now. The body is the same at
 * every attempt, and so is the id, by which a receiver knows a repetition.
 *
 * @throws the store's errors when the configuration cannot be read: the attempt is to be made again.
 */
export async function sendDelivery(deps: SendDeps, delivery: Delivery): Promise<DeliveryAttempt> {
  const { id, serviceName, channel, event, payload } = delivery;
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
    return attemptOf(await deps.post({ url, headers, body }));
  } catch (error) {
    return { result: 'failed', reason: `no answer: ${causeOf(error)}` };
  }
}

/**
 * Signed with the secret of the configuration that names the URL, for its receiver knows no other; the global secret where
 * that has none.
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

/** What an answer says: taken, never to be taken (4xx but 408 and 429), or to be tried again. */
export function attemptOf(status: number): DeliveryAttempt {
  const reason = `answer ${status}`;
  if (status >= 200 && status < 300) return { result: 'delivered', reason };
  const final = status >= 400 && status < 500 && status !== 408 && status !== 429;
  return { result: final ? 'refused' : 'failed', reason };
}

/** A code such as ECONNREFUSED or the name of the error; messages may hold the URL. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  if (!(cause instanceof Error)) return 'unknown';
  return 'code' in cause && typeof cause.code === 'string' ? cause.code : cause.name;
}
