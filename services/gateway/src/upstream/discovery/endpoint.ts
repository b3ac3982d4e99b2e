import type { Breaker } from '@rollcall/platform/outbound/breaker.ts';

/** Where instances of a service are registered. */
export interface Place {
  /** `http://host:port`. */
  readonly origin: string;
  /** Of the registered URL, without a slash at its end. */
  readonly basePath: string;
  /** Whether it gets requests before those that have said that they are not well, or are about to end. */
  readonly isServing: boolean;
  /** Undefined: nobody has said where it runs. */
  readonly zone: string | undefined;
  /** How many requests it is to get, compared with other places. */
  readonly weight: number;
  /** By the monotonic clock. */
  readonly joinedAtMs: number;
}

/** One of the addresses where a service answers, and how it has fared lately. */
export interface Endpoint extends Pick<Place, 'origin' | 'basePath'> {
  /** Undefined: wherever the host name leads. */
  readonly address: string | undefined;
  readonly breaker: Breaker;
  /** When its name led there, where it had led elsewhere before. */
  readonly joinedAtMs: number;
  /** What it has now of its place's. */
  weight: number;
  /** Requests that wait for it, or for the rest of its answer. Counted by whoever sends them. */
  underWay: number;
}

const DEFAULT_WEIGHT = 100;
/** It was there before anybody looked. */
const ALWAYS = Number.NEGATIVE_INFINITY;

type Said = Omit<Place, 'origin' | 'basePath'>;

/** The place that a registered URL names. @throws TypeError where it is no URL. */
export function placeOf(url: string, said: { readonly [Name in keyof Said]?: Said[Name] | undefined } = {}): Place {
  const { origin, pathname } = new URL(url);
  const { isServing = true, zone, weight = DEFAULT_WEIGHT, joinedAtMs = ALWAYS } = said;
  return { origin, basePath: pathname.replace(/\/+$/, ''), isServing, zone, weight, joinedAtMs };
}

/** The place's registered URL, as far as requests are concerned. */
export function urlOf({ origin, basePath }: Pick<Place, 'origin' | 'basePath'>): string {
  return origin + basePath;
}
