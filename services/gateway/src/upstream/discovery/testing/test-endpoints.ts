import { createBreaker } from '@rollcall/platform/outbound/breaker.ts';
import { createRetryBudget } from '../../retry-budget.ts';
import type { Addresses } from '../addresses.ts';
import { createEndpoints, type EndpointsOptions } from '../endpoints.ts';

const NONE: readonly string[] = [];

/** Of a host name that leads to one server. */
export const oneAddress: Addresses = {
  current: () => NONE,
  refresh: () => undefined,
  isRefused: () => false,
  suspect: () => undefined,
};

/** Endpoints by a clock that stands still, and by random numbers that are the same each time. */
export function testEndpoints(options: Partial<EndpointsOptions> = {}) {
  let nowMs = 0;
  const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
  const endpoints = createEndpoints({
    follow: () => oneAddress,
    newBreaker: () => createBreaker(clock, { consecutiveFailures: 2, openMs: 1000, maxOpenMs: 4000, probeMs: 1000 }),
    retries: createRetryBudget(0, 1),
    mostUnderWay: 2,
    zone: undefined,
    slowStartMs: 0,
    clock,
    random: seededRandom(),
    ...options,
  });
  return { endpoints, sleep: (ms: number) => (nowMs += ms), now: () => nowMs };
}

/** A linear congruential generator. */
function seededRandom(): () => number {
  let state = 1;
  return () => {
    state = (state * 1_664_525 + 1_013_904_223) % 2 ** 32;
    return state / 2 ** 32;
  };
}

/** How often each is there. */
export function countsOf(all: readonly string[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const each of all) counts[each] = (counts[each] ?? 0) + 1;
  return counts;
}
