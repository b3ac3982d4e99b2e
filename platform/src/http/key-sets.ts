import { createRemoteJWKSet, customFetch, type FetchImplementation, type RemoteJWKSet } from 'jose';
import type { Clock } from '../clock.ts';

const TIMEOUT_MS = 3000;
/** A key set is fetched for an unknown key at most this often. */
const COOL_DOWN_MS = 30_000;
const KEPT_MS = 600_000;
/** After a fetch that failed there is none for so long: whoever shows a token of an unknown key asks for one. */
const PAUSE_MS = 5000;

export interface KeySetOptions {
  readonly clock: Clock;
  /** How the set is fetched, where the network is not as usual. */
  readonly fetch?: FetchImplementation;
}

/**
 * An issuer's published keys, which are fetched once, again after ten minutes, and again for a key that is not known.
 *
 * Where they cannot be had, verifying throws a JWKSTimeout or what is no JOSEError: the token may well be good.
 */
export function createKeySet(url: URL, { clock, fetch = globalThis.fetch }: KeySetOptions): RemoteJWKSet {
  return createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT_MS,
    cooldownDuration: COOL_DOWN_MS,
    cacheMaxAge: KEPT_MS,
    [customFetch]: pausing(fetch, clock),
  });
}

/** Keeps what a fetch has failed with for a while, in which nobody waits for another. */
function pausing(fetch: FetchImplementation, clock: Clock): FetchImplementation {
  let failure: { readonly error: unknown; readonly untilMs: number } | undefined;
  return async (url, options) => {
    if (failure !== undefined && clock.monotonicMs() < failure.untilMs) throw failure.error;
    try {
      const answer = await fetch(url, options);
      if (answer.status !== 200) throw new Error(`The key set was answered with ${answer.status}`);
      return Response.json(await answer.json());
    } catch (error) {
      failure = { error, untilMs: clock.monotonicMs() + PAUSE_MS };
      throw error;
    }
  };
}
