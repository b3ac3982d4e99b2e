import { randomUUID } from 'node:crypto';
import { isLongerThan } from '@rollcall/platform/text-rules.ts';
import { RegistryError } from '../../common/errors.ts';
import { checkServiceName } from '../../common/validation.ts';
import type { AdmissionDeps, WebhookCall } from '../../webhooks/domain/call-admission.ts';
import { authorizeCall, channelFault, findEndpoint } from '../../webhooks/domain/webhook-configs.ts';
import { channelFull, laneOf, type NotificationStore, type Severity } from './notifications.ts';

const MESSAGE_MAX_LENGTH = 16 * 1024;
/** What the message may be, as JSON Schema has it. */
export const messageRules = { minLength: 1, maxLength: MESSAGE_MAX_LENGTH, pattern: String.raw`^[^\u0000]*$` };

export interface NotificationInput {
  readonly serviceName: string;
  readonly channel: string;
  readonly message: string;
  readonly severity: Severity;
}

export interface NotifyDeps extends AdmissionDeps {
  readonly notifications: Pick<NotificationStore, 'add'>;
}

/**
 * Accepts a notification for sending (contract 1, `/webhooks/notify`). It is stored durably once
 * this returns.
 *
 * @throws RegistryError INVALID_SERVICE_NAME, INVALID_REQUEST, CHANNEL_NOT_FOUND, CHANNEL_FULL, and
 * as {@link authorizeCall}.
 */
export async function notify(deps: NotifyDeps, input: NotificationInput, proof: WebhookCall): Promise<void> {
  checkServiceName(input.serviceName);
  const admission = await authorizeCall(deps, input.serviceName, proof);
  await admission.carryOut((at) => store(deps, input, at));
}

async function store(deps: NotifyDeps, input: NotificationInput, createdAt: Date): Promise<void> {
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
