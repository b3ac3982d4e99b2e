import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { createdQuery, listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, isUuid, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { paymentUrlOf, type SubscribingDeps, subscribe } from '../domain/subscribing.ts';
import {
  cancelSubscription,
  changeSubscription,
  pauseSubscription,
  resumeSubscription,
} from '../domain/subscription-requests.ts';
import { ownerOf } from './requests.ts';
import {
  NewSubscriptionBody,
  SubscriptionAnswer,
  SubscriptionPatch,
  SubscriptionWithUrl,
  subscriptionAnswer,
} from './subscription-schemas.ts';

const tags = ['billing'];

export interface SubscriptionRoutesDeps extends SubscribingDeps {
  readonly idempotency: Idempotency;
}

/** What customers pay again and again. */
export function subscriptionRoutes(deps: SubscriptionRoutesDeps): readonly Routes[] {
  return [creatingRoute(deps), readingRoutes(deps), changingRoutes(deps), pausingRoutes(deps)];
}

function creatingRoute(deps: SubscriptionRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  const refuses = refusals(
    'CUSTOMER_NOT_FOUND',
    'CUSTOMER_ERASED',
    'PLAN_NOT_FOUND',
    'PLAN_INACTIVE',
    'METHOD_NOT_FOUND',
    'COLLECTION_NOT_SUPPORTED',
    'PROVIDER_NOT_CONFIGURED',
    'CURRENCY_NOT_SUPPORTED',
    'AMOUNT_TOO_SMALL',
    'AMOUNT_NOT_SUPPORTED',
    'PAYMENT_FAILED',
    'PROVIDER_ERROR',
    'NO_SELLER',
  );
  return (app) => {
    app.post(
      '/subscriptions',
      {
        config: { refuses },
        schema: {
          tags,
          summary: 'Make a subscription; `paymentUrl` is where the customer pays first, where there is one',
          headers: idempotencyHeaders,
          body: NewSubscriptionBody,
          response: { 201: SubscriptionWithUrl },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createSubscription',
          effect: async (id) => {
            const { customerId, planId, metadata = {}, ...terms } = request.body;
            const { provider, collection, trialDays, methodId, returnUrl } = terms;
            const wanted = { customerId, planId, provider, collection, trialDays, methodId, returnUrl, metadata };
            const { record, paymentUrl } = await subscribe(deps, { id, owner: ownerOf(request), ...wanted });
            const body = { ...subscriptionAnswer(record), paymentUrl: paymentUrl ?? null };
            return { status: 201, location: `subscriptions/${id}`, body };
          },
        }),
    );
  };
}

function readingRoutes(deps: SubscriptionRoutesDeps): Routes {
  const { subscriptions } = deps;
  const query = Type.Object(
    {
      ...listQuery,
      ...createdQuery,
      customerId: Type.Optional(Type.String({ maxLength: 36 })),
      status: Type.Optional(SubscriptionAnswer.properties.status),
    },
    strict,
  );
  return (app) => {
    app.get(
      '/subscriptions',
      {
        schema: {
          tags,
          summary: 'Subscriptions, newest first',
          querystring: query,
          response: { 200: Type.Object({ subscriptions: Type.Array(SubscriptionAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const { limit, offset } = page;
        const { customerId, status: state } = request.query;
        // What is no id is nobody's.
        if (customerId !== undefined && !isUuid(customerId))
          return { subscriptions: [], total: 0, limit, offset, nextCursor: null };
        const { rows, total, nextCursor } = await subscriptions.list({
          owner: ownerOf(request),
          customerId,
          state,
          page,
        });
        return { subscriptions: rows.map(subscriptionAnswer), total, limit, offset, nextCursor };
      },
    );
    app.get(
      '/subscriptions/:id',
      { schema: { tags, summary: 'One subscription', params: IdParams, response: { 200: SubscriptionWithUrl } } },
      async (request) => {
        const record = found(await subscriptions.find(idOf(request), ownerOf(request)));
        return { ...subscriptionAnswer(record), paymentUrl: (await paymentUrlOf(deps, record)) ?? null };
      },
    );
  };
}

function changingRoutes(deps: SubscriptionRoutesDeps): Routes {
  const AtPeriodEnd = Type.Optional(
    Type.Enum(['true', 'false'], { description: 'Whether it goes on until what is paid is over; false when absent' }),
  );
  return (app) => {
    app.patch(
      '/subscriptions/:id',
      {
        config: {
          refuses: refusals(
            'CONFLICT',
            'PLAN_NOT_FOUND',
            'PLAN_INACTIVE',
            'PLAN_CURRENCY_DIFFERS',
            'INVOICE_TOTAL_NOT_ALLOWED',
            'METHOD_NOT_FOUND',
            'NO_SELLER',
            'CUSTOMER_ERASED',
          ),
        },
        schema: {
          tags,
          summary:
            'Another plan, from today on or, by another interval, with the next period; a method; metadata; or an end',
          params: IdParams,
          body: SubscriptionPatch,
          response: { 200: SubscriptionAnswer },
        },
      },
      async (request) =>
        subscriptionAnswer(
          await changeSubscription(deps, { id: idOf(request), owner: ownerOf(request) }, request.body),
        ),
    );
    app.delete(
      '/subscriptions/:id',
      {
        config: { refuses: refusals('CONFLICT') },
        schema: {
          tags,
          summary: 'End a subscription, now or with the period',
          params: IdParams,
          querystring: Type.Object({ atPeriodEnd: AtPeriodEnd }, strict),
          response: { 200: SubscriptionAnswer },
        },
      },
      async (request) => {
        const [id, owner] = [idOf(request), ownerOf(request)];
        if (request.query.atPeriodEnd !== 'true')
          return subscriptionAnswer(await cancelSubscription(deps, { id, owner }));
        return subscriptionAnswer(await changeSubscription(deps, { id, owner }, { cancelAtPeriodEnd: true }));
      },
    );
  };
}

function pausingRoutes(deps: SubscriptionRoutesDeps): Routes {
  const once = answersOnce(deps.idempotency);
  const routes = [
    { verb: 'pause', summary: 'Stop billing; time in a pause is not billed', act: pauseSubscription },
    { verb: 'resume', summary: 'Bill again, from today on', act: resumeSubscription },
  ] as const;
  return (app) => {
    for (const { verb, summary, act } of routes) {
      app.post(
        `/subscriptions/:id/${verb}`,
        {
          config: { refuses: refusals('CONFLICT') },
          schema: {
            tags,
            summary,
            headers: idempotencyHeaders,
            params: IdParams,
            response: { 200: SubscriptionAnswer },
          },
        },
        (request, reply) =>
          once(request, reply, {
            operation: `${verb}Subscription`,
            effect: async () => {
              const record = await act(deps, { id: idOf(request), owner: ownerOf(request) });
              return { status: 200, body: subscriptionAnswer(record) };
            },
          }),
      );
    }
  };
}
