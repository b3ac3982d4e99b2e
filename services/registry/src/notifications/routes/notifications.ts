import type { App } from '@rollcall/platform/http/server.ts';
import { RegistryError } from '../../common/errors.ts';
import { withRawBody } from '../../http/raw-body.ts';
import { ErrorResponse } from '../../http/schemas.ts';
import { proofOf } from '../../webhooks/routes/request-proof.ts';
import { SignatureHeaders } from '../../webhooks/routes/schemas.ts';
import { type DeliveriesDeps, listDeliveries, readDelivery, replayDelivery } from '../domain/notifications.ts';
import {
  DeliveriesQuery,
  DeliveriesResponse,
  DeliveryParams,
  DeliveryRecord,
  deliveryRecord,
  ReplayBody,
  ReplayResponse,
} from './notification-schemas.ts';

const tags = ['webhooks'];
const errors = { '4xx': ErrorResponse, '5xx': ErrorResponse };

/** What is sent to channels: to look at, and to send again. */
export function deliveryRoutes(app: App, deps: DeliveriesDeps): void {
  app.get(
    '/webhooks/deliveries',
    {
      schema: {
        tags,
        summary: 'Notifications that were sent, are on their way or were given up, newest first',
        querystring: DeliveriesQuery,
        response: { 200: DeliveriesResponse, ...errors },
      },
    },
    async (request) => {
      const { service_name: serviceName, state, limit } = request.query;
      const { deliveries, total } = await listDeliveries(deps, { serviceName, state, limit });
      return { deliveries: deliveries.map(deliveryRecord), total };
    },
  );
  app.get(
    '/webhooks/deliveries/:id',
    {
      schema: {
        tags,
        summary: 'One notification, and how far it has come',
        params: DeliveryParams,
        response: { 200: DeliveryRecord, ...errors },
      },
    },
    async (request) => deliveryRecord(await readDelivery(deps, request.params.id)),
  );
  withRawBody(app, (signed) => {
    signed.post(
      '/webhooks/deliveries/:id/replay',
      {
        schema: {
          tags,
          summary: 'Send a notification again, as the same message',
          headers: SignatureHeaders,
          params: DeliveryParams,
          body: ReplayBody,
          response: { 200: ReplayResponse, ...errors },
        },
      },
      async (request) => {
        const { id } = request.params;
        const { delivery_id: namedId, action } = request.body ?? {};
        if ((namedId ?? id) !== id) {
          throw new RegistryError('INVALID_REQUEST', 'delivery_id of the body is not that of the path');
        }
        const isBound = namedId !== undefined && action !== undefined;
        await replayDelivery(deps, id, { ...proofOf(request, request.body, `replay ${id}`), isBound });
        return { status: 'accepted' as const, id };
      },
    );
  });
}
