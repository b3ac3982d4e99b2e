import { ServiceError } from '@rollcall/platform/errors.ts';
import type { PayingDeps } from './invoice-payments.ts';
import { amountDue } from './invoices.ts';
import { chargeable } from './methods.ts';
import type { NextStep } from './subscriptions.ts';

/** More than there is to do for a subscription that nobody looked at for years of days. */
const MOST_STEPS = 1000;
/** A checkout is up to its payer; what becomes of it tells itself. */
const CHECKOUT_MS = 3_600_000;
/** Until somebody has mended the settings. */
const SETTINGS_MS = 600_000;

/**
 * Does all that is due for a subscription: invoices, charges, reminders, moves. Called by any
 * replica at any time, also twice at once, it does each thing once.
 */
export async function runSubscription(deps: PayingDeps, id: string): Promise<void> {
  for (let step = 0; step < MOST_STEPS; step += 1) {
    const next = await deps.subscriptions.step(id);
    if (next.kind === 'wait') return;
    if (next.kind === 'charge') return makeCharge(deps, next);
  }
}

type Charge = Extract<NextStep, { readonly kind: 'charge' }>;

/**
 * Makes the charge that has begun, by its id: however often it is asked for, the provider is called
 * once. How it ends is told in the transaction of the payment.
 */
async function makeCharge(deps: PayingDeps, { paymentId, invoiceId, record }: Charge): Promise<void> {
  const { subscriptions, payments, invoices, customers } = deps;
  const { subject, customerId, provider, methodId, subscription, isByCheckout } = record;
  if (isByCheckout) {
    // Who was to make it may have died before.
    if ((await payments.find(paymentId)) !== undefined) return subscriptions.putOff(subscription.id, CHECKOUT_MS);
    return subscriptions.endCharge(subscription.id, { paymentId, outcome: 'withdrawn', reason: 'not_tried' });
  }
  const [invoice, customer] = [await invoices.find(invoiceId, undefined), await customers.find(customerId, undefined)];
  const method = chargeable(await deps.methods.listOf([customerId]), { provider, methodId });
  if (invoice === undefined || customer === undefined) throw new Error('What is to be charged for is gone');
  // It was paid in another way since the charge began.
  if (amountDue(invoice) === 0n) return;
  if (method === undefined) {
    // Once it was made, its outcome is another's to tell.
    if ((await payments.find(paymentId)) !== undefined) return;
    return subscriptions.endCharge(subscription.id, { paymentId, outcome: 'failed', reason: 'method_unusable' });
  }
  try {
    const { outcome, retryAfterMs } = await payments.charge({
      id: paymentId,
      subject,
      provider: method.provider,
      money: { amount: amountDue(invoice), currency: invoice.currency },
      customerId,
      customerEmail: customer.email,
      itemName: `Invoice ${invoice.issued?.number ?? ''}`.trim(),
      invoiceId,
      method: method.method,
    });
    if (outcome === 'not_tried' && retryAfterMs !== undefined)
      await subscriptions.putOff(subscription.id, retryAfterMs);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.kind.status >= 500) throw error;
    // Refused before anything was made: the settings, or the currency.
    if ((await payments.find(paymentId)) !== undefined) throw error;
    // That is no fault of the customer: it is charged once the settings have the provider again.
    if (error.code === 'PROVIDER_NOT_CONFIGURED') {
      deps.log.error(
        { subscription: subscription.id, provider: method.provider },
        'a provider that is to charge has no settings',
      );
      await subscriptions.endCharge(subscription.id, { paymentId, outcome: 'withdrawn', reason: 'not_tried' });
      return subscriptions.putOff(subscription.id, SETTINGS_MS);
    }
    await subscriptions.endCharge(subscription.id, { paymentId, outcome: 'failed', reason: error.code.toLowerCase() });
  }
}
