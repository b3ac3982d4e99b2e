import type { Clock } from '@rollcall/platform/clock.ts';
import type { Breaker } from '@rollcall/platform/outbound/breaker.ts';
import { isAddress } from '@rollcall/platform/outbound/url-host.ts';
import type { Addresses } from './addresses.ts';
import { type Candidates, candidatesOf, rampedWeight } from './candidates.ts';
import { type Endpoint, type Place, urlOf } from './endpoint.ts';
import { createNameWatch } from './name-watch.ts';

/** A place with the endpoints that its host name leads to. */
interface Site {
  readonly place: Place;
  readonly addresses: Addresses;
  /** As {@link addresses} had it when the endpoints were made. */
  readonly seen: readonly string[];
  readonly isRefused: boolean;
  /** Whether nothing may go to what is known of it before it has been looked up. */
  readonly isPending: boolean;
  readonly endpoints: readonly Endpoint[];
}

/** By what a gateway prefers one place to another. */
export interface Balancing {
  /** Of the gateway. Undefined: zones do not matter. */
  readonly zone: string | undefined;
  /** For a place that joins others to have all of its weight; 0: it has it at once. */
  readonly slowStartMs: number;
}

export interface SitesOptions extends Balancing {
  readonly follow: (hostname: string) => Addresses;
  /** For each address by itself; it is kept as long as the address is. */
  readonly newBreaker: () => Breaker;
  readonly clock: Clock;
}

/** The places where a service is, and the endpoints that they lead to now. */
export interface Sites {
  /** What is known of the addresses of places that stay is kept. */
  moveTo(places: readonly Place[]): void;
  /** As {@link Addresses.refresh}, of all. Where one that may be called is known nothing is waited for. */
  refresh(): Promise<unknown> | undefined;
  /** It accepted no connection. */
  suspect(endpoint: Endpoint): void;
  /** Those that may be called; where there are none, all. */
  endpoints(): readonly Endpoint[];
  /**
   * Those that may be called: one of the first list, else of the next. They are the places of the
   * own zone, those of others, and those that do not serve.
   */
  ranks(): readonly Candidates[];
  /** Whether all of them are at addresses that may not be called, and none is being looked up. */
  areRefused(): boolean;
}

/** How exactly weights grow. */
const WEIGH_MS = 1000;
const RANKS = [0, 1, 2];
/** So many of them are of places that serve. */
export const SERVING_RANKS = 2;

export function createSites({ follow, newBreaker, clock, zone, slowStartMs }: SitesOptions): Sites {
  let sites: readonly Site[] = [];
  /** Those whose host names lead to addresses that may change: not all need be asked. */
  let named: readonly Site[] = [];
  let namedAddresses: readonly Addresses[] = [];
  /** Whether some are where nothing need be looked up. */
  let hasFixed = false;
  const names = createNameWatch(clock);
  let callable: readonly Endpoint[] = [];
  let ranks: readonly Candidates[] = [];
  let weighedAtMs = 0;

  /** Where there is one place only, whoever calls it waits. */
  const mayWait = (addresses: Addresses): boolean => sites.length > 1 && names.isPending(addresses);

  function follows(site: Site): Site {
    const { place, addresses } = site;
    const seen = addresses.current();
    const endpoints = endpointsAt(site, { seen, newBreaker, nowMs: clock.monotonicMs() });
    return { place, addresses, seen, isRefused: addresses.isRefused(), isPending: mayWait(addresses), endpoints };
  }

  function settle(next: readonly Site[]): void {
    sites = next;
    sites = sites.map(follows);
    named = sites.filter(({ place }) => !isAddress(hostOf(place)));
    namedAddresses = named.map(({ addresses }) => addresses);
    hasFixed = sites.some(({ place, isRefused }) => isAddress(hostOf(place)) && !isRefused);
    weigh();
    const open = sites.filter(({ isRefused, isPending }) => !isRefused && !isPending);
    ranks = RANKS.map((rank) =>
      candidatesOf(open.filter(({ place }) => rankOf(place, zone) === rank).flatMap(({ endpoints }) => endpoints)),
    );
    callable = (open.length > 0 ? open : sites).flatMap(({ endpoints }) => endpoints);
  }

  function weigh(): void {
    weighedAtMs = clock.monotonicMs();
    for (const site of sites) weighSite(site, weighedAtMs, slowStartMs);
  }

  function followAll(): void {
    if (names.takeNews() && named.some(hasMoved)) settle(sites);
  }

  function hasMoved({ addresses, seen, isRefused, isPending }: Site): boolean {
    return addresses.current() !== seen || addresses.isRefused() !== isRefused || mayWait(addresses) !== isPending;
  }

  return {
    moveTo(places) {
      const known = new Map(sites.map((site) => [urlOf(site.place), site]));
      const distinct = [...placesByUrl(places, zone)];
      settle(distinct.map(([url, place]) => ({ ...(known.get(url) ?? newSite(place, follow)), place })));
      names.askAgain();
    },
    refresh() {
      return names.refresh(namedAddresses, hasFixed);
    },
    suspect(endpoint) {
      sites.find(({ place }) => urlOf(place) === urlOf(endpoint))?.addresses.suspect();
      names.askAgain();
    },
    endpoints() {
      followAll();
      return callable;
    },
    areRefused() {
      followAll();
      return sites.every(({ isRefused, isPending }) => isRefused && !isPending);
    },
    ranks() {
      followAll();
      if (clock.monotonicMs() >= weighedAtMs + WEIGH_MS) {
        weigh();
        ranks = ranks.map(({ endpoints }) => candidatesOf(endpoints));
      }
      return ranks;
    },
  };
}

function rankOf({ isServing, zone }: Place, ownZone: string | undefined): number {
  if (!isServing) return 2;
  return ownZone === undefined || zone === ownZone ? 0 : 1;
}

/**
 * Pure. Of instances at one URL the one that gets requests first stands for it, of equal ones the
 * heaviest.
 */
function placesByUrl(places: readonly Place[], ownZone: string | undefined): ReadonlyMap<string, Place> {
  const byUrl = new Map<string, Place>();
  for (const place of places) {
    const url = urlOf(place);
    const other = byUrl.get(url);
    const ahead = other === undefined ? 1 : rankOf(other, ownZone) - rankOf(place, ownZone);
    if (other === undefined || ahead > 0 || (ahead === 0 && place.weight > other.weight)) byUrl.set(url, place);
  }
  return byUrl;
}

function newSite(place: Place, follow: SitesOptions['follow']): Site {
  const addresses = follow(hostOf(place));
  return { place, addresses, seen: [], isRefused: false, isPending: false, endpoints: [] };
}

function hostOf({ origin }: Place): string {
  return new URL(origin).hostname;
}

interface EndpointsAt {
  readonly seen: readonly string[];
  readonly newBreaker: () => Breaker;
  readonly nowMs: number;
}

/** Those of a site at the addresses; one that it had stays. */
function endpointsAt(site: Site, { seen, newBreaker, nowMs }: EndpointsAt): readonly Endpoint[] {
  const { origin, basePath } = site.place;
  const known = new Map(site.endpoints.map((endpoint) => [endpoint.address, endpoint]));
  const joinedAtMs = site.seen.length === 0 ? Number.NEGATIVE_INFINITY : nowMs;
  const addresses = seen.length === 0 ? [undefined] : seen;
  return addresses.map(
    (address) =>
      known.get(address) ?? { origin, basePath, address, breaker: newBreaker(), joinedAtMs, weight: 0, underWay: 0 },
  );
}

/** All addresses of a place share its weight: each is a way to a part of it. */
function weighSite({ place, endpoints }: Site, nowMs: number, slowStartMs: number): void {
  for (const endpoint of endpoints) {
    const beganAtMs = Math.max(place.joinedAtMs, endpoint.joinedAtMs, endpoint.breaker.closedAtMs());
    endpoint.weight = rampedWeight(place.weight / endpoints.length, nowMs - beganAtMs, slowStartMs);
  }
}
