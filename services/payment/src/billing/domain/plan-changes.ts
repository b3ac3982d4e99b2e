import { randomUUID } from 'node:crypto';
import type { CreditItem } from '../../domain/credit-notes.ts';
import { paymentError } from '../../domain/errors.ts';
import { totalsOf } from '../../domain/invoices.ts';
import { changePlan } from '../../domain/subscription-changes.ts';
import { creditedOf, creditNoteOf, type NewCreditNote } from './credit-notes.ts';
import { amountDue, type Invoice } from './invoices.ts';
import type { Seller } from './sellers.ts';
import type { PlanChoice, SubscriptionRecord } from './subscriptions.ts';

interface PlanChangeInput {
  readonly choice: PlanChoice;
  /** The newest of the subscription. */
  readonly invoice: Invoice | undefined;
  readonly seller: Seller | undefined;
  readonly now: Temporal.Instant;
}

export interface ChangedPlan {
  readonly record: SubscriptionRecord;
  /** For what of the invoice is not used. */
  readonly note: (NewCreditNote & { readonly series: string }) | undefined;
}

/**
 * Another plan for a subscription. What the rest of the period costs less is credited by a note for
 * its invoice, paid or not.
 *
 * @throws ServiceError CONFLICT by its state, or while a payment of an invoice that is to be credited
 * is under way; PLAN_CURRENCY_DIFFERS, INVOICE_TOTAL_NOT_ALLOWED, NO_SELLER.
 */
export function changePlanOf(
  record: SubscriptionRecord,
  { choice, invoice, seller, now }: PlanChangeInput,
): ChangedPlan {
  const { plan, planId, planVersion } = choice;
  const isOwed = invoice !== undefined && (invoice.state === 'paid' || invoice.state === 'open');
  const creditable = isOwed ? totalsOf(invoice.lines).gross - invoice.credited : 0n;
  const unpaid = isOwed ? amountDue(invoice) : 0n;
  const change = changePlan(record.subscription, { plan, at: now, creditable, unpaid });
  if (change.kind === 'refused') {
    if (change.reason === 'currency') throw paymentError('PLAN_CURRENCY_DIFFERS');
    if (change.reason === 'amount') throw paymentError('INVOICE_TOTAL_NOT_ALLOWED');
    throw paymentError('CONFLICT', { details: { status: record.subscription.state } });
  }
  const { subscription } = change;
  const changed =
    subscription.pendingPlan === undefined
      ? { ...record, planId, planVersion, pending: undefined, subscription }
      : { ...record, pending: { planId, planVersion }, subscription };
  if (change.credit === 0n || invoice === undefined) return { record: changed, note: undefined };
  if (seller === undefined) throw paymentError('NO_SELLER');
  const note = creditNoteOf(invoice, {
    id: randomUUID(),
    reason: 'Change of plan',
    items: creditOf(invoice, change.credit),
    series: seller.creditNoteSeries,
    timeZone: record.subscription.schedule.timeZone,
    now,
  });
  return { record: changed, note };
}

/** An amount with tax, taken of the lines from the first on. */
function creditOf({ lines, creditNotes }: Invoice, amount: bigint): readonly CreditItem[] {
  const credited = creditedOf(creditNotes);
  const items: CreditItem[] = [];
  let left = amount;
  for (const [lineIndex, { gross }] of lines.entries()) {
    const free = gross - (credited.get(lineIndex) ?? 0n);
    const part = free < left ? free : left;
    if (part <= 0n) continue;
    items.push({ lineIndex, gross: part });
    left -= part;
  }
  return items;
}
