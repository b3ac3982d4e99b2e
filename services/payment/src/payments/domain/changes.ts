import { isDeepStrictEqual } from 'node:util';
import { type LedgerEntry, type ProviderEntryKind, providerEntry } from '../../domain/ledger.ts';
import { total } from '../../domain/money.ts';
import { type LateCapture, movePayment, type PaymentEvent, type PaymentState } from '../../domain/payment-states.ts';
import type { Money, Redirect, StoredMethod } from '../../domain/ports.ts';
import { refundable } from '../../domain/refunds.ts';
import type { KnownCharge, Payment, Snapshot } from './payments.ts';

/** Who says that something happened. */
export type ChangeSource = 'caller' | 'provider' | 'notification' | 'lookup' | 'schedule';

/** Something that happened to a payment. */
export interface PaymentChange {
  /** `checkout_made` and `attempt_failed` move no state. */
  readonly event: PaymentEvent | 'checkout_made' | 'attempt_failed';
  readonly source: ChangeSource;
  /** A word for programs; nothing personal. */
  readonly reason?: string | undefined;
  /** The money that the provider says it has. */
  readonly charge?: Omit<KnownCharge, 'isBooked'> | undefined;
  /** Of a dispute. */
  readonly disputed?: Money | undefined;
  readonly checkout?: { readonly checkoutRef: string; readonly redirect: Redirect } | undefined;
  readonly chargeRef?: string | undefined;
  /** That the provider keeps for charges without the payer. */
  readonly method?: StoredMethod | undefined;
}

/** What is to be written, all of it in one transaction. */
export interface PlannedChange {
  readonly payment: Payment;
  /** Undefined: the state stays. */
  readonly movedFrom: PaymentState | undefined;
  /** Charges that are new or not as they were. */
  readonly charges: readonly KnownCharge[];
  readonly entries: readonly LedgerEntry[];
  /** That the provider did not keep before, for charges without the payer. */
  readonly method: StoredMethod | undefined;
  /** In minor units: what came too late, and goes back. */
  readonly refund: bigint;
}

/**
 * Pure. What a change makes of a payment.
 *
 * @returns undefined where somebody asks for what the state of the payment refuses.
 */
export function planChange(
  snapshot: Snapshot,
  change: PaymentChange,
  lateCapture: LateCapture,
): PlannedChange | undefined {
  const before = snapshot.payment;
  const { event } = change;
  const fields = { ...before, ...fieldsOf(before, change) };
  if (event === 'checkout_made' || event === 'attempt_failed') {
    return { payment: fields, movedFrom: undefined, charges: [], entries: [], method: undefined, refund: 0n };
  }
  const { transition, refundAll } = movePayment({ state: before.state, balance: before.balance }, event, lateCapture);
  if (transition.kind === 'refused') return undefined;
  const to = transition.kind === 'moved' ? transition.to : before.state;
  const charges = chargesAfter(snapshot, change, booksCharges(event, to) && to !== before.state);
  const booked = charges.filter(({ isBooked, chargeRef }) => isBooked && !wasBooked(snapshot, chargeRef));
  const balance = {
    ...before.balance,
    captured: before.balance.captured + total(booked.map(({ money }) => money.amount)),
  };
  const reason = transition.kind === 'moved' ? change.reason : before.reason;
  const payment = { ...fields, state: to, reason, balance: settledBalance(balance, event) };
  const isMoved = transition.kind === 'moved';
  return {
    payment,
    movedFrom: isMoved ? before.state : undefined,
    charges,
    entries: [...entriesOfCharges(before, charges), ...(isMoved ? otherEntries(before, balance, change) : [])],
    method: change.method?.token === before.method?.token ? undefined : change.method,
    refund: refundAll ? refundable(balance) : 0n,
  };
}

/** A second charge never takes the place of the first: refunds are of that, and are looked up by it. */
function fieldsOf(before: Payment, { checkout, chargeRef, charge, method }: PaymentChange): Partial<Payment> {
  const isKnown = before.chargeRef !== undefined && before.balance.captured > 0n;
  const reference = isKnown ? undefined : (charge?.chargeRef ?? chargeRef);
  return {
    ...checkout,
    ...(reference === undefined ? {} : { chargeRef: reference }),
    ...(method === undefined ? {} : { method }),
  };
}

/** Whether by the event what the provider has is taken for ours; what is in doubt waits for a person. */
function booksCharges(event: PaymentEvent, to: PaymentState): boolean {
  return event === 'resolved_paid' || event === 'resolved_refunded' || (event === 'captured' && to !== 'needs_review');
}

/** Where the balance is after a decision of a person that all has gone back. */
function settledBalance(balance: Payment['balance'], event: PaymentEvent): Payment['balance'] {
  if (event !== 'resolved_refunded') return balance;
  return { ...balance, refunded: balance.captured - balance.reserved };
}

/** Those that change by it. @param books whether what is in doubt is booked now. */
function chargesAfter(snapshot: Snapshot, { charge, event }: PaymentChange, books: boolean): readonly KnownCharge[] {
  const { payment, charges } = snapshot;
  const known = charges.find(({ chargeRef }) => chargeRef === charge?.chargeRef);
  const told =
    charge === undefined ? [] : [{ ...charge, fee: charge.fee ?? known?.fee, isBooked: known?.isBooked ?? false }];
  const others = charges.filter(({ chargeRef }) => chargeRef !== charge?.chargeRef);
  const all: readonly KnownCharge[] = [...others, ...told];
  const isNothingKnown = all.length === 0 && event === 'resolved_paid' && payment.balance.captured === 0n;
  // A person says so, of what no provider has told us.
  const asDecided = isNothingKnown ? [{ ...ownCharge(payment), isBooked: false }] : all;
  return asDecided
    .map((each) => (books && isOfCurrency(payment)(each) ? { ...each, isBooked: true } : each))
    .filter((each) => !charges.some((old) => isDeepStrictEqual(old, each)));
}

function ownCharge({ id, chargeRef, money }: Payment): Omit<KnownCharge, 'isBooked'> {
  return { chargeRef: chargeRef ?? `decided:${id}`, money, fee: undefined };
}

function wasBooked({ charges }: Snapshot, reference: string): boolean {
  return charges.some(({ chargeRef, isBooked }) => isBooked && chargeRef === reference);
}

function isOfCurrency({ money: { currency } }: Payment): (charge: KnownCharge) => boolean {
  return ({ money }) => money.currency === currency;
}

/** Keys are of the charge, so that what is entered already is not entered again. */
function entriesOfCharges(payment: Payment, charges: readonly KnownCharge[]): readonly LedgerEntry[] {
  return charges
    .filter(({ isBooked }) => isBooked)
    .flatMap(({ chargeRef, money, fee = 0n }) => {
      const cause = `${payment.id}:${chargeRef}`;
      const taken = money.amount === 0n ? [] : [entryOf(payment, 'capture', { cause, money })];
      const kept = fee === 0n ? [] : [entryOf(payment, 'fee', { cause, money: { ...money, amount: fee } })];
      return [...taken, ...kept];
    });
}

function otherEntries(
  payment: Payment,
  { captured, refunded, reserved }: Payment['balance'],
  { event, disputed }: PaymentChange,
): readonly LedgerEntry[] {
  const { id: cause, state, money } = payment;
  const rest = captured - refunded - reserved;
  if (event === 'resolved_refunded') {
    return rest === 0n ? [] : [entryOf(payment, 'refund', { cause, money: { ...money, amount: rest } })];
  }
  if (disputed === undefined) return [];
  return disputeKinds(event, state).map((kind) => entryOf(payment, kind, { cause, money: disputed }));
}

function disputeKinds(event: PaymentChange['event'], state: PaymentState): readonly ProviderEntryKind[] {
  if (event === 'dispute_opened' || event === 'dispute_won') return [event];
  if (event !== 'dispute_lost') return [];
  // Where its opening was never told, both are told by its end.
  return state === 'disputed' ? ['dispute_lost'] : ['dispute_opened', 'dispute_lost'];
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
