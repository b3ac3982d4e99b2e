import { callerOf } from '@rollcall/platform/http/callers.ts';
import { idempotencyHeaders } from '@rollcall/platform/http/idempotency.ts';
import { listQuery, pageOf } from '@rollcall/platform/http/lists.ts';
import { answersOnce, found, IdParams, idOf, pageAnswer, strict } from '@rollcall/platform/http/resources.ts';
import type { Idempotency } from '@rollcall/platform/postgres/idempotency.ts';
import type { Routes } from '@rollcall/platform/service/app.ts';
import { type Static, Type } from 'typebox';
import { refusals } from '../../domain/errors.ts';
import { Currency, Id, LARGEST, line, percentOf, TaxBehavior, TaxRate, Timestamp, taxRateOf } from '../../schemas.ts';
import { checkedTerms, type PlanStore, type PlanTerms, type StoredPlan } from '../domain/plans.ts';
import { ownerOf } from './requests.ts';

const tags = ['billing'];

const Amount = Type.Integer({ minimum: 0, maximum: LARGEST, description: 'Of a period, in minor units' });
const Interval = Type.Enum(['day', 'week', 'month', 'year'], {
  description: 'What a period is, `intervalCount` times',
});

const optional = {
  intervalCount: Type.Optional(Type.Integer({ minimum: 1, maximum: 365, description: '1 when absent' })),
  trialDays: Type.Optional(Type.Integer({ minimum: 0, maximum: 730, description: '0 when absent' })),
  taxRate: Type.Optional(TaxRate),
  taxBehavior: Type.Optional(TaxBehavior),
};

const Name = line(120, 'As invoices have it');

const NewPlan = Type.Object(
  { name: Name, amount: Amount, currency: Currency, interval: Interval, ...optional },
  strict,
);

const PlanPatch = Type.Object(
  {
    name: Type.Optional(Name),
    amount: Type.Optional(Amount),
    currency: Type.Optional(Currency),
    interval: Type.Optional(Interval),
    ...optional,
    active: Type.Optional(Type.Boolean({ description: 'Whether new subscriptions may have it' })),
  },
  strict,
);

const PlanAnswer = Type.Object({
  id: Id,
  name: Type.String(),
  amount: Type.Integer(),
  currency: Type.String(),
  interval: Interval,
  intervalCount: Type.Integer(),
  trialDays: Type.Integer(),
  taxRate: Type.Number(),
  taxBehavior: TaxBehavior,
  version: Type.Integer({ description: 'Grows with each change of the terms' }),
  active: Type.Boolean(),
  createdAt: Timestamp,
  updatedAt: Timestamp,
});

export interface PlanRoutesDeps {
  readonly plans: PlanStore;
  readonly idempotency: Idempotency;
}

/** What subscriptions cost. */
export function planRoutes({ plans, idempotency }: PlanRoutesDeps): Routes {
  const once = answersOnce(idempotency);
  const config = { refuses: refusals('INVOICE_TOTAL_NOT_ALLOWED') };
  return (app) => {
    app.post(
      '/plans',
      {
        config,
        schema: {
          tags,
          summary: 'Make a plan',
          headers: idempotencyHeaders,
          body: NewPlan,
          response: { 201: PlanAnswer },
        },
      },
      (request, reply) =>
        once(request, reply, {
          operation: 'createPlan',
          effect: async (id) => {
            const { subject } = callerOf(request);
            const plan = await plans.create({ id, subject, terms: checkedTerms(newTerms(request.body)) });
            return { status: 201, location: `plans/${id}`, body: planAnswer(plan) };
          },
        }),
    );
    app.get(
      '/plans',
      {
        schema: {
          tags,
          summary: 'Plans, newest first',
          querystring: Type.Object({ ...listQuery, active: Type.Optional(Type.Enum(['true', 'false'])) }, strict),
          response: { 200: Type.Object({ plans: Type.Array(PlanAnswer), ...pageAnswer }) },
        },
      },
      async (request) => {
        const page = pageOf(request.query);
        const active = request.query.active === undefined ? undefined : request.query.active === 'true';
        const { rows, total, nextCursor } = await plans.list({ owner: ownerOf(request), active, page });
        return { plans: rows.map(planAnswer), total, limit: page.limit, offset: page.offset, nextCursor };
      },
    );
    app.get(
      '/plans/:id',
      { schema: { tags, summary: 'One plan, in its newest version', params: IdParams, response: { 200: PlanAnswer } } },
      async (request) => planAnswer(found(await plans.find(idOf(request), ownerOf(request)))),
    );
    app.patch(
      '/plans/:id',
      {
        config,
        schema: {
          tags,
          summary: 'Change a plan for new subscriptions; others keep the version that they have',
          params: IdParams,
          body: PlanPatch,
          response: { 200: PlanAnswer },
        },
      },
      async (request) => {
        const { active, ...change } = request.body;
        const plan = await plans.update(idOf(request), ownerOf(request), {
          active,
          terms: (before) => checkedTerms(changedTerms(before, change)),
        });
        return planAnswer(found(plan));
      },
    );
  };
}

function newTerms(body: Static<typeof NewPlan>): PlanTerms {
  const { name, amount, currency, interval, intervalCount = 1, trialDays = 0, taxRate = 0, taxBehavior } = body;
  return {
    name,
    amount: BigInt(amount),
    currency,
    interval: { unit: interval, count: intervalCount },
    trialDays,
    taxRate: taxRateOf(taxRate),
    taxBehavior: taxBehavior ?? 'exclusive',
  };
}

function changedTerms(before: PlanTerms, change: Omit<Static<typeof PlanPatch>, 'active'>): PlanTerms {
  const { interval, intervalCount, amount, taxRate, ...same } = change;
  return {
    ...before,
    ...same,
    interval: { unit: interval ?? before.interval.unit, count: intervalCount ?? before.interval.count },
    amount: amount === undefined ? before.amount : BigInt(amount),
    taxRate: taxRate === undefined ? before.taxRate : taxRateOf(taxRate),
  };
}

function planAnswer({ id, terms, version, active, createdAt, updatedAt }: StoredPlan): Static<typeof PlanAnswer> {
  const { amount, interval, taxRate, ...same } = terms;
  return {
    id,
    ...same,
    amount: Number(amount),
    interval: interval.unit,
    intervalCount: interval.count,
    taxRate: percentOf(taxRate),
    version,
    active,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  };
}
