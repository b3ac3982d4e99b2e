import { createLocalJWKSet, errors, type JWTVerifyGetKey } from 'jose';
import { fetch as undiciFetch } from 'undici';
import type { Clock } from '../clock.ts';

const TIMEOUT_MS = 3000;
/** A key set is fetched for an unknown key at most this often. */
const COOL_DOWN_MS = 30_000;
const KEPT_MS = 600_000;
/**
 * After a fetch that failed there is none for so long: whoever shows a token of an unknown key asks
 * for one.
 */
const PAUSE_MS = 5000;

interface FetchOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly redirect: 'error';
  readonly signal: AbortSignal;
}

/** What is asked of a `fetch`: that of undici fits. */
export type KeySetFetch = (
  url: URL,
  options: FetchOptions,
) => Promise<{ readonly status: number; text(): Promise<string> }>;

export interface KeySetOptions {
  readonly clock: Clock;
  /** How the set is fetched, where the network is not as usual. */
  readonly fetch?: KeySetFetch;
}

interface Fetched {
  readonly keys: JWTVerifyGetKey;
  readonly atMs: number;
}

/**
 * An issuer's published keys, which are fetched once, again after ten minutes, and again for a key
 * that is not known. jose's own goes by the system's clock.
 *
 * Where they cannot be had, verifying throws what is no JOSEError: the token may well be good.
 */
export function createKeySet(url: URL, { clock, fetch = undiciFetch }: KeySetOptions): JWTVerifyGetKey {
  let known: Fetched | undefined;
  let failure: { readonly error: unknown; readonly untilMs: number } | undefined;
  let fetching: Promise<Fetched> | undefined;

  async function fetchOnce(): Promise<Fetched> {
    try {
      const headers = { accept: 'application/jwk-set+json, application/json' };
      const answer = await fetch(url, { headers, redirect: 'error', signal: AbortSignal.timeout(TIMEOUT_MS) });
      const text = await answer.text();
      if (answer.status !== 200) throw new Error(`The key set was answered with ${answer.status}`);
      known = { keys: parse(text), atMs: clock.monotonicMs() };
      return known;
    } catch (error) {
      failure = { error, untilMs: clock.monotonicMs() + PAUSE_MS };
      throw error;
    }
  }

  async function refresh(): Promise<Fetched> {
    if (failure !== undefined && clock.monotonicMs() < failure.untilMs) throw failure.error;
    fetching ??= fetchOnce().finally(() => {
      fetching = undefined;
    });
    return fetching;
  }

  function isFresh({ atMs }: Fetched, forMs: number): boolean {
    return clock.monotonicMs() < atMs + forMs;
  }

  return async (header, token) => {
    const current = known !== undefined && isFresh(known, KEPT_MS) ? known : await refresh();
    try {
      return await current.keys(header, token);
    } catch (err) {
      if (!(err instanceof errors.JWKSNoMatchingKey) || isFresh(current, COOL_DOWN_MS)) throw err;
      return (await refresh()).keys(header, token);
    }
  };
}

/** @throws Error: a set that is none is no fault of the token. */
function parse(text: string): JWTVerifyGetKey {
  const value = JSON.parse(text);
  try {
    return createLocalJWKSet(value);
  } catch (err) {
    throw new Error('The key set is none', { cause: err });
  }
}
