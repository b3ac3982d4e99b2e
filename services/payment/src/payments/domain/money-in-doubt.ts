import { isDeepStrictEqual } from 'node:util';
import { total } from '../../domain/money.ts';
import { refundable } from '../../domain/refunds.ts';
import type { PaymentChange } from './changes.ts';
import type { Decision, KnownCharge, KnownDispute, KnownReturn, Payment, Snapshot } from './payments.ts';

/** What becomes of money that a provider says it took or gave back. */
export interface Doubt {
  /** That are new or not as they were. */
  readonly charges: readonly KnownCharge[];
  /** Reference of the charge that a person had decided on, and that the provider now tells of. */
  readonly replaced: string | undefined;
  /** That are new or not as they were. */
  readonly returns: readonly KnownReturn[];
  /** In minor units: what went back by a decision. */
  readonly back: bigint;
  /** That are new or not as they were. */
  readonly disputes: readonly KnownDispute[];
}

const DECIDED = 'decided:';

/** Pure. What a change tells of money, and what a person decides of what was in doubt. */
export function doubtAfter(
  snapshot: Snapshot,
  change: PaymentChange,
  decision: Decision | undefined,
): Doubt & Pick<Payment, 'balance'> {
  const { payment, returns } = snapshot;
  const { charges, replaced } = chargesAfter(snapshot, change, decision === undefined ? 'left' : fates[decision]);
  const booked = charges.filter(({ isBooked, chargeRef }) => isBooked && !wasBooked(snapshot, chargeRef));
  const came = replaced === undefined ? total(booked.map(({ money }) => money.amount)) : 0n;
  const { balance, disputes } = lossesOf(
    { ...payment.balance, captured: payment.balance.captured + came },
    snapshot,
    change.dispute,
  );
  const { returned } = change;
  const open = returns.filter((each) => !each.isBooked && !each.isDismissed);
  const told = returned === undefined ? [] : [{ ...returned, isBooked: false, isDismissed: false }];
  if (decision === 'dismissed') {
    const dismissed = open.map((each) => ({ ...each, isDismissed: true }));
    return { charges, replaced, returns: dismissed, back: 0n, disputes, balance };
  }
  if (decision !== 'refunded') return { charges, replaced, returns: told, back: 0n, disputes, balance };
  const ours = open.filter(({ money }) => money.currency === payment.money.currency);
  const back = least(refundable(balance), wentBack(ours, came));
  return {
    charges,
    replaced,
    returns: ours.map((each) => ({ ...each, isBooked: true })),
    back,
    disputes,
    balance: { ...balance, refunded: balance.refunded + back },
  };
}

/**
 * What lost disputes take of what is left, those too that were lost before the money was known: it is
 * given back.
 */
function lossesOf(
  balance: Payment['balance'],
  { payment, disputes }: Snapshot,
  told: KnownDispute | undefined,
): WithDisputes {
  const others = disputes.filter(({ disputeRef }) => disputeRef !== told?.disputeRef);
  return [...others, ...(told === undefined ? [] : [told])].reduce<WithDisputes>(
    (after, dispute) => {
      const isOurs = dispute.state === 'lost' && dispute.money.currency === payment.money.currency;
      const lost = isOurs ? least(refundable(after.balance), dispute.money.amount - dispute.counted) : 0n;
      if (lost === 0n && dispute !== told) return after;
      return {
        balance: { ...after.balance, refunded: after.balance.refunded + lost },
        disputes: [...after.disputes, { ...dispute, counted: dispute.counted + lost }],
      };
    },
    { balance, disputes: [] },
  );
}

type WithDisputes = Pick<Payment, 'balance'> & Pick<Doubt, 'disputes'>;

/** What the provider says went back; else what was in doubt; else, undefined, all that is left. */
function wentBack(returns: readonly KnownReturn[], doubtful: bigint): bigint | undefined {
  if (returns.length > 0) return total(returns.map(({ money }) => money.amount));
  return doubtful === 0n ? undefined : doubtful;
}

function least(left: bigint, amount: bigint | undefined): bigint {
  return amount === undefined || amount > left ? left : amount;
}

/** What becomes of charges that are in doubt. */
type Fate = 'booked' | 'dismissed' | 'left';

const fates: Readonly<Record<Decision, Fate>> = {
  paid: 'booked',
  refunded: 'booked',
  unpaid: 'left',
  dismissed: 'dismissed',
};

/** Pure. Those that change by it. */
export function chargesAfter(
  snapshot: Snapshot,
  { charge }: PaymentChange,
  fate: Fate,
): Pick<Doubt, 'charges' | 'replaced'> {
  const { payment, charges } = snapshot;
  const known = charges.find(({ chargeRef }) => chargeRef === charge?.chargeRef);
  const decided = known === undefined && charge !== undefined ? decidedOn(snapshot, charge.money) : undefined;
  const { isBooked = false, isDismissed = false } = known ?? decided ?? {};
  const told = charge === undefined ? [] : [{ ...charge, fee: charge.fee ?? known?.fee, isBooked, isDismissed }];
  const others = charges.filter((each) => each !== known && each !== decided);
  const all: readonly KnownCharge[] = [...others, ...told];
  const isNothingKnown = fate === 'booked' && all.length === 0 && payment.balance.captured === 0n;
  // A person says so, of what no provider has told us.
  const asDecided = isNothingKnown ? [{ ...ownCharge(payment), isBooked: false, isDismissed: false }] : all;
  const after = asDecided
    .map((each) => settledAs(fate, each, payment.money.currency))
    .filter((each) => !charges.some((old) => isDeepStrictEqual(old, each)));
  return { charges: after, replaced: decided?.chargeRef };
}

/** Money of another currency is never booked, and what is booked or dismissed stays so. */
function settledAs(fate: Fate, charge: KnownCharge, currency: string): KnownCharge {
  if (charge.isBooked || charge.isDismissed) return charge;
  if (fate === 'dismissed') return { ...charge, isDismissed: true };
  return fate === 'booked' && charge.money.currency === currency ? { ...charge, isBooked: true } : charge;
}

/** Pure. The charge that a person had decided on, where the provider now tells of so much. */
export function decidedOn({ charges }: Snapshot, { amount, currency }: KnownCharge['money']): KnownCharge | undefined {
  return charges.find(
    ({ chargeRef, money }) => chargeRef.startsWith(DECIDED) && money.amount === amount && money.currency === currency,
  );
}

function ownCharge({ id, chargeRef, money }: Payment): Omit<KnownCharge, 'isBooked' | 'isDismissed'> {
  return { chargeRef: chargeRef ?? `${DECIDED}${id}`, money, fee: undefined };
}

/** Pure. Whether a charge is in the balance and in the ledger already. */
export function wasBooked({ charges }: Snapshot, reference: string): boolean {
  return charges.some(({ chargeRef, isBooked }) => isBooked && chargeRef === reference);
}
