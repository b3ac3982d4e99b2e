import { documented } from '@rollcall/platform/http/documented.ts';
import { outboxStates } from '@rollcall/platform/queues/outbox-states.ts';
import { type Static, Type } from 'typebox';
import { Limit, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import { channelRules } from '../../webhooks/domain/webhook-configs.ts';
import { Message, Secret } from '../../webhooks/routes/schemas.ts';
import { messageRules, type Notification } from '../domain/notifications.ts';

const State = Type.Enum([...outboxStates], { description: 'dead: given up, can be replayed' });

/** Neither the URL nor the secret. */
export const NotificationRecord = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The webhook-id that it is sent with' }),
  service_name: ServiceName,
  channel: Type.String(documented(channelRules)),
  event: Type.String({
    description: 'notification, or job.started, job.step, job.succeeded, job.failed, job.rolled_back',
  }),
  state: State,
  attempts: Type.Integer(),
  last_attempt_at: Type.Union([Timestamp, Type.Null()]),
  last_result: Type.Union([Type.String(), Type.Null()]),
  created_at: Timestamp,
  payload: Type.Record(Type.String(), Type.Unknown(), { description: 'The body, but for its id' }),
});

export const NotificationsQuery = Type.Object({
  service_name: Type.Optional(ServiceName),
  state: Type.Optional(State),
  limit: Type.Optional(Limit),
});

export const NotificationsResponse = Type.Object({
  deliveries: Type.Array(NotificationRecord, { description: 'Newest first' }),
  total: Type.Integer({ description: 'Number of notifications that match, whatever the limit' }),
});

export const NotificationParams = Type.Object({ id: Type.String(documented({ format: 'uuid' })) });

/**
 * Where there is no body, there is null. What is signed has to name both, which the proof of the
 * call sees to.
 */
export const ReplayBody = Type.Union([
  Type.Object({
    delivery_id: Type.Optional(
      Type.String({ description: 'That of the path; required where a signature proves the call' }),
    ),
    action: Type.Optional(Type.Literal('replay', { description: 'Required where a signature proves the call' })),
    webhook_secret: Type.Optional(Secret),
  }),
  Type.Null(),
]);

export const ReplayResponse = Type.Object({ status: Type.Literal('accepted'), id: Type.String({ format: 'uuid' }) });

export function notificationRecord(notification: Notification): Static<typeof NotificationRecord> {
  const { lastAttemptAt } = notification;
  return {
    id: notification.id,
    service_name: notification.serviceName,
    channel: notification.channel,
    event: notification.event,
    state: notification.state,
    attempts: notification.attempts,
    last_attempt_at: lastAttemptAt === null ? null : timestamp(lastAttemptAt),
    last_result: notification.lastResult,
    created_at: timestamp(notification.createdAt),
    payload: notification.payload,
  };
}

export const NotifyBody = Type.Object({
  service_name: ServiceName,
  channel: Type.String({
    description: 'A channel of the webhook configuration of the service, or of the global one',
    ...documented(channelRules),
  }),
  message: Type.String({ description: '1 to 16,384 characters without NUL', ...documented(messageRules) }),
  severity: Type.Optional(Type.Enum(['info', 'warning', 'error', 'critical'], { default: 'info' })),
  webhook_secret: Type.Optional(Secret),
  id: Type.Optional(
    Type.Never({ description: 'What the registry sends has one: its signature is not good for calling here' }),
  ),
});

export const NotifyResponse = Type.Object({ status: Type.Literal('sent'), message: Message });
