import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { answersOnce, found, IdParams, idOf, ownerOf, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { type Static, Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { Id, line, nullable, Timestamp } from '../../schemas.ts';
import type { PaymentStore } from '../domain/payments.ts';
import type { Refunding } from '../domain/refunding.ts';
import type { Refund, RefundStore } from '../domain/refunds.ts';
import { Amount } from './schemas.ts';

const tags = ['payments'];

const NewRefund = Type.Object(
  {
    amount: Type.Optional(Amount),
    reason: Type.Refine(
      line(255, 'For people at the provider; 3 to 255 characters'),
      (text) => text.trim().length >= 3,
      () => 'must have at least 3 characters',
    ),
  },
  strict,
);

const RefundAnswer = Type.Object({
  id: Id,
  paymentId: Id,
  amount: Type.Integer(),
  currency: Type.String(),
  status: Type.Enum(['pending', 'processing', 'succeeded', 'failed', 'needs_review']),
  failure: nullable(Type.String({ description: 'Why it failed, or is in review' })),
  reason: Type.String(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export interface RefundRoutesDeps {
  readonly payments: PaymentStore;
  readonly refunds: RefundStore;
  readonly refunding: Refunding;
  readonly idempotency: Idempotency;
}

/** Money that goes back. */
export function refundRoutes({ payments, refunds, refunding, idempotency }: RefundRoutesDeps): Routes {
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
          refuses: refusals('CONFLICT', 'REFUND_EXCEEDS_PAYMENT', 'REFUND_REFUSED'),
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createRefund',
          effect: async (id) => {
            const { amount, reason } = request.body;
            const refund = await refunding.refund({
              id,
              paymentId: idOf(request),
              owner: ownerOf(request, 'payments'),
              amount: amount === undefined ? undefined : BigInt(amount),
              reason,
            });
            return { status: 201, body: refundAnswer(found(refund)) };
          },
        }),
    );
    app.get(
      '/payments/:id/refunds',
      {
        schema: {
          tags,
          summary: 'The refunds of a payment, newest first',
          params: IdParams,
          response: { 200: Type.Object({ refunds: Type.Array(RefundAnswer) }) },
        },
      },
      async (request) => {
        const payment = found(await payments.find(idOf(request), ownerOf(request, 'payments')));
        return { refunds: (await refunds.list(payment.id)).map(refundAnswer) };
      },
    );
  };
}

function refundAnswer(refund: Refund): Static<typeof RefundAnswer> {
  const { id, paymentId, money, state, failure, reason, createdAt, updatedAt } = refund;
  return {
    id,
    paymentId,
    amount: Number(money.amount),
    currency: money.currency,
    status: state,
    failure: failure ?? null,
    reason,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
