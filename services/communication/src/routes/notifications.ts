import { commonError, invalidRequest } from '@rollcall/platform/common-errors.ts';
import { withBytes } from '@rollcall/platform/http/raw-body.ts';
import { noContent } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { OnNotificationRefused } from '@rollcall/platform/webhooks/refused-notifications.ts';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { NotificationReading, ProviderNotification } from '../domain/ports.ts';
import type { ReportStore } from '../domain/reports.ts';

/** SendGrid sends a thousand events at a time, each of less than a kilobyte. */
const BODY_LIMIT_BYTES = 4 * 1024 * 1024;

const Params = Type.Object({ provider: Type.String({ maxLength: 63 }) });

export interface NotificationRoutesDeps {
  readonly store: Pick<ReportStore, 'receive'>;
  /** Undefined: there is no such provider, or it sends none. */
  readonly read: (provider: string, notification: ProviderNotification) => Promise<NotificationReading | undefined>;
  /** Where the provider sends its notifications, without a query. */
  readonly notificationsUrl: (provider: string) => string;
  readonly onRefused: OnNotificationRefused;
  /** Reports may be due now. */
  readonly wake: () => void;
}

const NOT_PROVEN = 'The signature or the token of the report does not hold; see "Going live" in docs/communication.md';

/** `POST /notifications/:provider`: what providers report, which is kept before it is answered. */
export function notificationRoutes({ store, read, notificationsUrl, onRefused, wake }: NotificationRoutesDeps): Routes {
  return (app) => {
    withBytes(app, (scope) => {
      scope.post(
        '/notifications/:provider',
        {
          bodyLimit: BODY_LIMIT_BYTES,
          schema: {
            tags: ['providers'],
            summary: 'What a provider reports; its signature or token has to hold',
            params: Params,
            response: noContent,
          },
        },
        async (request, reply) => {
          const { provider } = request.params;
          const body = bytesOf(request);
          const search = /\?.*$/s.exec(request.raw.url ?? '')?.[0] ?? '';
          const url = `${notificationsUrl(provider)}${search}`;
          const reading = await read(provider, { url, headers: textsOf(request), body });
          if (reading === undefined) throw commonError('NOT_FOUND');
          if (reading === 'forged') {
            onRefused(provider, 'signature');
            throw commonError('UNAUTHENTICATED', { message: NOT_PROVEN });
          }
          if (reading === 'unreadable') {
            onRefused(provider, 'unreadable');
            throw invalidRequest([{ path: 'body', message: 'is no report that is known' }]);
          }
          if ((await store.receive(provider, body, reading.reports)) > 0) wake();
          return reply.status(204).send(null);
        },
      );
    });
  };
}

function bytesOf({ body }: { readonly body?: unknown }): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

function textsOf({ headers }: Pick<FastifyRequest, 'headers'>): Readonly<Record<string, string | undefined>> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, value?.toString()]));
}
