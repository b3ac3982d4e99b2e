import { total } from '../../domain/money.ts';
import {
  isSettled,
  type LateCapture,
  movePayment,
  type PaymentEvent,
  type PaymentState,
} from '../../domain/payment-states.ts';
import type { Redirect, StoredMethod } from '../../domain/ports.ts';
import { refundable } from '../../domain/refunds.ts';
import { entriesOfCharges, entriesOfDispute, entryOf } from './entries.ts';
import { chargesAfter, type Doubt, doubtAfter, wasBooked } from './money-in-doubt.ts';
import type { Decision, KnownCharge, KnownDispute, KnownReturn, Payment, Snapshot } from './payments.ts';

/** Who says that something happened. */
export type ChangeSource = 'caller' | 'provider' | 'notification' | 'lookup' | 'schedule';

/** Something that happened to a payment. */
export interface PaymentChange {
  /** `checkout_made` and `attempt_failed` move no state. */
  readonly event: PaymentEvent | 'checkout_made' | 'attempt_failed';
  readonly source: ChangeSource;
  /** Who asked for it, where that is not whose payment it is. */
  readonly actor?: string | undefined;
  /** A word for programs; nothing personal. */
  readonly reason?: string | undefined;
  /** In the words of who decides. */
  readonly note?: string | undefined;
  /** The money that the provider says it has. */
  readonly charge?: Omit<KnownCharge, 'isBooked' | 'isDismissed'> | undefined;
  /** The money that the provider says went back, and not by us. */
  readonly returned?: Omit<KnownReturn, 'isBooked' | 'isDismissed'> | undefined;
  readonly dispute?: KnownDispute | undefined;
  readonly checkout?: { readonly checkoutRef: string; readonly redirect: Redirect } | undefined;
  readonly chargeRef?: string | undefined;
  /** That the provider keeps for charges without the payer. */
  readonly method?: StoredMethod | undefined;
  /** When the provider said that it works on it. */
  readonly processingAt?: Date | undefined;
}

/** What is to be written, all of it in one transaction. */
export interface PlannedChange extends Doubt {
  readonly payment: Payment;
  /** Undefined: the state stays. */
  readonly movedFrom: PaymentState | undefined;
  readonly entries: readonly ReturnType<typeof entryOf>[];
  /** That the provider did not keep before, for charges without the payer. */
  readonly method: StoredMethod | undefined;
  /** In minor units: what came too late, and goes back. */
  readonly refund: bigint;
}

const decisions: Readonly<Partial<Record<PaymentChange['event'], Decision>>> = {
  resolved_paid: 'paid',
  resolved_unpaid: 'unpaid',
  resolved_refunded: 'refunded',
  resolved_dismissed: 'dismissed',
};

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
  const { event, dispute } = change;
  const fields = { ...before, ...fieldsOf(before, change) };
  if (event === 'checkout_made' || event === 'attempt_failed') {
    // Why the provider had not made it is over with that.
    const isNoFailure = event === 'checkout_made' && !isSettled(before.state);
    return { ...nothing, payment: isNoFailure ? { ...fields, reason: undefined } : fields };
  }
  const decision = decisions[event];
  if (decision !== undefined && contradicts(snapshot, decision)) return undefined;
  const decided = doubtAfter(snapshot, change, decision);
  const { balance } = decided;
  const isDisputed = isOpenWith(snapshot, dispute);
  // A bank may have taken it back: to give it back is for a person then.
  const late = snapshot.disputes.length === 0 ? lateCapture : 'review';
  const { transition, refundAll } = movePayment({ state: before.state, balance, isDisputed }, event, late);
  if (transition.kind === 'refused') return undefined;
  const to = transition.kind === 'moved' ? transition.to : before.state;
  const isMoved = to !== before.state;
  const captures = event === 'captured' && isMoved && to !== 'needs_review';
  const told = captures ? captured(snapshot, change, decided) : decided;
  const reason = isMoved ? change.reason : before.reason;
  const payment = {
    ...fields,
    state: to,
    reason,
    balance: told.balance,
    decision: decision ?? (isMoved && to === 'needs_review' ? undefined : before.decision),
  };
  return {
    ...told,
    payment,
    movedFrom: isMoved ? before.state : undefined,
    entries: [
      ...entriesOfCharges(snapshot, told),
      ...backEntries(before, told),
      ...(dispute === undefined ? [] : entriesOfDispute(snapshot, dispute)),
    ],
    method: change.method?.token === before.method?.token ? undefined : change.method,
    refund: refundAll ? refundable(told.balance) : 0n,
  };
}

/**
 * Pure. Whether a page of the provider may still take money for what is over here. Our own pages see
 * that for themselves, and what a provider told it knows.
 */
export function leavesCheckoutOpen(
  { event, source }: { readonly event: string; readonly source: ChangeSource },
  { payment, movedFrom }: Pick<PlannedChange, 'payment' | 'movedFrom'>,
): boolean {
  const { state, redirect } = payment;
  if (redirect?.kind !== 'url' || source === 'notification') return false;
  const isOver = state === 'cancelled' || state === 'expired' || state === 'failed';
  // Its checkout may have been made while it was cancelled.
  return isOver && (movedFrom !== undefined || event === 'checkout_made');
}

const nothing = {
  movedFrom: undefined,
  charges: [],
  replaced: undefined,
  returns: [],
  back: 0n,
  disputes: [],
  entries: [],
  method: undefined,
  refund: 0n,
} as const;

/**
 * What is captured is no failure, and money of another currency is not what was asked for. Without
 * anything booked there is nothing that could stay.
 */
function contradicts({ payment, charges }: Snapshot, decision: Decision): boolean {
  const { balance, money } = payment;
  if (decision === 'unpaid') return balance.captured > 0n;
  if (decision === 'dismissed') return balance.captured === 0n;
  const isOther = charges.length > 0 && charges.every((charge) => charge.money.currency !== money.currency);
  return decision === 'paid' && isOther;
}

/** Takes what the provider has for ours. */
function captured(snapshot: Snapshot, change: PaymentChange, decided: Doubt & WithBalance): Doubt & WithBalance {
  const { balance, disputes } = decided;
  const { charges, replaced } = chargesAfter(snapshot, change, 'booked');
  const booked = charges.filter(({ isBooked, chargeRef }) => isBooked && !wasBooked(snapshot, chargeRef));
  const amount = total(booked.map(({ money }) => money.amount));
  return {
    charges,
    replaced,
    returns: [],
    back: 0n,
    disputes,
    balance: { ...balance, captured: balance.captured + amount },
  };
}

interface WithBalance {
  readonly balance: Payment['balance'];
}

/** A second charge never takes the place of the first: refunds are of that, and are looked up by it. */
function fieldsOf(before: Payment, change: PaymentChange): Partial<Payment> {
  const { checkout, chargeRef, charge, method, processingAt } = change;
  const isKnown = before.chargeRef !== undefined && before.balance.captured > 0n;
  const reference = isKnown ? undefined : (charge?.chargeRef ?? chargeRef);
  return {
    ...checkout,
    ...(reference === undefined ? {} : { chargeRef: reference }),
    ...(method === undefined || before.erasedAt !== undefined ? {} : { method }),
    ...(processingAt === undefined ? {} : { processingAt: before.processingAt ?? processingAt }),
  };
}

function isOpenWith({ disputes }: Snapshot, told: KnownDispute | undefined): boolean {
  const others = disputes.filter(({ disputeRef }) => disputeRef !== told?.disputeRef);
  return [...others, ...(told === undefined ? [] : [told])].some(({ state }) => state === 'open');
}

/** Of what a person says went back. As much may go back again, after a bank has returned a refund. */
function backEntries(payment: Payment, { back }: Doubt) {
  if (back === 0n) return [];
  const cause = `${payment.id}:${payment.updatedAt.toISOString()}`;
  return [entryOf(payment, 'refund', { cause, money: { ...payment.money, amount: back } })];
}
