import type { PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { moveSubscription, withdrawCharge } from '../../domain/subscription-changes.ts';
import type { Payment } from '../../payments/domain/payments.ts';
import type { OnPaymentMoved } from '../../payments/store/write-payment.ts';
import { amountDue, type Invoice } from '../domain/invoices.ts';
import type { ChargeEnd, SubscriptionRecord } from '../domain/subscriptions.ts';
import { markPaid, tellOfSurplus } from './invoice-changes.ts';
import { findInvoice, instantOf } from './invoice-rows.ts';
import { tellOfChange } from './subscription-events.ts';
import { findSubscription, lockSubscription, updateSubscription } from './subscription-rows.ts';
import { failedCharge, type StepDeps } from './subscription-steps.ts';

/**
 * What becomes of invoices and subscriptions as their payments move, in the transaction of the
 * payment. Locks are taken in one order everywhere: payment, subscription, invoice.
 */
export function createSettlement(deps: StepDeps): OnPaymentMoved {
  return async (client, { payment, method, isReturned }) => {
    const { customerId, provider, invoiceId } = payment;
    if (method !== undefined && payment.erasedAt !== undefined) {
      await deps.methods.forget(client, { provider, method });
    } else if (method !== undefined && customerId !== undefined) {
      const methodId = await deps.methods.keep(client, { customerId, provider, method });
      await useMethod(client, deps, { payment, methodId });
    }
    if (invoiceId === undefined || isReturned) return;
    const invoice = await lockInvoice(client, deps, invoiceId);
    if (invoice !== undefined) await settle(client, deps, { payment, invoice });
  };
}

/** An invoice whose row, and that of its subscription, the transaction has from here on. */
export async function lockInvoice(client: PoolClient, deps: StepDeps, id: string): Promise<Invoice | undefined> {
  const { rows } = await client.query<{ subscription_id: string | null }>(
    'SELECT subscription_id FROM invoices WHERE id = $1',
    [id],
  );
  const subscriptionId = rows[0]?.subscription_id ?? undefined;
  if (subscriptionId !== undefined) await lockSubscription(client, subscriptionId);
  const invoice = await findInvoice(client, deps.sealer, { id, owner: undefined, isLocked: true });
  return invoice?.state === 'open' && invoice.paymentId !== undefined ? withoutDeadClaim(client, invoice) : invoice;
}

/** Until then a payment whose id an invoice has is made. */
export const MAKING_SECONDS = 60;

/** Who claimed it for a payment may have died before that was made. A subscription sees to its own charges. */
async function withoutDeadClaim(client: PoolClient, invoice: Invoice): Promise<Invoice> {
  const { rowCount } = await client.query(
    `UPDATE invoices SET payment_id = NULL, updated_at = now()
     WHERE id = $1 AND updated_at < now() - make_interval(secs => $2)
       AND NOT EXISTS (SELECT FROM payments WHERE payments.id = payment_id)
       AND NOT EXISTS (SELECT FROM subscriptions
         WHERE subscriptions.id = invoices.subscription_id AND open_payment_id = payment_id)`,
    [invoice.id, MAKING_SECONDS],
  );
  return rowCount === 1 ? { ...invoice, paymentId: undefined } : invoice;
}

interface Settling {
  readonly payment: Payment;
  readonly invoice: Invoice;
}

async function settle(client: PoolClient, deps: StepDeps, { payment, invoice }: Settling): Promise<void> {
  const { id, state, reason = 'unknown' } = payment;
  switch (state) {
    case 'succeeded':
      return receive(client, deps, { payment, invoice });
    case 'failed':
    case 'expired':
    case 'cancelled':
      if (invoice.paymentId === id) await failPayment(client, deps, { payment, invoice, reason });
      return;
    case 'needs_review':
      // Nobody pays it again meanwhile.
      if (invoice.paymentId === undefined && waitsFor(invoice, payment)) await setPayment(client, invoice.id, id);
      return;
    case 'refunded':
    case 'partially_refunded':
      // A person said so of money that the invoice never got.
      if (invoice.paymentId === id && invoice.state === 'open')
        await failPayment(client, deps, { payment, invoice, reason: 'refunded' });
      return;
    case 'pending':
    case 'processing':
    case 'disputed':
  }
}

/** Money pays the invoice that waits for so much; what comes beside is told, and is to be given back. */
async function receive(client: PoolClient, deps: StepDeps, { payment, invoice }: Settling): Promise<void> {
  const { balance, money } = payment;
  if (invoice.paymentId === payment.id) {
    await markPaid(client, deps, invoice);
    if (balance.captured - balance.refunded > money.amount) await tellOfSurplus(client, deps, invoice);
    return;
  }
  if (!waitsFor(invoice, payment)) return tellOfSurplus(client, deps, invoice);
  // It was paid late. Whatever else is under way comes beside.
  await setPayment(client, invoice.id, payment.id);
  await markPaid(client, deps, invoice);
}

/** Of what was credited since, less is owed by now: such money is beside it. */
function waitsFor(invoice: Invoice, { money }: Payment): boolean {
  return invoice.state === 'open' && amountDue(invoice) === money.amount;
}

async function failPayment(
  client: PoolClient,
  deps: StepDeps,
  { payment, invoice, reason }: Settling & { readonly reason: string },
): Promise<void> {
  const { id, provider, method } = payment;
  if (reason === 'method_unusable' && method !== undefined) await deps.methods.discard(client, { provider, method });
  await setPayment(client, invoice.id, undefined);
  const { subscription } = invoice;
  const record =
    subscription && (await findSubscription(client, deps.vault, { id: subscription.id, owner: undefined }));
  if (record !== undefined) await endUnsettled(client, deps, { record, paymentId: id, outcome: 'failed', reason });
}

/** Ends the charge of a subscription whose row the transaction has, where it is still that one. */
export async function endUnsettled(
  client: PoolClient,
  deps: StepDeps,
  { record, paymentId, outcome, reason }: ChargeEnd & { readonly record: SubscriptionRecord },
): Promise<void> {
  const { open } = record.subscription;
  if (record.openPaymentId !== paymentId || open?.charge !== 'unsettled') return;
  if (record.openInvoiceId !== undefined) await setPayment(client, record.openInvoiceId, undefined);
  const after = outcome === 'failed' ? await failedCharge(client, deps, { record, reason }) : withdrawn(record);
  await updateSubscription(client, after);
  await tellOfChange(client, deps.recordEvents, { before: record, after });
}

function withdrawn(record: SubscriptionRecord): SubscriptionRecord {
  const { subscription } = record;
  const { open } = subscription;
  if (open === undefined) return record;
  const change = withdrawCharge(subscription, { key: open.key, attempt: open.attempts });
  return change.kind === 'changed' ? { ...record, subscription: change.subscription } : record;
}

/** @param paymentId undefined: none pays the invoice. */
export async function setPayment(client: PoolClient, invoiceId: string, paymentId: string | undefined): Promise<void> {
  await client.query('UPDATE invoices SET payment_id = $2, updated_at = now() WHERE id = $1', [invoiceId, paymentId]);
}

interface KeptMethod {
  readonly payment: Payment;
  readonly methodId: string;
}

/** The subscription that waited for a method has it, and its trial begins. */
async function useMethod(client: PoolClient, deps: StepDeps, { payment, methodId }: KeptMethod): Promise<void> {
  const { rows } = await client.query<{ id: string }>(
    `SELECT id FROM subscriptions WHERE setup_payment_id = $1
     UNION SELECT subscription_id FROM invoices WHERE id = $2 AND subscription_id IS NOT NULL`,
    [payment.id, payment.invoiceId],
  );
  for (const { id } of rows) {
    await lockSubscription(client, id);
    const before = await findSubscription(client, deps.vault, { id, owner: undefined });
    if (before?.subscription.collection !== 'charge_automatically') continue;
    const change = isWaiting(before, payment)
      ? moveSubscription(before.subscription, 'trial_started', instantOf(deps.clock.now()))
      : undefined;
    const subscription = change?.kind === 'changed' ? change.subscription : before.subscription;
    const after = { ...before, methodId, provider: payment.provider, subscription };
    await updateSubscription(client, after);
    await tellOfChange(client, deps.recordEvents, { before, after });
  }
}

function isWaiting({ setupPaymentId, subscription }: SubscriptionRecord, { id }: Payment): boolean {
  return setupPaymentId === id && subscription.state === 'incomplete';
}
