import type { Payment } from './payments.ts';

/** What webhooks and channels tell of a payment: nothing of the payer. */
export function paymentEventData(payment: Payment): Readonly<Record<string, unknown>> {
  const { id, money, state, provider, reason, balance, invoiceId, createdAt } = payment;
  return {
    id,
    amount: Number(money.amount),
    currency: money.currency,
    status: state,
    provider,
    reason: reason ?? null,
    amountRefunded: Number(balance.refunded),
    invoiceId: invoiceId ?? null,
    createdAt: createdAt.toISOString(),
  };
}
