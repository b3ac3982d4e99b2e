import { createHash, randomUUID } from 'node:crypto';
import type { OutboxState } from '@rollcall/platform/queues/outbox-states.ts';
import { isLongerThan } from '@rollcall/platform/text-rules.ts';
import { RegistryError } from '../../common/errors.ts';
import { parseLimit } from '../../common/limit.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { AdmissionDeps, WebhookCall } from '../../webhooks/domain/call-admission.ts';
import { authorizeCall, channelFault, findEndpoint } from '../../webhooks/domain/webhook-configs.ts';

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const MESSAGE_MAX_LENGTH = 16 * 1024;
/** What the message may be, as JSON Schema has it. */
export const messageRules = { minLength: 1, maxLength: MESSAGE_MAX_LENGTH, pattern: String.raw`^[^\u0000]*$` };

export type Severity = 'info' | 'warning' | 'error' | 'critical';

/**
 * A message to a channel. It holds neither the URL nor the secret: both are read when it is sent.
 */
export interface NewNotification {
  /** By which a receiver knows that it has had the message; the same at every attempt. */
  readonly id: string;
  readonly serviceName: string;
  readonly channel: string;
  /** `notification`, or what happened to a job. */
  readonly event: string;
  /** The body, but for the id. `message` in it is for people. */
  readonly payload: NotificationPayload;
  /** What has the same lane goes to the same host. */
  readonly lane: string;
  readonly createdAt: Date;
}

export type NotificationPayload = Readonly<Record<string, unknown>> & {
  readonly message: string;
  readonly severity: Severity;
};

/** A message to a channel, and how far it has come. */
export interface Notification extends Omit<NewNotification, 'lane'> {
  readonly state: OutboxState;
  readonly attempts: number;
  readonly lastAttemptAt: Date | null;
  /** Without URLs and secrets. */
  readonly lastResult: string | null;
}

export interface NotificationQuery {
  readonly serviceName: string | undefined;
  readonly state: OutboxState | undefined;
  readonly limit: number;
}

/** Something that is sent of a job, once. */
interface JobEventKey {
  readonly jobUid: string;
  readonly event: string;
}

export interface NotificationStore {
  /**
   * Stored durably, each will be sent.
   *
   * @returns false where too many wait for the channel: then nothing is stored.
   */
  add(notification: NewNotification): Promise<boolean>;
  /** What was sent of a job before, by {@link announce}. */
  announced(jobUid: string): Promise<ReadonlySet<string>>;
  /**
   * Stores the notifications unless the event was sent before; one for whose channel too many wait
   * as given up.
   *
   * @returns false when it was sent before.
   */
  announce(event: JobEventKey, notifications: readonly NewNotification[]): Promise<boolean>;
  find(id: string): Promise<Notification | undefined>;
  /** Newest first, and the number of all that match. */
  list(query: NotificationQuery): Promise<{ readonly notifications: readonly Notification[]; readonly total: number }>;
  /**
   * Has it sent once more, with all its attempts, unless it is on its way.
   *
   * @returns false where too many wait for its channel: then nothing has changed.
   */
  replay(id: string): Promise<boolean>;
}

export interface NotificationsDeps extends AdmissionDeps {
  readonly notifications: NotificationStore;
}

/**
 * What was sent to channels, is on its way or was given up, newest first.
 *
 * @param query with `limit` as it stands in the query; 100 when absent.
 * @throws RegistryError INVALID_REQUEST, INVALID_SERVICE_NAME.
 */
export async function listNotifications(
  { notifications }: Pick<NotificationsDeps, 'notifications'>,
  query: Omit<NotificationQuery, 'limit'> & { readonly limit: string | undefined },
): Promise<Awaited<ReturnType<NotificationStore['list']>>> {
  const limit = parseLimit(query.limit);
  if (query.serviceName !== undefined) checkServiceName(query.serviceName);
  return notifications.list({ ...query, limit });
}

/**
 * One message to a channel.
 *
 * @throws RegistryError DELIVERY_NOT_FOUND.
 */
export async function readNotification(
  { notifications }: Pick<NotificationsDeps, 'notifications'>,
  id: string,
): Promise<Notification> {
  const notification = UUID.test(id) ? await notifications.find(id) : undefined;
  if (notification === undefined) throw new RegistryError('DELIVERY_NOT_FOUND', 'There is no notification of this id');
  return notification;
}

/**
 * Has a message sent once more, as the same message, to where its channel leads now.
 *
 * @throws RegistryError DELIVERY_NOT_FOUND, INVALID_SIGNATURE, CHANNEL_FULL.
 */
export async function replayNotification(deps: NotificationsDeps, id: string, proof: WebhookCall): Promise<void> {
  const notification = await readNotification(deps, id);
  const admission = await authorizeCall(deps, notification.serviceName, proof);
  await admission.carryOut(async () => {
    if (!(await deps.notifications.replay(notification.id))) throw channelFull(notification);
  });
}

/** What is answered where too many wait for a channel. */
function channelFull({ serviceName, channel }: Pick<Notification, 'serviceName' | 'channel'>): RegistryError {
  const reason = `Too many notifications wait for channel '${channel}' of service '${serviceName}'`;
  return new RegistryError('CHANNEL_FULL', reason);
}

/** What goes to the same host has the same lane, which does not show the host. */
export function laneOf(url: string): string {
  const { host = url } = URL.parse(url) ?? {};
  return createHash('sha256').update(host).digest('hex').slice(0, 16);
}

export interface NotificationInput {
  readonly serviceName: string;
  readonly channel: string;
  readonly message: string;
  readonly severity: Severity;
}

/**
 * Accepts a notification for sending (contract 1, `/webhooks/notify`). It is stored durably once
 * this returns.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST, CHANNEL_NOT_FOUND, CHANNEL_FULL, and
 * as {@link authorizeCall}.
 */
export async function notify(deps: NotificationsDeps, input: NotificationInput, proof: WebhookCall): Promise<void> {
  checkServiceName(input.serviceName);
  const admission = await authorizeCall(deps, input.serviceName, proof);
  await admission.carryOut((at) => store(deps, input, at));
}

async function store(deps: NotificationsDeps, input: NotificationInput, createdAt: Date): Promise<void> {
  const { serviceName, channel, message, severity } = input;
  const fault = channelFault(channel) ?? messageFault(message);
  if (fault !== undefined) throw new RegistryError('INVALID_REQUEST', fault);
  const endpoint = await findEndpoint(deps, serviceName, channel);
  if (endpoint === undefined) {
    const reason = `No endpoint is configured for channel '${channel}' of service '${serviceName}'`;
    throw new RegistryError('CHANNEL_NOT_FOUND', reason);
  }
  const isStored = await deps.notifications.add({
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

/** The database's JSON holds neither NUL nor half of a surrogate pair. */
function messageFault(message: string): string | undefined {
  if (message === '') return 'message must not be empty';
  if (isLongerThan(message, MESSAGE_MAX_LENGTH)) return `message must have at most ${MESSAGE_MAX_LENGTH} characters`;
  if (message.includes('\0') || !message.isWellFormed()) return 'message must not contain NUL or broken surrogates';
  return undefined;
}
