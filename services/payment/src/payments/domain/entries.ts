import { type LedgerEntry, type ProviderEntryKind, providerEntry } from '../../domain/ledger.ts';
import type { Money } from '../../domain/ports.ts';
import { type Doubt, wasBooked } from './money-in-doubt.ts';
import type { KnownDispute, Payment, Snapshot } from './payments.ts';

/** Keys are of the charge, so that what is entered already is not entered again. */
export function entriesOfCharges(
  snapshot: Snapshot,
  { charges, replaced }: Pick<Doubt, 'charges' | 'replaced'>,
): readonly LedgerEntry[] {
  const { payment } = snapshot;
  return charges
    .filter(({ isBooked }) => isBooked)
    .flatMap(({ chargeRef, money, fee = 0n }) => {
      const cause = `${payment.id}:${chargeRef}`;
      const isNew = replaced === undefined && !wasBooked(snapshot, chargeRef) && money.amount !== 0n;
      const kept = fee === 0n ? [] : [entryOf(payment, 'fee', { cause, money: { ...money, amount: fee } })];
      return [...(isNew ? [entryOf(payment, 'capture', { cause, money })] : []), ...kept];
    });
}

/** What a dispute moves, whatever the payment is: the provider holds money back, gives it back or keeps it. */
export function entriesOfDispute(
  { payment, disputes }: Snapshot,
  { disputeRef, money, state }: KnownDispute,
): readonly LedgerEntry[] {
  const isKnown = disputes.some((dispute) => dispute.disputeRef === disputeRef);
  // Where its opening was never told, both are told by its end.
  const kinds: readonly ProviderEntryKind[] = [
    ...(isKnown ? [] : (['dispute_opened'] as const)),
    ...(state === 'open' ? [] : ([`dispute_${state}`] as const)),
  ];
  return kinds.map((kind) => entryOf(payment, kind, { cause: `${payment.id}:${disputeRef}`, money }));
}

interface EntryCause {
  readonly cause: string;
  readonly money: Money;
}

/** The entry of a movement of a payment's money. */
export function entryOf(
  { provider, invoiceId }: Pick<Payment, 'provider' | 'invoiceId'>,
  kind: ProviderEntryKind,
  { cause, money }: EntryCause,
): LedgerEntry {
  return providerEntry(kind, { causeId: cause, ...money, provider, forInvoice: invoiceId !== undefined });
}
