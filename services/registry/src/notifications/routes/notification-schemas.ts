import { type Static, Type } from 'typebox';
import { Limit, ServiceName, Timestamp, timestamp } from '../../http/schemas.ts';
import { Secret } from '../../webhooks/routes/schemas.ts';
import { type Delivery, deliveryStates } from '../domain/notifications.ts';

const State = Type.Enum([...deliveryStates], { description: 'dead: given up, can be replayed' });

/** Neither the URL nor the secret. */
export const DeliveryRecord = Type.Object({
  id: Type.String({ format: 'uuid', description: 'The webhook-id that it is sent with' }),
  service_name: Type.String(),
  channel: Type.String(),
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

export const DeliveriesQuery = Type.Object({
  service_name: Type.Optional(ServiceName),
  state: Type.Optional(State),
  limit: Type.Optional(Limit),
});

export const DeliveriesResponse = Type.Object({
  deliveries: Type.Array(DeliveryRecord, { description: 'Newest first' }),
  total: Type.Integer({ description: 'Number of deliveries that match, whatever the limit' }),
});

export const DeliveryParams = Type.Object({ id: Type.String() });

/** Where there is no body, there is null. What is signed has to name both, which the proof of the call sees to. */
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

export const ReplayResponse = Type.Object({ status: Type.Literal('accepted'), id: Type.String() });

export function deliveryRecord(delivery: Delivery): Static<typeof DeliveryRecord> {
  const { lastAttemptAt } = delivery;
  return {
    id: delivery.id,
    service_name: delivery.serviceName,
    channel: delivery.channel,
    event: delivery.event,
    state: delivery.state,
    attempts: delivery.attempts,
    last_attempt_at: lastAttemptAt === undefined ? null : timestamp(lastAttemptAt),
    last_result: delivery.lastResult ?? null,
    created_at: timestamp(delivery.createdAt),
    payload: delivery.payload,
  };
}
