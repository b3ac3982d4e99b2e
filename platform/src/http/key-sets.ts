import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type FlattenedJWSInput,
  type JWSHeaderParameters,
  type JWTVerifyGetKey,
} from 'jose';
import type { Clock } from '../clock.ts';
import { backoffMs, sleep } from '../retry.ts';

/** Of one try. */
const TIMEOUT_MS = 2000;
/** All callers wait for one fetch; a pod of the issuer that goes away must not fail them. */
const PERSISTS_MS = 5000;
const BACKOFF = { baseMs: 100, maxMs: 1000 };
/**
 * After a fetch that failed there is none for so long: whoever shows a token of an unknown key asks
 * for one.
 */
const PAUSE_MS = 1000;
/** For so long after they were had, keys count where the issuer cannot be reached. */
const STALE_MS = 3_600_000;

export interface KeySetOptions {
  readonly clock: Clock;
  /** How long one fetch is tried again, in milliseconds; 5000 where it is not said. */
  readonly persistsMs?: number;
  /** How the set is fetched, where the network is not as usual. */
  readonly fetch?: FetchImplementation;
}

/**
 * An issuer's published keys by jose: fetched once, again after ten minutes, and for a key that is
 * not known after half a minute. While the issuer is away, keys that were had count for an hour.
 *
 * Where they cannot be had, verifying throws what is no JOSEError: the token may well be good.
 */
export function createKeySet(url: URL, options: KeySetOptions): JWTVerifyGetKey {
  const { clock, fetch = globalThis.fetch, persistsMs = PERSISTS_MS } = options;
  let failure: { readonly error: Error; readonly untilMs: number } | undefined;
  let hadAtMs = 0;

  function failureInForce(): Error | undefined {
    return failure !== undefined && clock.monotonicMs() < failure.untilMs ? failure.error : undefined;
  }

  const keys = createRemoteJWKSet(url, {
    timeoutDuration: persistsMs + TIMEOUT_MS,
    async [customFetch](address, request) {
      const error = failureInForce();
      if (error !== undefined) throw error;
      const response = await persist(() => {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
        return fetch(address, { ...request, signal });
      }, persistsMs);
      if (response.ok) hadAtMs = clock.monotonicMs();
      return response;
    },
  });

  async function staleKey(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey | undefined> {
    const had = keys.jwks();
    if (had === undefined || clock.monotonicMs() - hadAtMs > STALE_MS) return undefined;
    return createLocalJWKSet(had)(header, token).catch(() => undefined);
  }

  return async (header, token) => {
    try {
      return await keys(header, token);
    } catch (cause) {
      if (isOfToken(cause)) throw cause;
      const known = failureInForce();
      const error = known ?? new Error('The key set cannot be had', { cause });
      if (known === undefined) failure = { error, untilMs: clock.monotonicMs() + PAUSE_MS };
      const stale = await staleKey(header, token);
      if (stale !== undefined) return stale;
      throw error;
    }
  };
}

/** Tries again for so long what throws, or is answered with 5xx. */
async function persist(attempt: () => Promise<Response>, forMs: number): Promise<Response> {
  const untilMs = performance.now() + forMs;
  for (let tries = 0; ; tries += 1) {
    const [result] = await Promise.allSettled([attempt()]);
    const waitMs = backoffMs(tries, BACKOFF);
    const isLast = performance.now() + waitMs > untilMs;
    if (result.status === 'fulfilled' && (isLast || result.value.status < 500)) return result.value;
    if (result.status === 'rejected' && isLast) throw result.reason;
    await sleep(waitMs);
  }
}

/** Whether the keys were had, and the token names none of them. */
function isOfToken(error: unknown): boolean {
  return (
    error instanceof errors.JWKSNoMatchingKey ||
    error instanceof errors.JWKSMultipleMatchingKeys ||
    error instanceof errors.JOSENotSupported
  );
}
