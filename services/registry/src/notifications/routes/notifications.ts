import { withRawBody } from '@rollcall/platform/http/raw-body.ts';
import type { App } from '@rollcall/platform/http/server.ts';
import { boundProofOf, PROOF_REFUSALS, proofOf } from '../../webhooks/routes/request-proof.ts';
import { SignatureHeaders } from '../../webhooks/routes/schemas.ts';
import {
  listNotifications,
  type NotificationsDeps,
  notify,
  readNotification,
  replayNotification,
} from '../domain/notifications.ts';
import {
  NotificationParams,
  NotificationRecord,
  NotificationsQuery,
  NotificationsResponse,
  NotifyBody,
  NotifyResponse,
  notificationRecord,
  ReplayBody,
  ReplayResponse,
} from './notification-schemas.ts';

const tags = ['webhooks'];

/** What is sent to channels: to ask for, to read, and to send again. */
export function notificationRoutes(app: App, deps: NotificationsDeps): void {
  app.get(
    '/webhooks/deliveries',
    {
      config: { refusals: ['INVALID_SERVICE_NAME', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'Notifications that were sent, are on their way or were given up, newest first',
        querystring: NotificationsQuery,
        response: { 200: NotificationsResponse },
      },
    },
    async (request) => {
      const { service_name: serviceName, state, limit } = request.query;
      const { notifications, total } = await listNotifications(deps, { serviceName, state, limit });
      return { deliveries: notifications.map(notificationRecord), total };
    },
  );
  app.get(
    '/webhooks/deliveries/:id',
    {
      config: { refusals: ['DELIVERY_NOT_FOUND', 'DATABASE_UNAVAILABLE', 'OVERLOADED'] },
      schema: {
        tags,
        summary: 'One notification, and how far it has come',
        params: NotificationParams,
        response: { 200: NotificationRecord },
      },
    },
    async (request) => notificationRecord(await readNotification(deps, request.params.id)),
  );
  withRawBody(app, (signed) => {
    notifyRoute(signed, deps);
    signed.post(
      '/webhooks/deliveries/:id/replay',
      {
        config: { refusals: ['DELIVERY_NOT_FOUND', 'CHANNEL_FULL', 'OVERLOADED', ...PROOF_REFUSALS] },
        schema: {
          tags,
          summary: 'Send a notification again, as the same message',
          headers: SignatureHeaders,
          params: NotificationParams,
          body: ReplayBody,
          response: { 200: ReplayResponse },
        },
      },
      async (request) => {
        const { id } = request.params;
        await replayNotification(deps, id, boundProofOf(request, 'delivery_id', id));
        return { status: 'accepted' as const, id };
      },
    );
  });
}

function notifyRoute(app: App, deps: NotificationsDeps): void {
  app.post(
    '/webhooks/notify',
    {
      config: {
        refusals: ['INVALID_SERVICE_NAME', 'CHANNEL_NOT_FOUND', 'CHANNEL_FULL', 'OVERLOADED', ...PROOF_REFUSALS],
      },
      schema: {
        tags,
        summary: 'Send a notification to a configured channel',
        headers: SignatureHeaders,
        body: NotifyBody,
        response: { 200: NotifyResponse },
      },
    },
    async (request) => {
      const { service_name, channel, message, severity = 'info' } = request.body;
      const proof = proofOf(request, request.body);
      await notify(deps, { serviceName: service_name, channel, message, severity }, proof);
      return { status: 'sent' as const, message: `Notification of '${service_name}' is on its way to '${channel}'` };
    },
  );
}
