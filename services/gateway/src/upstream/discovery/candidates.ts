import type { Endpoint } from './endpoint.ts';

/** Endpoints of one rank, so that one is found by its weight without a look at all the others. */
export interface Candidates {
  readonly endpoints: readonly Endpoint[];
  /** For each its weight and those of all before it, added up. */
  readonly sums: readonly number[];
}

export function candidatesOf(endpoints: readonly Endpoint[]): Candidates {
  let sum = 0;
  const sums = endpoints.map(({ weight }) => {
    sum += weight;
    return sum;
  });
  return { endpoints, sums };
}

/**
 * One in proportion to the weights.
 *
 * @param random from 0 to below 1.
 * @returns undefined where there are none.
 */
export function draw({ endpoints, sums }: Candidates, random: number): Endpoint | undefined {
  const point = random * (sums.at(-1) ?? 0);
  let low = 0;
  let high = endpoints.length - 1;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (point < (sums[middle] ?? 0)) high = middle;
    else low = middle + 1;
  }
  return endpoints[low];
}

/**
 * Whether it has fewer requests for its weight than the other, with half a request more. Without
 * that half, an idle endpoint of little weight would count as less busy than any with a request,
 * and get more than its share.
 */
export function isLessBusy(endpoint: Endpoint, other: Endpoint): boolean {
  return (endpoint.underWay + 0.5) * other.weight <= other.underWay * endpoint.weight;
}

/** Of its weight an endpoint begins with. */
const FIRST_SHARE = 0.1;

/** The weight that an endpoint has so long after it began to take requests. It grows evenly. */
export function rampedWeight(weight: number, ageMs: number, slowStartMs: number): number {
  if (ageMs >= slowStartMs) return weight;
  return weight * (FIRST_SHARE + (1 - FIRST_SHARE) * (ageMs / slowStartMs));
}
