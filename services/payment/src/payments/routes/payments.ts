import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyHeaders, idempotencyKeyOf, sendOnceAnswer } from '@rollcall/platform/http/idempotency.ts';
import { answersOnce, found, IdParams, idOf, ownerOf, strict } from '@rollcall/platform/http/resources.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { paymentError, refusals } from '../../domain/errors.ts';
import { line } from '../../schemas.ts';
import type { Payment, PaymentStore } from '../domain/payments.ts';
import { listPayments, PaymentsAnswer, PaymentsQuery } from '../listing.ts';
import { type MakingDeps, makePayment } from '../making.ts';
import { actorOf, eventsAnswer, NewPayment, PaymentAnswer, PaymentWithEvents, paymentAnswer } from './schemas.ts';

const tags = ['payments'];

const refusesPayments = refusals(
  'CUSTOMER_NOT_FOUND',
  'CUSTOMER_ERASED',
  'PAYMENT_FAILED',
  'PROVIDER_NOT_CONFIGURED',
  'CURRENCY_NOT_SUPPORTED',
  'AMOUNT_TOO_SMALL',
  'AMOUNT_NOT_SUPPORTED',
  'PROVIDER_ERROR',
);

const Resolution = Type.Object(
  {
    outcome: Type.Enum(['paid', 'unpaid', 'refunded', 'dismissed'], {
      description:
        'What a person found out: of money that was in doubt, whether it is there, or went back; ' +
        'dismissed: it never was, and what is booked stays',
    }),
    reason: Type.Optional(line(255, 'How the person knows; the history of the payment has it')),
  },
  strict,
);

export interface PaymentRoutesDeps extends MakingDeps {
  readonly payments: PaymentStore;
}

/** Payments by payers, and what became of them. */
export function paymentRoutes(deps: PaymentRoutesDeps): Routes {
  return (app) => {
    makingRoutes(deps)(app);
    readingRoutes(deps)(app);
    decidingRoutes(deps)(app);
  };
}

function makingRoutes(deps: PaymentRoutesDeps): Routes {
  return (app) => {
    app.post(
      '/payments',
      {
        schema: {
          tags,
          summary: 'Make a payment; 202 where it is not known yet whether the provider has it',
          headers: idempotencyHeaders,
          body: NewPayment,
          response: { 201: PaymentAnswer, 202: PaymentAnswer },
        },
        config: { refuses: refusesPayments },
      },
      async (request, reply): Promise<void> => {
        const { subject } = callerOf(request);
        const key = idempotencyKeyOf(request.headers);
        await sendOnceAnswer(reply, await makePayment(deps, { subject, key, root: 'body', body: request.body }));
      },
    );
  };
}

function readingRoutes(deps: PaymentRoutesDeps): Routes {
  const { payments, publicUrl } = deps;
  return (app) => {
    app.get(
      '/payments',
      {
        schema: {
          tags,
          summary: 'Payments, newest first',
          querystring: PaymentsQuery,
          response: { 200: PaymentsAnswer },
        },
      },
      async (request) => listPayments(deps, request, request.query),
    );
    app.get(
      '/payments/:id',
      {
        schema: {
          tags,
          summary: 'One payment, with what happened to it',
          params: IdParams,
          response: { 200: PaymentWithEvents },
        },
      },
      async (request) => {
        const payment = found(await payments.find(idOf(request), ownerOf(request, 'payments')));
        const events = eventsAnswer((await payments.histories([payment.id])).get(payment.id) ?? []);
        return { ...paymentAnswer(publicUrl, payment), events };
      },
    );
  };
}

function decidingRoutes({ payments, idempotency, publicUrl }: PaymentRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  const ownOf = async (request: FastifyRequest & { readonly params: { readonly id: string } }): Promise<Payment> =>
    found(await payments.find(idOf(request), ownerOf(request, 'payments')));
  const config = { refuses: refusals('CONFLICT') };
  return (app) => {
    app.post(
      '/payments/:id/cancel',
      {
        schema: {
          tags,
          summary: 'Give up a payment that is not paid yet',
          params: IdParams,
          headers: idempotencyHeaders,
          response: { 200: PaymentAnswer },
        },
        config,
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'cancelPayment',
          effect: async () => {
            const { id, purpose, state } = await ownOf(request);
            // What became of a charge is found out, whatever its owner wants.
            if (purpose === 'charge') throw paymentError('CONFLICT', { details: { status: state } });
            const actor = actorOf(request, ownerOf(request, 'payments'));
            const payment = await payments.change(id, () => ({ event: 'cancel', source: 'caller', actor }));
            return { status: 200, body: paymentAnswer(publicUrl, payment) };
          },
        }),
    );
    app.post(
      '/payments/:id/resolve',
      {
        schema: {
          tags,
          summary: 'Decide on a payment that is in review',
          params: IdParams,
          headers: idempotencyHeaders,
          body: Resolution,
          response: { 200: PaymentAnswer },
        },
        config,
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'resolvePayment',
          effect: async () => {
            const { id } = await ownOf(request);
            const { outcome, reason: note } = request.body;
            const actor = actorOf(request, ownerOf(request, 'payments'));
            const payment = await payments.change(id, ({ payment: { decision } }) =>
              decision === outcome ? undefined : { event: `resolved_${outcome}`, source: 'caller', actor, note },
            );
            return { status: 200, body: paymentAnswer(publicUrl, payment) };
          },
        }),
    );
  };
}
