import type { Clock } from '@rollcall/platform/clock.ts';
import type { DeliveryAttempt, Notification, Severity } from './delivery-ports.ts';
import { RegistryError } from './errors.ts';
import { sign } from './signatures.ts';
import { checkServiceName } from './validation.ts';
import {
  channelFault,
  type Endpoint,
  findEndpoint,
  settingsWithSecret,
  type WebhookConfigsDeps,
} from './webhook-configs.ts';

const MESSAGE_MAX_BYTES = 16 * 1024;

export interface NotificationInput {
  readonly serviceName: string;
  readonly channel: string;
  readonly message: string;
  readonly severity: Severity;
}

export interface NotifyDeps extends WebhookConfigsDeps {
  /** Resolves once the notification is stored durably. */
  readonly enqueue: (notification: Notification) => Promise<void>;
  readonly clock: Clock;
}

/**
 * Accepts a notification for sending (contract 1, `/webhooks/notify`).
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST, CHANNEL_NOT_FOUND.
 */
export async function notify(deps: NotifyDeps, input: NotificationInput): Promise<void> {
  checkServiceName(input.serviceName);
  const fault = channelFault(input.channel) ?? messageFault(input.message);
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', fault);
  const endpoint = await findEndpoint(deps, input.serviceName, input.channel);
  if (endpoint === undefined) {
    const message = `No endpoint is configured for channel '${input.channel}' of service '${input.serviceName}'`;
    throw new RegistryError('CHANNEL_NOT_FOUND', message);
  }
  await deps.enqueue({ ...input, timestamp: deps.clock.now().toISOString() });
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
 * Sends a notification once, to the URL and signed with the secret that are configured now. The body is the same at every
 * attempt, and so is the id, by which a receiver knows a repetition.
 *
 * @throws the store's errors when the configuration cannot be read: the attempt is to be made again.
 */
export async function sendNotification(
  deps: SendDeps,
  id: string,
  notification: Notification,
): Promise<DeliveryAttempt> {
  const endpoint = await findEndpoint(deps, notification.serviceName, notification.channel);
  if (endpoint === undefined) return { result: 'refused', reason: 'the channel is no longer configured' };
  const body = JSON.stringify({
    service_name: notification.serviceName,
    channel: notification.channel,
    message: notification.message,
    severity: notification.severity,
    timestamp: notification.timestamp,
    id,
  });
  const signature = await signatureFor(deps, endpoint, body);
  if (signature === 'missing') return { result: 'failed', reason: 'the secret to sign with is missing' };
  const headers = {
    'content-type': 'application/json',
    'webhook-id': id,
    'webhook-timestamp': String(Math.floor(deps.clock.now().getTime() / 1000)),
    ...signature,
  };
  try {
    return attemptOf(await deps.post({ url: endpoint.url, headers, body }));
  } catch (error) {
    return { result: 'failed', reason: `no answer: ${causeOf(error)}` };
  }
}

/**
 * Signed with the secret of the configuration that names the URL, for its receiver knows no other; the global secret where
 * that has none.
 */
async function signatureFor(
  deps: SendDeps,
  { settings }: Endpoint,
  body: string,
): Promise<Readonly<Record<string, string>> | 'missing'> {
  const signing = settings.secretRef === undefined ? await settingsWithSecret(deps, settings.serviceName) : settings;
  if (signing === undefined) return {};
  const secret = await deps.configs.readSecret(signing);
  return secret === undefined ? 'missing' : { 'x-webhook-signature': sign(secret, body) };
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
