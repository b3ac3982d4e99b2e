import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import { type BreakerPolicy, type BreakerState, createBreaker } from '@rollcall/platform/outbound/breaker.ts';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { GatewayError } from '../../errors.ts';
import { createRetryBudget, type RetryBudget } from '../retry-budget.ts';
import { followAddresses } from './addresses.ts';
import { type Candidates, candidatesOf, draw, isLessBusy } from './candidates.ts';
import type { Endpoint, Place } from './endpoint.ts';
import { type Balancing, createSites, SERVING_RANKS, type SitesOptions } from './sites.ts';

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
   * Of two endpoints that are drawn in proportion to their weights the less busy one, else any
   * other that accepts requests; of other zones where none of the own zone does.
   *
   * @param failed has just failed: chosen again only where no other accepts any. Another zone is
   * tried first, for one that fails may do so as a whole.
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

  const hasRoom = ({ underWay }: Endpoint): boolean => underWay < mostUnderWay;
  const accepts = (endpoint: Endpoint): boolean => hasRoom(endpoint) && endpoint.breaker.tryAcquire();

  function chooseOf(rank: Candidates, failed: Endpoint | undefined): Endpoint | undefined {
    const [first, second] = [draw(rank, random()), draw(rank, random())];
    if (first === undefined || second === undefined) return undefined;
    const isBetter = second.breaker.state() === 'closed' && isLessBusy(second, first);
    const pair = isBetter ? [second, first] : [first, second];
    return pair.find((each) => each !== failed && accepts(each)) ?? anyOf(rank, failed);
  }

  function anyOf({ endpoints }: Candidates, failed: Endpoint | undefined): Endpoint | undefined {
    const others = endpoints.filter((each) => each !== failed && hasRoom(each));
    const closed = others.filter(({ breaker }) => breaker.state() === 'closed');
    return draw(candidatesOf(closed), random()) ?? others.find(accepts);
  }

  /** One that drains or is not well gets no requests in the place of one that is. */
  function peersOf(endpoint: Endpoint): readonly Endpoint[] {
    const serving = sites
      .ranks()
      .slice(0, SERVING_RANKS)
      .flatMap(({ endpoints }) => endpoints);
    return serving.includes(endpoint) ? serving : sites.endpoints();
  }

  return {
    retries,
    moveTo: (places) => sites.moveTo(places),
    refresh: () => sites.refresh(),
    acquire(failed) {
      const ranks = sites.ranks();
      if (sites.areRefused()) throw new GatewayError('ADDRESS_REFUSED');
      for (const rank of failed === undefined ? ranks : elsewhereFirst(ranks, failed)) {
        const found = chooseOf(rank, failed);
        if (found !== undefined) return found;
      }
      return failed !== undefined && sites.endpoints().includes(failed) && accepts(failed) ? failed : undefined;
    },
    areFull: () =>
      sites.endpoints().some(({ breaker, underWay }) => underWay >= mostUnderWay && breaker.retryAfterMs() === 0),
    canSpare: (endpoint) => peersOf(endpoint).some((other) => other !== endpoint && other.breaker.state() === 'closed'),
    suspect: (endpoint) => sites.suspect(endpoint),
    states: () => sites.endpoints().map(({ breaker }) => breaker.state()),
    retryAfterMs: () => Math.min(...sites.endpoints().map(({ breaker }) => breaker.retryAfterMs())),
  };
}

function elsewhereFirst([own, other, ...rest]: readonly Candidates[], failed: Endpoint): readonly Candidates[] {
  const both = own?.endpoints.includes(failed) === true ? [other, own] : [own, other];
  return [...both.filter((rank) => rank !== undefined), ...rest];
}

export interface EndpointsDeps {
  readonly resolve: Resolve;
  /** Where services may be. */
  readonly mayConnect: AddressRule;
  readonly breakerPolicy: BreakerPolicy;
  readonly mostUnderWay: number;
  /** By default zones do not matter, and nobody starts slowly. */
  readonly balancing?: Balancing;
  readonly clock: Clock;
}

const PLAIN: Balancing = { zone: undefined, slowStartMs: 0 };
const RETRY_SHARE = 0.2;
const RETRY_RESERVE = 10;

/** @returns makes the endpoints of a service out of the places where it is. */
export function endpointsBy(deps: EndpointsDeps): (places: readonly Place[]) => MovingEndpoints {
  const { resolve, mayConnect, breakerPolicy, mostUnderWay, balancing = PLAIN, clock } = deps;
  return (places) => {
    const endpoints = createEndpoints({
      follow: (hostname) => followAddresses(hostname, { resolve, mayConnect, clock }),
      newBreaker: () => createBreaker(clock, breakerPolicy),
      retries: createRetryBudget(RETRY_SHARE, RETRY_RESERVE),
      mostUnderWay,
      clock,
      ...balancing,
    });
    endpoints.moveTo(places);
    return endpoints;
  };
}
