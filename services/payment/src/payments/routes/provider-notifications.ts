import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { Id, nullable, Timestamp } from '../../schemas.ts';
import type { Inbox } from '../domain/inbox.ts';
import { Provider } from './schemas.ts';

const tags = ['payments'];

const NotificationAnswer = Type.Object({
  id: Id,
  provider: Provider,
  remark: nullable(Type.String({ description: 'Why a person has to look' })),
  attempts: Type.Integer(),
  createdAt: Timestamp,
});

const Resolution = Type.Object(
  { outcome: Type.Enum(['again', 'done'], { description: 'It is worked on again, or was dealt with by hand' }) },
  strict,
);

export interface ProviderNotificationRoutesDeps {
  readonly inbox: Pick<Inbox, 'list' | 'resolve'>;
  readonly idempotency: Idempotency;
  /** Something is to be worked off. */
  readonly wake: () => void;
}

/** What providers told and nobody could work off. It belongs to no subject: the scope is that of who sees all. */
export function providerNotificationRoutes({ inbox, idempotency, wake }: ProviderNotificationRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  return (app) => {
    app.get(
      '/provider-notifications',
      {
        schema: {
          tags,
          summary: 'Notifications of providers that wait for a person, newest first',
          querystring: Type.Object(listQuery, strict),
          response: { 200: Type.Object({ notifications: Type.Array(NotificationAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const { rows, total, nextCursor } = await inbox.list(page);
        const notifications = rows.map(({ createdAt, ...row }) => ({ ...row, createdAt: createdAt.toISOString() }));
        return { notifications, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
    app.post(
      '/provider-notifications/:id/resolve',
      {
        schema: {
          tags,
          summary: 'Have a notification worked on again, or leave it',
          params: IdParams,
          headers: idempotencyHeaders,
          body: Resolution,
          response: { 200: Type.Object({ id: Id, outcome: Type.String() }) },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'resolveProviderNotification',
          effect: async () => {
            const id = idOf(request);
            const { outcome } = request.body;
            found((await inbox.resolve(id, outcome)) || undefined);
            wake();
            return { status: 200, body: { id, outcome } };
          },
        }),
    );
  };
}
