import { type Static, Type } from 'typebox';
import { documented } from '../../http/documented.ts';
import { listQuery } from '../../http/lists.ts';
import { ONE_LINE } from '../../http/patterns.ts';
import { pageAnswer, strict } from '../../http/resources.ts';
import { outboxStates } from '../../queues/outbox-states.ts';
import { httpUrlFault, httpUrlRules, URL_MAX_LENGTH } from '../../service-address.ts';
import type { WebhookDelivery, WebhookEndpoint } from './webhooks.ts';

const Id = Type.String({ format: 'uuid' });
const Timestamp = Type.String({ format: 'date-time' });
const nullable = <Schema extends typeof Timestamp>(schema: Schema) => Type.Union([schema, Type.Null()]);

const Url = Type.Refine(
  Type.String({ maxLength: URL_MAX_LENGTH, description: 'Where events are posted to', ...documented(httpUrlRules) }),
  (url) => httpUrlFault(url) === undefined,
  (url) => httpUrlFault(url) ?? '',
);

/** @param types of a service: what is none of them would never come. */
function eventTypesOf(types: readonly string[]) {
  const kinds = new Set(types.map((type) => type.replace(/\..*/, '.*')));
  const wanted = ['*', ...kinds, ...types];
  return Type.Array(Type.Enum(wanted, { description: 'A type of event, all of a kind, or all that there are' }), {
    minItems: 1,
    maxItems: 50,
    uniqueItems: true,
  });
}

const Description = Type.Union([Type.String({ minLength: 1, maxLength: 200, ...ONE_LINE }), Type.Null()], {
  description: 'For people',
});

/** Bodies of requests. @param types of the events of the service. */
export function endpointBodies(types: readonly string[]) {
  const eventTypes = Type.Optional(eventTypesOf(types));
  const description = Type.Optional(Description);
  const enabled = Type.Boolean({
    description: 'Nothing is sent while it is false; what waits then is sent once it is true',
  });
  return {
    made: Type.Object({ url: Url, eventTypes, description }, strict),
    changed: Type.Object({ url: Type.Optional(Url), eventTypes, description, enabled: Type.Optional(enabled) }, strict),
  };
}

const endpoint = {
  id: Id,
  url: Type.String(),
  eventTypes: Type.Array(Type.String()),
  description: Type.Union([Type.String(), Type.Null()]),
  status: Type.Enum(['enabled', 'disabled']),
  disabledReason: Type.Union([Type.Enum(['owner', 'gone', 'failing']), Type.Null()], {
    description: 'By its owner; it answered 410; it took nothing for five days',
  }),
  createdAt: Timestamp,
};

export const EndpointAnswer = Type.Object(endpoint);
export const NewEndpointAnswer = Type.Object({
  ...endpoint,
  secret: Type.String({ description: 'Of Standard Webhooks; it is not shown again' }),
});
export const RotatedAnswer = Type.Object({
  ...NewEndpointAnswer.properties,
  previousSecretUntil: Type.String({
    format: 'date-time',
    description: 'Until then there are two signatures, also one with the secret of before',
  }),
});
export const EndpointsQuery = Type.Object({ ...listQuery }, strict);
export const EndpointsAnswer = Type.Object({ webhookEndpoints: Type.Array(EndpointAnswer), ...pageAnswer });

const Status = Type.Enum([...outboxStates], { description: 'dead: given up; it can be replayed' });

export const DeliveryAnswer = Type.Object({
  id: Id,
  endpointId: Id,
  eventId: Type.String({ format: 'uuid', description: 'The webhook-id, the same at each attempt' }),
  eventType: Type.String(),
  status: Status,
  attempts: Type.Integer({ description: 'Since it was stored, or last replayed' }),
  lastAttemptAt: nullable(Timestamp),
  lastResult: Type.Union([Type.String(), Type.Null()]),
  nextAttemptAt: nullable(Timestamp),
  createdAt: Timestamp,
});

export const DeliveriesQuery = Type.Object(
  { ...listQuery, endpointId: Type.Optional(Id), eventId: Type.Optional(Id), status: Type.Optional(Status) },
  strict,
);
export const DeliveriesAnswer = Type.Object({ webhookDeliveries: Type.Array(DeliveryAnswer), ...pageAnswer });

export function endpointAnswer(known: WebhookEndpoint): Static<typeof EndpointAnswer> {
  const { id, url, eventTypes, description, disabledReason, createdAt } = known;
  return {
    id,
    url,
    eventTypes: [...eventTypes],
    description,
    status: disabledReason === null ? 'enabled' : 'disabled',
    disabledReason,
    createdAt: createdAt.toISOString(),
  };
}

export function deliveryAnswer(delivery: WebhookDelivery): Static<typeof DeliveryAnswer> {
  const { state: status, lastAttemptAt, nextAttemptAt, createdAt, ...same } = delivery;
  return {
    ...same,
    status,
    lastAttemptAt: lastAttemptAt?.toISOString() ?? null,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
  };
}
