/** A canary of a large weight would need very many pods beside a full set of stable ones. */
const CANARY_LIMIT = 4;

/**
 * How many canary pods, beside `stable` ones that stay as they are, get a share of `weight`
 * percent, or as near to it as whole pods come:
 *
 * - 10 stable: 5 % 1, 10 % 1, 25 % 3, 50 % 10, 75 % 30, 90 % 40 (limit), 100 % 10 (all traffic, no
 *   longer beside the stable)
 * - 3 stable: 1 % 1, 10 % 1, 25 % 1, 50 % 3, 80 % 12
 * - 0 % is none.
 */
export function canaryReplicas(stable: number, weight: number): number {
  if (weight <= 0 || stable <= 0) return 0;
  if (weight >= 100) return stable;
  const share = Math.round((stable * weight) / (100 - weight));
  return Math.min(Math.max(share, 1), CANARY_LIMIT * stable);
}
