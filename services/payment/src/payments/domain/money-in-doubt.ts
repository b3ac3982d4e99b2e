import { isDeepStrictEqual } from 'node:util';
import { total } from '../../domain/money.ts';
import { refundable } from '../../domain/refunds.ts';
import type { PaymentChange } from './changes.ts';
import type { Decision, KnownCharge, KnownReturn, Payment, Snapshot } from './payments.ts';

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
}

const DECIDED = 'decided:';

/** Pure. What a change tells of money, and what a person decides of what was in doubt. */
export function doubtAfter(
  snapshot: Snapshot,
  change: PaymentChange,
  decision: Decision | undefined,
): Doubt & Pick<Payment, 'balance'> {
  const { payment, returns } = snapshot;
  const books = decision === 'paid' || decision === 'refunded';
  const { charges, replaced } = chargesAfter(snapshot, change, books);
  const booked = charges.filter(({ isBooked, chargeRef }) => isBooked && !wasBooked(snapshot, chargeRef));
  const came = replaced === undefined ? total(booked.map(({ money }) => money.amount)) : 0n;
  const balance = { ...payment.balance, captured: payment.balance.captured + came };
  const { returned } = change;
  const told = returned === undefined ? [] : [{ ...returned, isBooked: false }];
  if (decision !== 'refunded') return { charges, replaced, returns: told, back: 0n, balance };
  const open = returns.filter(({ isBooked, money }) => !isBooked && money.currency === payment.money.currency);
  const back = least(refundable(balance), wentBack(open, came));
  return {
    charges,
    replaced,
    returns: open.map((each) => ({ ...each, isBooked: true })),
    back,
    balance: { ...balance, refunded: balance.refunded + back },
  };
}

/** What the provider says went back; else what was in doubt; else, undefined, all that is left. */
function wentBack(returns: readonly KnownReturn[], doubtful: bigint): bigint | undefined {
  if (returns.length > 0) return total(returns.map(({ money }) => money.amount));
  return doubtful === 0n ? undefined : doubtful;
}

function least(left: bigint, amount: bigint | undefined): bigint {
  return amount === undefined || amount > left ? left : amount;
}

/** Pure. Those that change by it. @param books whether what is in doubt is booked now. */
export function chargesAfter(
  snapshot: Snapshot,
  { charge }: PaymentChange,
  books: boolean,
): Pick<Doubt, 'charges' | 'replaced'> {
  const { payment, charges } = snapshot;
  const known = charges.find(({ chargeRef }) => chargeRef === charge?.chargeRef);
  const decided = known === undefined && charge !== undefined ? decidedOn(snapshot, charge.money) : undefined;
  const isBooked = (known ?? decided)?.isBooked ?? false;
  const told = charge === undefined ? [] : [{ ...charge, fee: charge.fee ?? known?.fee, isBooked }];
  const others = charges.filter((each) => each !== known && each !== decided);
  const all: readonly KnownCharge[] = [...others, ...told];
  const isNothingKnown = books && all.length === 0 && payment.balance.captured === 0n;
  // A person says so, of what no provider has told us.
  const asDecided = isNothingKnown ? [{ ...ownCharge(payment), isBooked: false }] : all;
  const after = asDecided
    .map((each) => (books && each.money.currency === payment.money.currency ? { ...each, isBooked: true } : each))
    .filter((each) => !charges.some((old) => isDeepStrictEqual(old, each)));
  return { charges: after, replaced: decided?.chargeRef };
}

/** Pure. The charge that a person had decided on, where the provider now tells of so much. */
export function decidedOn({ charges }: Snapshot, { amount, currency }: KnownCharge['money']): KnownCharge | undefined {
  return charges.find(
    ({ chargeRef, money }) => chargeRef.startsWith(DECIDED) && money.amount === amount && money.currency === currency,
  );
}

function ownCharge({ id, chargeRef, money }: Payment): Omit<KnownCharge, 'isBooked'> {
  return { chargeRef: chargeRef ?? `${DECIDED}${id}`, money, fee: undefined };
}

/** Pure. Whether a charge is in the balance and in the ledger already. */
export function wasBooked({ charges }: Snapshot, reference: string): boolean {
  return charges.some(({ chargeRef, isBooked }) => isBooked && chargeRef === reference);
}
