import { createRemoteJWKSet, customFetch, errors, type FetchImplementation, type JWTVerifyGetKey } from 'jose';
import type { Clock } from '../clock.ts';

const TIMEOUT_MS = 3000;
/**
 * After a fetch that failed there is none for so long: whoever shows a token of an unknown key asks
 * for one.
 */
const PAUSE_MS = 5000;

export interface KeySetOptions {
  readonly clock: Clock;
  /** How the set is fetched, where the network is not as usual. */
  readonly fetch?: FetchImplementation;
}

/**
 * An issuer's published keys by jose: fetched once, again after ten minutes, and for a key that is
 * not known after half a minute.
 *
 * Where they cannot be had, verifying throws what is no JOSEError: the token may well be good.
 */
export function createKeySet(url: URL, { clock, fetch = globalThis.fetch }: KeySetOptions): JWTVerifyGetKey {
  let failure: { readonly error: Error; readonly untilMs: number } | undefined;

  function failureInForce(): Error | undefined {
    return failure !== undefined && clock.monotonicMs() < failure.untilMs ? failure.error : undefined;
  }

  const keys = createRemoteJWKSet(url, {
    timeoutDuration: TIMEOUT_MS,
    async [customFetch](address, options) {
      const error = failureInForce();
      if (error !== undefined) throw error;
      return fetch(address, options);
    },
  });

  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (cause) {
      if (isOfToken(cause)) throw cause;
      const known = failureInForce();
      if (known !== undefined) throw known;
      const error = new Error('The key set cannot be had', { cause });
      failure = { error, untilMs: clock.monotonicMs() + PAUSE_MS };
      throw error;
    }
  };
}

/** Whether the keys were had, and the token names none of them. */
function isOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
