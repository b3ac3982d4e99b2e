import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { createdQuery, listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, ownerOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { type Static, Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { Id, line, nullable, Timestamp } from '../../schemas.ts';
import type { PaymentStore } from '../domain/payments.ts';
import type { Refunding } from '../domain/refunding.ts';
import type { Refund, RefundStore } from '../domain/refunds.ts';
import { Amount, actorOf } from './schemas.ts';

const tags = ['payments'];

/** PayFast wants one. */
const DEFAULT_REASON = 'Refund';

const NewRefund = Type.Object(
  {
    amount: Type.Optional(Amount),
    reason: Type.Optional(
      Type.Refine(
        line(255, 'For people at the provider; 3 to 255 characters'),
        (text) => text.trim().length >= 3,
        () => 'must have at least 3 characters',
      ),
    ),
  },
  strict,
);

const RefundStatus = Type.Enum(['pending', 'processing', 'succeeded', 'failed', 'needs_review']);

const RefundParams = Type.Object({ ...IdParams.properties, refundId: Type.String({ description: 'UUID' }) });

const Resolution = Type.Object(
  {
    outcome: Type.Enum(['succeeded', 'failed'], {
      description: 'What a person found out: whether the money went back',
    }),
    reason: line(255, 'How the person knows'),
  },
  strict,
);

const RefundAnswer = Type.Object({
  id: Id,
  paymentId: Id,
  amount: Type.Integer(),
  currency: Type.String(),
  status: RefundStatus,
  failure: nullable(Type.String({ description: 'Why it failed, or is in review' })),
  reason: Type.String(),
  resolution: nullable(Type.String({ description: 'Why a person decided so' })),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

const RefundsQuery = Type.Object({ ...listQuery, ...createdQuery, status: Type.Optional(RefundStatus) }, strict);

const RefundsAnswer = Type.Object({ refunds: Type.Array(RefundAnswer), ...pageAnswer });

export interface RefundRoutesDeps {
  readonly payments: PaymentStore;
  readonly refunds: RefundStore;
  readonly refunding: Refunding;
  readonly idempotency: Idempotency;
}

/** Money that goes back. */
export function refundRoutes(deps: RefundRoutesDeps): Routes {
  return (app) => {
    givingRoutes(deps)(app);
    readingRoutes(deps)(app);
    resolvingRoutes(deps)(app);
  };
}

function givingRoutes({ refunding, idempotency }: RefundRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  return (app) => {
    app.post(
      '/payments/:id/refunds',
      {
        schema: {
          tags,
          summary: 'Give back a part of a payment, or all that is left',
          params: IdParams,
          headers: idempotencyHeaders,
          body: NewRefund,
          response: { 201: RefundAnswer },
        },
        config: {
          refuses: refusals('CONFLICT', 'REFUND_EXCEEDS_PAYMENT', 'REFUND_REFUSED', 'PROVIDER_NOT_CONFIGURED'),
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createRefund',
          effect: async (id) => {
            const { amount, reason = DEFAULT_REASON } = request.body;
            const owner = ownerOf(request, 'payments');
            const refund = await refunding.refund({
              id,
              paymentId: idOf(request),
              owner,
              actor: actorOf(request, owner),
              amount: amount === undefined ? undefined : BigInt(amount),
              reason,
            });
            return { status: 201, location: `../../refunds/${id}`, body: refundAnswer(found(refund)) };
          },
        }),
    );
  };
}

function readingRoutes({ payments, refunds }: RefundRoutesDeps): Routes {
  const listOf = async (
    query: Static<typeof RefundsQuery>,
    whose: { readonly owner: string | undefined; readonly paymentId: string | undefined },
  ): Promise<Static<typeof RefundsAnswer>> => {
    const page = pageOf(query);
    const { rows, total, nextCursor } = await refunds.list({ ...whose, status: query.status, page });
    return { refunds: rows.map(refundAnswer), total, limit: page.limit, offset: page.offset, nextCursor };
  };
  return (app) => {
    app.get(
      '/refunds',
      {
        schema: {
          tags,
          summary: 'Refunds of all payments, newest first',
          querystring: RefundsQuery,
          response: { 200: RefundsAnswer },
        },
      },
      async (request) => listOf(request.query, { owner: ownerOf(request, 'payments'), paymentId: undefined }),
    );
    app.get(
      '/refunds/:id',
      { schema: { tags, summary: 'One refund', params: IdParams, response: { 200: RefundAnswer } } },
      async (request) => {
        const owner = ownerOf(request, 'payments');
        const refund = await refunds.find(idOf(request));
        return refundAnswer(found(owner === undefined || refund?.subject === owner ? refund : undefined));
      },
    );
    app.get(
      '/payments/:id/refunds',
      {
        schema: {
          tags,
          summary: 'The refunds of a payment, newest first',
          params: IdParams,
          querystring: RefundsQuery,
          response: { 200: RefundsAnswer },
        },
      },
      async (request) => {
        const owner = ownerOf(request, 'payments');
        const { id: paymentId } = found(await payments.find(idOf(request), owner));
        return listOf(request.query, { owner, paymentId });
      },
    );
  };
}

function resolvingRoutes({ refunding, idempotency }: RefundRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  return (app) => {
    app.post(
      '/payments/:id/refunds/:refundId/resolve',
      {
        schema: {
          tags,
          summary: 'Decide on a refund that is in review',
          params: RefundParams,
          headers: idempotencyHeaders,
          body: Resolution,
          response: { 200: RefundAnswer },
        },
        config: { refuses: refusals('CONFLICT') },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'resolveRefund',
          effect: async () => {
            const owner = ownerOf(request, 'payments');
            const refundId = idOf({ params: { id: request.params.refundId } });
            const where = { paymentId: idOf(request), refundId, owner, actor: actorOf(request, owner) };
            const refund = found(await refunding.resolve({ ...where, ...request.body }));
            return { status: 200, body: refundAnswer(refund) };
          },
        }),
    );
  };
}

function refundAnswer(refund: Refund): Static<typeof RefundAnswer> {
  const { id, paymentId, money, state, failure, reason, resolution, createdAt, updatedAt } = refund;
  return {
    id,
    paymentId,
    amount: Number(money.amount),
    currency: money.currency,
    status: state,
    failure: failure ?? null,
    reason,
    resolution: resolution ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
