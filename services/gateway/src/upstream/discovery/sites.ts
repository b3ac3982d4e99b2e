import { isIP } from 'node:net';
import type { Breaker } from '../breaker.ts';
import type { Addresses } from './addresses.ts';

/** Where instances of a service are registered. */
export interface Place {
  /** `http://host:port`. */
  readonly origin: string;
  /** Of the registered URL, without a slash at its end. */
  readonly basePath: string;
  /** Whether it gets requests before those that have said that they are not well, or are about to end. */
  readonly isServing: boolean;
}

/** One of the addresses where a service answers, and how it has fared lately. */
export interface Endpoint extends Pick<Place, 'origin' | 'basePath'> {
  /** Undefined: wherever the host name leads. */
  readonly address: string | undefined;
  readonly breaker: Breaker;
  /** Requests that wait for it, or for the rest of its answer. Counted by whoever sends them. */
  underWay: number;
}

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

export interface SitesOptions {
  readonly follow: (hostname: string) => Addresses;
  /** For each address by itself; it is kept as long as the address is. */
  readonly newBreaker: () => Breaker;
}

/** The places where a service is, and the endpoints that they lead to now. */
export interface Sites {
  /** What is known of the addresses of places that stay is kept. */
  moveTo(places: readonly Place[]): void;
  /** As {@link Addresses.refresh}, of all. Where one of them is known nothing is waited for. */
  refresh(): Promise<unknown> | undefined;
  /** It accepted no connection. */
  suspect(endpoint: Endpoint): void;
  /** Those that may be called; where there are none, all. */
  endpoints(): readonly Endpoint[];
  /** Those that may be called: one of the first list, else of the next. */
  ranks(): readonly (readonly Endpoint[])[];
}

export function createSites({ follow, newBreaker }: SitesOptions): Sites {
  let sites: readonly Site[] = [];
  /** Those whose host names lead to addresses that may change: not all need be asked. */
  let named: readonly Site[] = [];
  const pending = new Map<Addresses, Promise<void>>();
  let callable: readonly Endpoint[] = [];
  let ranks: readonly (readonly Endpoint[])[] = [];

  function follows(site: Site): Site {
    const { place, addresses } = site;
    const current = addresses.current();
    const { origin, basePath } = place;
    const known = new Map(site.endpoints.map((endpoint) => [endpoint.address, endpoint]));
    const endpointAt = (address: string | undefined): Endpoint =>
      known.get(address) ?? { origin, basePath, address, breaker: newBreaker(), underWay: 0 };
    const endpoints = current.length === 0 ? [endpointAt(undefined)] : current.map(endpointAt);
    const isPending = sites.length > 1 && pending.has(addresses);
    return { place, addresses, seen: current, isRefused: addresses.isRefused(), isPending, endpoints };
  }

  function settle(next: readonly Site[]): void {
    sites = next.map(follows);
    named = sites.filter(({ place }) => isIP(hostOf(place).replaceAll(/^\[|\]$/g, '')) === 0);
    const open = sites.filter(({ isRefused, isPending }) => !isRefused && !isPending);
    ranks = [true, false].map((isServing) =>
      open.filter(({ place }) => place.isServing === isServing).flatMap(({ endpoints }) => endpoints),
    );
    callable = open.length > 0 ? ranks.flat() : sites.flatMap(({ endpoints }) => endpoints);
  }

  function followAll(): void {
    if (named.some(hasMoved)) settle(sites);
  }

  function hasMoved({ addresses, seen, isRefused, isPending }: Site): boolean {
    return (
      addresses.current() !== seen ||
      addresses.isRefused() !== isRefused ||
      (sites.length > 1 && pending.has(addresses) !== isPending)
    );
  }

  /** @returns what has to be waited for before the site may be called. */
  function ask({ addresses }: Site): Promise<void> | undefined {
    const asked = addresses.refresh();
    if (asked === undefined) return undefined;
    const known = pending.get(addresses);
    if (known !== undefined) return known;
    const answered = asked.finally(() => pending.delete(addresses));
    pending.set(addresses, answered);
    return answered;
  }

  return {
    moveTo(places) {
      const known = new Map(sites.map((site) => [urlOf(site.place), site]));
      const byUrl = new Map<string, Site>();
      for (const place of places) {
        const url = urlOf(place);
        const isServing = place.isServing || byUrl.get(url)?.place.isServing === true;
        const site = known.get(url) ?? newSite(place, follow);
        byUrl.set(url, { ...site, place: { ...place, isServing } });
      }
      settle([...byUrl.values()]);
    },
    refresh() {
      const asked = named.flatMap((site) => ask(site) ?? []);
      return asked.length > 0 && asked.length === sites.length ? Promise.race(asked) : undefined;
    },
    suspect(endpoint) {
      sites.find(({ place }) => urlOf(place) === urlOf(endpoint))?.addresses.suspect();
    },
    endpoints() {
      followAll();
      return callable;
    },
    ranks() {
      followAll();
      return ranks;
    },
  };
}

function urlOf({ origin, basePath }: Pick<Place, 'origin' | 'basePath'>): string {
  return origin + basePath;
}

function newSite(place: Place, follow: SitesOptions['follow']): Site {
  const addresses = follow(hostOf(place));
  return { place, addresses, seen: [], isRefused: false, isPending: false, endpoints: [] };
}

function hostOf({ origin }: Place): string {
  return new URL(origin).hostname;
}

/** The place that a registered URL names. @throws TypeError where it is no URL. */
export function placeOf(url: string, isServing = true): Place {
  const { origin, pathname } = new URL(url);
  return { origin, basePath: pathname.replace(/\/+$/, ''), isServing };
}
