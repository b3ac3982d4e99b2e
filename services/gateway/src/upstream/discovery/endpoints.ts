import type { Clock } from '@rollcall/platform/clock.ts';
import type { AddressRule } from '@rollcall/platform/outbound/address-rules.ts';
import { GatewayError } from '../../errors.ts';
import { type Breaker, type BreakerPolicy, type BreakerState, createBreaker } from '../breaker.ts';
import { createRetryBudget, type RetryBudget } from '../retry-budget.ts';
import { type Addresses, followAddresses } from './addresses.ts';
import type { Resolve } from './lookups.ts';

/** One of the places where a service answers, and how it has fared lately. */
export interface Endpoint {
  /** Undefined: wherever the host name leads. */
  readonly address: string | undefined;
  readonly breaker: Breaker;
  /** Requests that wait for it, or for the rest of its answer. Counted by whoever sends them. */
  underWay: number;
}

/**
 * The places where one service answers. One that fails is left out for a while, as long as there
 * are others and after.
 */
export interface Endpoints {
  /** How many of its requests may be sent again: a service that fails uses up nobody else's. */
  readonly retries: RetryBudget;
  /** As {@link Addresses.refresh}; before {@link acquire}. */
  refresh(): Promise<void> | undefined;
  /**
   * The next in turn of the endpoints that accept requests.
   *
   * @param failed has just failed: chosen again only where no other accepts any.
   * @returns undefined: none accepts a request now. Who gets one reports the outcome of the request
   * to its breaker.
   * @throws GatewayError ADDRESS_REFUSED where the service is registered at an address that may not
   * be called.
   */
  acquire(failed?: Endpoint): Endpoint | undefined;
  /** Whether all that would accept a request have as many as they may have. */
  areFull(): boolean;
  /** Whether the breaker of another one is closed, so that this one can be left out. */
  canSpare(endpoint: Endpoint): boolean;
  /** One accepted no connection. */
  suspect(): void;
  /** One or more. */
  states(): readonly BreakerState[];
  /** Until one accepts a request, in milliseconds. */
  retryAfterMs(): number;
}

export interface EndpointsOptions {
  /** For each address by itself; it is kept as long as the address is. */
  readonly newBreaker: () => Breaker;
  readonly retries: RetryBudget;
  /** Requests that are under way at one address. */
  readonly mostUnderWay: number;
}

export function createEndpoints(addresses: Addresses, options: EndpointsOptions): Endpoints {
  const { newBreaker, retries, mostUnderWay } = options;
  const newEndpoint = (address: string | undefined): Endpoint => ({ address, breaker: newBreaker(), underWay: 0 });
  const byName = newEndpoint(undefined);
  let seen: readonly string[] = [];
  let list: readonly Endpoint[] = [byName];
  let turn = 0;

  function endpoints(): readonly Endpoint[] {
    const current = addresses.current();
    if (current === seen) return list;
    seen = current;
    const known = new Map(list.map((endpoint) => [endpoint.address, endpoint]));
    list = current.length === 0 ? [byName] : current.map((address) => known.get(address) ?? newEndpoint(address));
    return list;
  }

  const accepts = ({ breaker, underWay }: Endpoint): boolean => underWay < mostUnderWay && breaker.tryAcquire();

  return {
    retries,
    refresh: () => addresses.refresh(),
    acquire(failed) {
      if (addresses.isRefused()) throw new GatewayError('ADDRESS_REFUSED');
      const all = endpoints();
      for (let step = 0; step < all.length; step += 1) {
        const index = (turn + step) % all.length;
        const endpoint = all[index];
        if (endpoint === undefined || endpoint === failed || !accepts(endpoint)) continue;
        turn = index + 1;
        return endpoint;
      }
      return failed !== undefined && all.includes(failed) && accepts(failed) ? failed : undefined;
    },
    areFull: () =>
      endpoints().some(({ breaker, underWay }) => underWay >= mostUnderWay && breaker.retryAfterMs() === 0),
    canSpare: (endpoint) => endpoints().some((other) => other !== endpoint && other.breaker.state() === 'closed'),
    suspect: () => addresses.suspect(),
    states: () => endpoints().map(({ breaker }) => breaker.state()),
    retryAfterMs: () => Math.min(...endpoints().map(({ breaker }) => breaker.retryAfterMs())),
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

/** @returns makes the endpoints of a service out of the host name in its URL. */
export function endpointsBy(deps: EndpointsDeps): (hostname: string) => Endpoints {
  const { resolve, mayConnect, breakerPolicy, mostUnderWay, clock } = deps;
  return (hostname) =>
    createEndpoints(followAddresses(hostname, { resolve, mayConnect, clock }), {
      newBreaker: () => createBreaker(clock, breakerPolicy),
      retries: createRetryBudget(RETRY_SHARE, RETRY_RESERVE),
      mostUnderWay,
    });
}
