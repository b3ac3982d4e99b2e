import { callerOf } from '@rollcall/platform/http/callers.ts';
import { strict } from '@rollcall/platform/http/resources.ts';
import type { FastifyRequest } from 'fastify';
import { type Static, Type } from 'typebox';
import { Currency, Email, Id, LARGEST, line, Metadata, nullable, ReturnUrl, Timestamp } from '../../schemas.ts';
import type { Payment, PaymentHistoryEntry } from '../domain/payments.ts';
import { paymentUrlOf } from '../domain/take.ts';

export const PaymentStatus = Type.Enum([
  ...(['pending', 'processing', 'succeeded', 'failed', 'expired'] as const),
  ...(['cancelled', 'partially_refunded', 'refunded', 'disputed', 'needs_review'] as const),
]);

export const Provider = Type.Enum(['payfast', 'yoco', 'stripe', 'sandbox']);

/** Of requests; in minor units. */
export const Amount = Type.Integer({ minimum: 1, maximum: LARGEST, description: 'In minor units, such as cents' });

export const NewPayment = Type.Object(
  {
    amount: Amount,
    currency: Currency,
    provider: Type.Optional(Provider),
    customerEmail: Email,
    itemName: Type.Optional(line(255, 'What is paid for, as the payer reads it; `Payment` when absent')),
    customerId: Type.Optional(Type.String({ maxLength: 36, description: 'Of billing, to be found and erased with' })),
    returnUrl: Type.Optional(ReturnUrl),
    metadata: Type.Optional(Metadata),
  },
  strict,
);

const paymentAnswerMembers = {
  id: Id,
  amount: Type.Integer(),
  currency: Type.String(),
  status: PaymentStatus,
  reason: nullable(Type.String({ description: 'Why it failed, or is in review' })),
  provider: Provider,
  customerEmail: Type.String({ description: 'Empty where the customer was erased' }),
  itemName: Type.String(),
  paymentUrl: nullable(Type.String({ description: 'Where the payer goes; null: not yet, or no more' })),
  amountRefunded: Type.Integer(),
  metadata: Type.Record(Type.String(), Type.String()),
  customerId: nullable(Type.String()),
  invoiceId: nullable(Type.String()),
  createdAt: Timestamp,
  updatedAt: Timestamp,
  expiresAt: Timestamp,
};

export const PaymentAnswer = Type.Object(paymentAnswerMembers);

export const PaymentWithEvents = Type.Object({
  ...paymentAnswerMembers,
  events: Type.Array(
    Type.Object({
      at: Timestamp,
      event: Type.String(),
      source: Type.String(),
      from: nullable(Type.String()),
      to: Type.String(),
      reason: nullable(Type.String()),
      actor: nullable(Type.String({ description: 'Who asked for it, where that is not whose payment it is' })),
      note: nullable(Type.String({ description: 'In the words of who decided' })),
    }),
  ),
});

/** Who asks by a scope that sees all; undefined: whose payment it is. */
export function actorOf(request: Pick<FastifyRequest, 'caller'>, owner: string | undefined): string | undefined {
  return owner === undefined ? callerOf(request).subject : undefined;
}

/** As its owner reads it, by whichever door. */
export function paymentAnswer(publicUrl: string, payment: Payment): Static<typeof PaymentAnswer> {
  const { id, money, state, reason, provider, customerEmail, itemName, balance, metadata } = payment;
  return {
    id,
    amount: Number(money.amount),
    currency: money.currency,
    status: state,
    reason: reason ?? null,
    provider,
    customerEmail,
    itemName,
    paymentUrl: paymentUrlOf(publicUrl, payment) ?? null,
    amountRefunded: Number(balance.refunded),
    metadata: { ...metadata },
    customerId: payment.customerId ?? null,
    invoiceId: payment.invoiceId ?? null,
    createdAt: payment.createdAt.toISOString(),
    updatedAt: payment.updatedAt.toISOString(),
    expiresAt: payment.expiresAt.toISOString(),
  };
}

export function eventsAnswer(history: readonly PaymentHistoryEntry[]) {
  return history.map(({ at, ...entry }) => ({ ...entry, at: at.toISOString() }));
}
