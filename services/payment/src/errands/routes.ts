import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { Provider } from '../payments/routes/schemas.ts';
import { Id, nullable, Timestamp } from '../schemas.ts';
import type { GivenUpErrands } from './given-up.ts';

const tags = ['payments'];

const ErrandAnswer = Type.Object({
  id: Id,
  provider: Provider,
  kind: Type.Enum(['forget_method', 'close_checkout'], {
    description: 'To keep a card no longer, or to let nobody pay at a checkout any more',
  }),
  reason: nullable(Type.String({ description: 'Why the provider has not done it' })),
  attempts: Type.Integer(),
  createdAt: Timestamp,
});

const Resolution = Type.Object(
  { outcome: Type.Enum(['again', 'done'], { description: 'It is run once more, or was dealt with by hand' }) },
  strict,
);

export interface ErrandRoutesDeps {
  readonly errands: GivenUpErrands;
  readonly idempotency: Idempotency;
  /** Something is to be run. */
  readonly wake: () => void;
}

/** What providers were asked in vain. It belongs to no subject: the scope is that of who sees all. */
export function errandRoutes({ errands, idempotency, wake }: ErrandRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  return (app) => {
    app.get(
      '/errands',
      {
        schema: {
          tags,
          summary: 'What providers were asked for two weeks in vain, newest first',
          querystring: Type.Object(listQuery, strict),
          response: { 200: Type.Object({ errands: Type.Array(ErrandAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const { rows, total, nextCursor } = await errands.list(page);
        const answers = rows.map(({ createdAt, ...row }) => ({ ...row, createdAt: createdAt.toISOString() }));
        return { errands: answers, total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
    app.post(
      '/errands/:id/resolve',
      {
        schema: {
          tags,
          summary: 'Ask the provider once more, or leave it',
          params: IdParams,
          headers: idempotencyHeaders,
          body: Resolution,
          response: { 200: Type.Object({ id: Id, outcome: Type.String() }) },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'resolveErrand',
          effect: async () => {
            const id = idOf(request);
            const { outcome } = request.body;
            found((await errands.resolve(id, outcome)) || undefined);
            wake();
            return { status: 200, body: { id, outcome } };
          },
        }),
    );
  };
}
