import { randomBytes } from 'node:crypto';
import type { Clock } from '../../clock.ts';
import { callerOf } from '../../http/callers.ts';
import { idempotencyHeaders } from '../../http/idempotency.ts';
import { pageOf } from '../../http/lists.ts';
import type { Area } from '../../http/operations/operation.ts';
import { answersOnce, found, IdParams, idOf, noContent, ownerOf } from '../../http/resources.ts';
import type { App } from '../../http/server.ts';
import { type AllowedAddresses, addressRules, isRefusedAddress } from '../../outbound/address-rules.ts';
import type { Idempotency } from '../../postgres/idempotency.ts';
import type { Routes } from '../../service/app.ts';
import { urlNotAllowed, webhookError, webhookErrors } from './errors.ts';
import {
  DeliveriesAnswer,
  DeliveriesQuery,
  DeliveryAnswer,
  deliveryAnswer,
  EndpointAnswer,
  EndpointsAnswer,
  EndpointsQuery,
  endpointAnswer,
  endpointBodies,
  NewEndpointAnswer,
  RotatedAnswer,
} from './schemas.ts';
import type { WebhookRecords } from './webhooks.ts';

const tags = ['webhooks'];
const SECRET_BYTES = 32;
const PREVIOUS_SECRET_MS = 24 * 3_600_000;

export interface WebhookRoutesDeps {
  readonly records: WebhookRecords;
  readonly idempotency: Idempotency;
  /** Whose `:admin` sees those of all. */
  readonly area: Area;
  /** Of all events that there are. */
  readonly types: readonly string[];
  readonly addresses: AllowedAddresses;
  readonly clock: Clock;
}

/** Webhooks of subjects: where they are told of their events, and what was sent. */
export function webhookRoutes(deps: WebhookRoutesDeps): Routes {
  return (app) => {
    makeRoute(app, deps);
    readRoutes(app, deps);
    changeRoutes(app, deps);
    upkeepRoutes(app, deps);
    deliveryRoutes(app, deps);
  };
}

function makeRoute(app: App, { records, idempotency, types, addresses }: WebhookRoutesDeps): void {
  const once = answersOnce(idempotency);
  app.post(
    '/webhook-endpoints',
    {
      config: { refuses: Object.values(webhookErrors) },
      schema: {
        tags,
        summary: 'Have events posted to a URL, signed by Standard Webhooks; the only answer with the secret',
        headers: idempotencyHeaders,
        body: endpointBodies(types).made,
        response: { 201: NewEndpointAnswer },
      },
    },
    (request, reply) =>
      once(request, reply, {
        operation: 'createWebhookEndpoint',
        effect: async (id) => {
          const { url, eventTypes = ['*'], description = null } = request.body;
          requireAllowed(url, addresses);
          const { subject } = callerOf(request);
          const made = await records.create({ id, subject, url, eventTypes, description, secret: newSecret() });
          if (made === undefined) throw webhookError('TOO_MANY_WEBHOOK_ENDPOINTS');
          const location = `webhook-endpoints/${id}`;
          return { status: 201, location, body: { ...endpointAnswer(made), secret: made.secret } };
        },
      }),
  );
}

function readRoutes(app: App, { records, area }: WebhookRoutesDeps): void {
  app.get(
    '/webhook-endpoints',
    {
      schema: {
        tags,
        summary: 'Webhook endpoints, newest first',
        querystring: EndpointsQuery,
        response: { 200: EndpointsAnswer },
      },
    },
    async (request) => {
      const page = pageOf(request.query);
      const { rows, total, nextCursor } = await records.list(ownerOf(request, area), page);
      const { limit, offset } = page;
      return { webhookEndpoints: rows.map(endpointAnswer), total, limit, offset, nextCursor };
    },
  );
  app.get(
    '/webhook-endpoints/:id',
    { schema: { tags, summary: 'One webhook endpoint', params: IdParams, response: { 200: EndpointAnswer } } },
    async (request) => endpointAnswer(found(await records.find(idOf(request), ownerOf(request, area)))),
  );
}

function changeRoutes(app: App, { records, area, types, addresses }: WebhookRoutesDeps): void {
  app.patch(
    '/webhook-endpoints/:id',
    {
      config: { refuses: [webhookErrors.URL_NOT_ALLOWED] },
      schema: {
        tags,
        summary: 'Change a webhook endpoint, or enable it again',
        params: IdParams,
        body: endpointBodies(types).changed,
        response: { 200: EndpointAnswer },
      },
    },
    async (request) => {
      const { body } = request;
      if (body.url !== undefined) requireAllowed(body.url, addresses);
      return endpointAnswer(found(await records.change(idOf(request), ownerOf(request, area), body)));
    },
  );
  app.delete(
    '/webhook-endpoints/:id',
    {
      schema: {
        tags,
        summary: 'Forget a webhook endpoint, and what was sent to it',
        params: IdParams,
        response: noContent,
      },
    },
    async (request, reply) => {
      found((await records.remove(idOf(request), ownerOf(request, area))) || undefined);
      return reply.status(204).send(null);
    },
  );
}

function upkeepRoutes(app: App, { records, idempotency, area, clock }: WebhookRoutesDeps): void {
  const once = answersOnce(idempotency);
  const schema = { tags, params: IdParams, headers: idempotencyHeaders };
  app.post(
    '/webhook-endpoints/:id/rotate-secret',
    {
      schema: {
        ...schema,
        summary: 'Give a webhook endpoint another secret; the one before is used beside it for a day',
        response: { 200: RotatedAnswer },
      },
    },
    (request, reply) =>
      once(request, reply, {
        operation: 'rotateWebhookSecret',
        effect: async (id) => {
          const previousUntil = new Date(clock.now().getTime() + PREVIOUS_SECRET_MS).toISOString();
          const rotation = { id, secret: newSecret(), previousUntil };
          const rotated = found(await records.rotate(idOf(request), ownerOf(request, area), rotation));
          const previousSecretUntil = rotated.previous?.until ?? previousUntil;
          return { status: 200, body: { ...endpointAnswer(rotated), secret: rotated.secret, previousSecretUntil } };
        },
      }),
  );
  app.post(
    '/webhook-endpoints/:id/test',
    {
      schema: {
        ...schema,
        summary: 'Send a webhook endpoint an event `webhook.test`',
        response: { 202: DeliveryAnswer },
      },
    },
    (request, reply) =>
      once(request, reply, {
        operation: 'testWebhookEndpoint',
        effect: async (id) => {
          const delivery = found(await records.sendTest(id, idOf(request), ownerOf(request, area)));
          return { status: 202, location: `../../webhook-deliveries/${delivery.id}`, body: deliveryAnswer(delivery) };
        },
      }),
  );
}

function deliveryRoutes(app: App, { records, idempotency, area }: WebhookRoutesDeps): void {
  const once = answersOnce(idempotency);
  app.get(
    '/webhook-deliveries',
    {
      schema: {
        tags,
        summary: 'What was posted, is on its way or was given up, newest first; kept for 30 days',
        querystring: DeliveriesQuery,
        response: { 200: DeliveriesAnswer },
      },
    },
    async (request) => {
      const { endpointId, eventId, status: state, ...query } = request.query;
      const page = pageOf(query);
      const owner = ownerOf(request, area);
      const listed = await records.listDeliveries({ owner, endpointId, eventId, state, page });
      const { rows, total, nextCursor } = listed;
      const { limit, offset } = page;
      return { webhookDeliveries: rows.map(deliveryAnswer), total, limit, offset, nextCursor };
    },
  );
  app.get(
    '/webhook-deliveries/:id',
    { schema: { tags, summary: 'One delivery', params: IdParams, response: { 200: DeliveryAnswer } } },
    async (request) => deliveryAnswer(found(await records.findDelivery(idOf(request), ownerOf(request, area)))),
  );
  app.post(
    '/webhook-deliveries/:id/replay',
    {
      schema: {
        tags,
        summary: 'Send an event again, with the same webhook-id; to a disabled endpoint once it is enabled',
        params: IdParams,
        headers: idempotencyHeaders,
        response: { 202: DeliveryAnswer },
      },
    },
    (request, reply) =>
      once(request, reply, {
        operation: 'replayWebhookDelivery',
        effect: async () => {
          const delivery = found(await records.replay(idOf(request), ownerOf(request, area)));
          return { status: 202, body: deliveryAnswer(delivery) };
        },
      }),
  );
}

/** Where names lead is looked at when something is posted. @throws ServiceError URL_NOT_ALLOWED. */
function requireAllowed(url: string, addresses: AllowedAddresses): void {
  const { protocol, hostname } = new URL(url);
  const isSecret = protocol === 'https:' || addresses !== 'public';
  if (!isSecret || isRefusedAddress(hostname, addressRules[addresses])) throw urlNotAllowed(addresses);
}

/** Of Standard Webhooks ("Signature scheme"). */
function newSecret(): string {
  return `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
}
