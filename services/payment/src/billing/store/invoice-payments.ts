import { inTransaction, type Pool, type PoolClient } from '@rollcall/platform/postgres/pool.ts';
import { paymentError } from '../../domain/errors.ts';
import { beginCharge } from '../../domain/subscription-changes.ts';
import type { ClaimedInvoice, InvoicePaymentStore, PaymentClaim } from '../domain/invoice-payments.ts';
import { amountDue, type Invoice } from '../domain/invoices.ts';
import { endUnsettled, lockInvoice, MAKING_SECONDS, setPayment } from './settlement.ts';
import { findSubscription, updateSubscription } from './subscription-rows.ts';
import type { StepDeps } from './subscription-steps.ts';

export interface InvoicePaymentDeps extends StepDeps {
  /** Throws while the schema is not there yet. */
  readonly pool: () => Pool;
}

/** Sees to it that one payment at a time pays an invoice. */
export function createInvoicePayments(deps: InvoicePaymentDeps): InvoicePaymentStore {
  const { pool } = deps;
  return {
    claim: (claim) =>
      inTransaction(pool(), async (client) => {
        const invoice = await lockInvoice(client, deps, claim.invoiceId);
        if (invoice === undefined || (claim.owner !== undefined && invoice.subject !== claim.owner)) return undefined;
        return claimInvoice(client, deps, { invoice, claim });
      }),
    release: (invoiceId, paymentId) =>
      inTransaction(pool(), async (client) => {
        const invoice = await lockInvoice(client, deps, invoiceId);
        if (invoice?.paymentId !== paymentId) return;
        await setPayment(client, invoiceId, undefined);
        const { subscription } = invoice;
        const record =
          subscription && (await findSubscription(client, deps.vault, { id: subscription.id, owner: undefined }));
        if (record === undefined) return;
        await endUnsettled(client, deps, { record, paymentId, outcome: 'withdrawn', reason: 'not_tried' });
      }),
  };
}

interface Claiming {
  readonly invoice: Invoice;
  readonly claim: PaymentClaim;
}

async function claimInvoice(client: PoolClient, deps: StepDeps, { invoice, claim }: Claiming): Promise<ClaimedInvoice> {
  const { id, state, paymentId: other } = invoice;
  if (state !== 'open' || amountDue(invoice) === 0n) throw paymentError('CONFLICT', { details: { status: state } });
  if (other !== undefined) return { invoice, paymentId: other };
  const { paymentId } = claim;
  await setPayment(client, id, paymentId);
  if (invoice.subscription !== undefined) await claimSubscription(client, deps, { invoice, claim });
  return { invoice: { ...invoice, paymentId }, paymentId };
}

/** While the payer pays nothing is charged. Whoever has invoices sent may pay them at any time. */
async function claimSubscription(client: PoolClient, { vault }: StepDeps, { invoice, claim }: Claiming): Promise<void> {
  const record = await findSubscription(client, vault, { id: invoice.subscription?.id ?? '', owner: undefined });
  if (record?.openInvoiceId !== invoice.id || record.subscription.collection === 'send_invoice') return;
  const { subscription } = record;
  const { open } = subscription;
  if (open === undefined || subscription.state === 'cancelled') return;
  const change = beginCharge(subscription, { key: open.key, attempt: open.attempts + 1 });
  if (change.kind !== 'changed') throw paymentError('CONFLICT', { details: { status: invoice.state } });
  const { paymentId, isByCheckout } = claim;
  const claimed = { ...record, subscription: change.subscription, openPaymentId: paymentId, isByCheckout };
  await updateSubscription(client, claimed, MAKING_SECONDS);
}
