import type { AmountRejection, Money } from '../domain/ports.ts';

/**
 * Pure. What a provider of one currency cannot take, all of it.
 *
 * @param least of what it takes.
 */
export function rejectionsBelow({ amount, currency }: Money, least: Money): readonly AmountRejection[] {
  return [
    ...(currency === least.currency ? [] : [{ code: 'CURRENCY_NOT_SUPPORTED' as const, currencies: [least.currency] }]),
    ...(amount >= least.amount ? [] : [{ code: 'AMOUNT_TOO_SMALL' as const, minimum: least.amount }]),
  ];
}
