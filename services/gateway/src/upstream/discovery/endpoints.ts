import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { GatewayError } from '../../errors.ts';
import { type BreakerPolicy, type BreakerState, createBreaker } from '../breaker.ts';
import { createRetryBudget, type RetryBudget } from '../retry-budget.ts';
import { followAddresses } from './addresses.ts';
import { createSites, type Endpoint, type Place, type SitesOptions } from './sites.ts';

/**
 * The addresses where one service answers. One that fails is left out for a while, as long as there
 * are others and after.
 */
export interface Endpoints {
  /** How many of its requests may be sent again: a service that fails uses up nobody else's. */
  readonly retries: RetryBudget;
  /** As `Addresses.refresh`; before {@link acquire}. */
  refresh(): Promise<unknown> | undefined;
  /**
   * Of the endpoints that accept requests the next in turn, or another one that is less busy.
   *
   * @param failed has just failed: chosen again only where no other accepts any.
   * @returns undefined: none accepts a request now. Who gets one reports the outcome of the request
   * to its breaker.
   * @throws GatewayError ADDRESS_REFUSED where the service is registered at addresses alone that may
   * not be called.
   */
  acquire(failed?: Endpoint): Endpoint | undefined;
  /** Whether all that would accept a request have as many as they may have. */
  areFull(): boolean;
  /** Whether the breaker of another one is closed, so that this one can be left out. */
  canSpare(endpoint: Endpoint): boolean;
  /** It accepted no connection. */
  suspect(endpoint: Endpoint): void;
  /** One or more. */
  states(): readonly BreakerState[];
  /** Until one accepts a request, in milliseconds. */
  retryAfterMs(): number;
}

/** Endpoints of a service that may move. */
export interface MovingEndpoints extends Endpoints {
  /** What is known of the addresses of places that stay is kept. @param places one or more. */
  moveTo(places: readonly Place[]): void;
}

export interface EndpointsOptions extends SitesOptions {
  readonly retries: RetryBudget;
  /** Requests that are under way at one address. */
  readonly mostUnderWay: number;
  /** From 0 to below 1; `Math.random` by default. */
  readonly random?: () => number;
}

export function createEndpoints(options: EndpointsOptions): MovingEndpoints {
  const { retries, mostUnderWay, random = Math.random } = options;
  const sites = createSites(options);
  let turn = 0;

  const accepts = ({ breaker, underWay }: Endpoint): boolean => underWay < mostUnderWay && breaker.tryAcquire();

  function lessBusy(than: Endpoint, rank: readonly Endpoint[], failed: Endpoint | undefined): Endpoint | undefined {
    const other = rank[Math.floor(random() * rank.length)];
    return other !== undefined && other !== failed && other.underWay < than.underWay ? other : undefined;
  }

  function next(rank: readonly Endpoint[], failed: Endpoint | undefined): Endpoint | undefined {
    for (let step = 0; step < rank.length; step += 1) {
      const index = (turn + step) % rank.length;
      const inTurn = rank[index];
      if (inTurn === undefined || inTurn === failed) continue;
      const other = lessBusy(inTurn, rank, failed);
      const chosen = other?.breaker.state() === 'closed' ? other : inTurn;
      if (!accepts(chosen)) continue;
      turn = index + 1;
      return chosen;
    }
    return undefined;
  }

  return {
    retries,
    moveTo: (places) => sites.moveTo(places),
    refresh: () => sites.refresh(),
    acquire(failed) {
      const ranks = sites.ranks();
      if (ranks.every(({ length }) => length === 0)) throw new GatewayError('ADDRESS_REFUSED');
      for (const rank of ranks) {
        const found = next(rank, failed);
        if (found !== undefined) return found;
      }
      return failed !== undefined && sites.endpoints().includes(failed) && accepts(failed) ? failed : undefined;
    },
    areFull: () =>
      sites.endpoints().some(({ breaker, underWay }) => underWay >= mostUnderWay && breaker.retryAfterMs() === 0),
    canSpare: (endpoint) => sites.endpoints().some((other) => other !== endpoint && other.breaker.state() === 'closed'),
    suspect: (endpoint) => sites.suspect(endpoint),
    states: () => sites.endpoints().map(({ breaker }) => breaker.state()),
    retryAfterMs: () => Math.min(...sites.endpoints().map(({ breaker }) => breaker.retryAfterMs())),
  };
}

export interface EndpointsDeps {
  readonly resolve: Resolve;
  /** Where services may be. */
  readonly mayConnect: AddressRule;
  readonly breakerPolicy: BreakerPolicy;
  readonly mostUnderWay: number;
  readonly clock: Clock;
}

const RETRY_SHARE = 0.2;
const RETRY_RESERVE = 10;

/** @returns makes the endpoints of a service out of the places where it is. */
export function endpointsBy(deps: EndpointsDeps): (places: readonly Place[]) => MovingEndpoints {
  const { resolve, mayConnect, breakerPolicy, mostUnderWay, clock } = deps;
  return (places) => {
    const endpoints = createEndpoints({
      follow: (hostname) => followAddresses(hostname, { resolve, mayConnect, clock }),
      newBreaker: () => createBreaker(clock, breakerPolicy),
      retries: createRetryBudget(RETRY_SHARE, RETRY_RESERVE),
      mostUnderWay,
    });
    endpoints.moveTo(places);
    return endpoints;
  };
}
