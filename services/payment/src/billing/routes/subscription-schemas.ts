import { strict } from '@rollcall/platform/http/resources.ts';
import { type Static, Type } from 'typebox';
import { billingPeriod } from '../../domain/calendar.ts';
import { Id, Metadata, nullable, ReturnUrl, Timestamp } from '../../schemas.ts';
import type { SubscriptionRecord } from '../domain/subscriptions.ts';

export const Provider = Type.Enum(['payfast', 'yoco', 'stripe', 'sandbox'], {
  description: 'Who charges; the default one when absent',
});
const Collection = Type.Enum(['charge_automatically', 'send_invoice'], {
  description: 'By default charged where the provider keeps cards, else invoices are sent',
});

export const NewSubscriptionBody = Type.Object(
  {
    customerId: Type.String({ maxLength: 36 }),
    planId: Type.String({ maxLength: 36 }),
    provider: Type.Optional(Provider),
    collection: Type.Optional(Collection),
    trialDays: Type.Optional(Type.Integer({ minimum: 0, maximum: 730, description: 'In place of those of the plan' })),
    methodId: Type.Optional(
      Type.String({ maxLength: 36, description: 'Of the customer; the newest of the provider when absent' }),
    ),
    returnUrl: Type.Optional(ReturnUrl),
    metadata: Type.Optional(Metadata),
  },
  strict,
);

export const SubscriptionPatch = Type.Object(
  {
    planId: Type.Optional(Type.String({ maxLength: 36, description: 'In its newest version' })),
    methodId: Type.Optional(Type.String({ maxLength: 36 })),
    cancelAtPeriodEnd: Type.Optional(Type.Boolean()),
    metadata: Type.Optional(Metadata),
  },
  strict,
);

const PlainDate = Type.String({ format: 'date' });

export const SubscriptionAnswer = Type.Object({
  id: Id,
  status: Type.Enum(['incomplete', 'trialing', 'active', 'past_due', 'unpaid', 'paused', 'cancelled']),
  customerId: Id,
  planId: Id,
  planVersion: Type.Integer(),
  pendingPlanId: nullable(Type.String({ description: 'Of another interval: it holds from `planChangesAt` on' })),
  planChangesAt: nullable(PlainDate),
  provider: nullable(Provider),
  methodId: nullable(Id),
  collection: Collection,
  timeZone: Type.String({ description: 'Of the customer, when it was made' }),
  trialEnd: nullable(Type.String({ format: 'date', description: 'The first day after the trial' })),
  currentPeriodStart: nullable(PlainDate),
  currentPeriodEnd: Type.String({ format: 'date', description: 'The first day that is not billed' }),
  cancelAtPeriodEnd: Type.Boolean(),
  pendingAmount: Type.Integer({ description: 'For the next invoice, by changes of the plan; in minor units' }),
  creditBalance: Type.Integer({ description: 'With tax, for invoices to come; in minor units' }),
  openInvoiceId: nullable(Id),
  metadata: Type.Record(Type.String(), Type.String()),
  createdAt: Timestamp,
  cancelledAt: nullable(Timestamp),
});

export const SubscriptionWithUrl = Type.Object({
  ...SubscriptionAnswer.properties,
  paymentUrl: nullable(Type.String({ description: 'Where the customer pays first, or has a card kept' })),
});

export function subscriptionAnswer(record: SubscriptionRecord): Static<typeof SubscriptionAnswer> {
  const { subscription } = record;
  const { schedule, nextIndex } = subscription;
  const currentPeriodEnd = billingPeriod(schedule, nextIndex).start.toString();
  return {
    id: subscription.id,
    status: subscription.state,
    customerId: record.customerId,
    planId: record.planId,
    planVersion: record.planVersion,
    pendingPlanId: record.pending?.planId ?? null,
    planChangesAt: record.pending === undefined ? null : currentPeriodEnd,
    provider: record.provider ?? null,
    methodId: record.methodId ?? null,
    collection: subscription.collection,
    timeZone: schedule.timeZone,
    trialEnd: record.trialEnd?.toString() ?? null,
    currentPeriodStart: nextIndex === 0 ? null : billingPeriod(schedule, nextIndex - 1).start.toString(),
    currentPeriodEnd,
    cancelAtPeriodEnd: subscription.cancelAtPeriodEnd,
    pendingAmount: Number(subscription.pendingAmount),
    creditBalance: Number(subscription.creditBalance),
    openInvoiceId: record.openInvoiceId ?? null,
    metadata: { ...record.metadata },
    createdAt: subscription.createdAt.toString(),
    cancelledAt: record.cancelledAt?.toISOString() ?? null,
  };
}
