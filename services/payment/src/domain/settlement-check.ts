import type { SettlementLine } from './ports.ts';

/** Money that came or went back, as one side has it. */
export interface SettledMoney {
  readonly kind: 'payment' | 'refund';
  /** The provider's id of the charge; of a refund, of the charge that it is of. */
  readonly chargeRef: string;
  readonly paymentId: string | undefined;
  /** Minor units; what went back is negative. */
  readonly amount: bigint;
  readonly currency: string;
  readonly at: Date;
}

/** From an instant to before another. */
export interface Span {
  readonly from: Date;
  readonly to: Date;
}

interface SettlementDifferences {
  /** How much of the span is on both sides. */
  readonly matched: number;
  /** What the provider has and the books have not. */
  readonly missingHere: readonly SettledMoney[];
  /** What the books have and the provider has not. */
  readonly missingAtProvider: readonly SettledMoney[];
}

/** Pure. What a provider's list says of payments and refunds; fees, payouts and the like are left out. */
export function settledBy(lines: readonly SettlementLine[]): readonly SettledMoney[] {
  return lines.flatMap(({ kind, at, currency, gross, chargeRef, paymentId }) =>
    kind === 'other' || chargeRef === undefined ? [] : [{ kind, at, currency, amount: gross, chargeRef, paymentId }],
  );
}

/**
 * Pure. What one side has and the other has not. Both sides write down their own times: so both may
 * hold more than the span, for what is in it to be found.
 */
export function compareSettlements(
  provider: readonly SettledMoney[],
  books: readonly SettledMoney[],
  span: Span,
): SettlementDifferences {
  const missingHere = without(provider, books).filter((money) => isIn(money, span));
  const missingAtProvider = without(books, provider).filter((money) => isIn(money, span));
  const inSpan = provider.filter((money) => isIn(money, span)).length;
  return { matched: inSpan - missingHere.length, missingHere, missingAtProvider };
}

/** Two refunds of the same amount are two. */
function without(some: readonly SettledMoney[], others: readonly SettledMoney[]): readonly SettledMoney[] {
  const left = new Map<string, number>();
  for (const other of others) left.set(keyOf(other), (left.get(keyOf(other)) ?? 0) + 1);
  return some.filter((money) => {
    const count = left.get(keyOf(money)) ?? 0;
    left.set(keyOf(money), count - 1);
    return count <= 0;
  });
}

function keyOf({ kind, chargeRef, amount, currency }: SettledMoney): string {
  return `${kind} ${chargeRef} ${amount} ${currency}`;
}

function isIn({ at }: SettledMoney, { from, to }: Span): boolean {
  return at >= from && at < to;
}
