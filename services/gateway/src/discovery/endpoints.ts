import type { Clock } from '@rollcall/platform/clock.ts';
import { type Breaker, type BreakerPolicy, type BreakerState, createBreaker } from '../policy/breaker.ts';
import { type Addresses, followAddresses, type Resolve } from './addresses.ts';

/** One of the places where a service answers, and how it has fared lately. */
export interface Endpoint {
  /** Undefined: wherever the host name leads. */
  readonly address: string | undefined;
  readonly breaker: Breaker;
}

/** The places where one service answers. One that fails is left out for a while, as long as there are others and after. */
export interface Endpoints {
  /** As {@link Addresses.refresh}; before {@link acquire}. */
  refresh(): Promise<void> | undefined;
  /**
   * The next in turn of those that take requests.
   *
   * @param failed has just failed: chosen again only where no other takes any.
   * @returns undefined: none takes a request now. Who gets one tells its breaker what became of the request.
   */
  acquire(failed?: Endpoint): Endpoint | undefined;
  /** One took no connection. */
  suspect(): void;
  /** One or more. */
  states(): readonly BreakerState[];
  /** Until one takes a request, in milliseconds. */
  retryAfterMs(): number;
}

/** @param newBreaker for each address by itself; it is kept as long as the address is. */
export function createEndpoints(addresses: Addresses, newBreaker: () => Breaker): Endpoints {
  const byName: Endpoint = { address: undefined, breaker: newBreaker() };
  let seen: readonly string[] = [];
  let list: readonly Endpoint[] = [byName];
  let turn = 0;

  function endpoints(): readonly Endpoint[] {
    const current = addresses.current();
    if (current === seen) return list;
    seen = current;
    const known = new Map(list.map((endpoint) => [endpoint.address, endpoint]));
    list =
      current.length === 0
        ? [byName]
        : current.map((address) => known.get(address) ?? { address, breaker: newBreaker() });
    return list;
  }

  return {
    refresh: () => addresses.refresh(),
    acquire(failed) {
      const all = endpoints();
      for (let step = 0; step < all.length; step += 1) {
        const index = (turn + step) % all.length;
        const endpoint = all[index];
        if (endpoint === undefined || endpoint === failed || !endpoint.breaker.tryAcquire()) continue;
        turn = index + 1;
        return endpoint;
      }
      return failed !== undefined && all.includes(failed) && failed.breaker.tryAcquire() ? failed : undefined;
    },
    suspect: () => addresses.suspect(),
    states: () => endpoints().map(({ breaker }) => breaker.state()),
    retryAfterMs: () => Math.min(...endpoints().map(({ breaker }) => breaker.retryAfterMs())),
  };
}

export interface EndpointsDeps {
  readonly resolve: Resolve;
  readonly breakerPolicy: BreakerPolicy;
  readonly clock: Clock;
}

/** @returns makes the endpoints of a service out of the host name in its URL. */
export function endpointsBy({ resolve, breakerPolicy, clock }: EndpointsDeps): (hostname: string) => Endpoints {
  return (hostname) =>
    createEndpoints(followAddresses(hostname, resolve, clock), () => createBreaker(clock, breakerPolicy));
}
