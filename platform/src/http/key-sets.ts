import {
  createLocalJWKSet,
  createRemoteJWKSet,
  customFetch,
  errors,
  type FetchImplementation,
  type FlattenedJWSInput,
  type JWKSCacheInput,
  type JWSHeaderParameters,
  type JWTVerifyGetKey,
  jwksCache,
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

/** Finds the key of a token. */
export interface KeySet extends JWTVerifyGetKey {
  /** Fetches the keys. @throws where they cannot be had. */
  load(): Promise<void>;
}

/**
 * An issuer's published keys by jose: fetched once, again after ten minutes, and for a key that is
 * not known after half a minute. While the issuer is away, keys that were had count for an hour, and
 * nobody who shows one of them waits for it.
 *
 * Where they cannot be had, verifying throws what is no JOSEError: the token may well be good.
 */
export function createKeySet(url: URL, options: KeySetOptions): KeySet {
  const { clock, fetch = globalThis.fetch, persistsMs = PERSISTS_MS } = options;
  let failure: { readonly error: Error; readonly untilMs: number } | undefined;
  const had: JWKSCacheInput = {};

  function failureInForce(): Error | undefined {
    return failure !== undefined && clock.monotonicMs() < failure.untilMs ? failure.error : undefined;
  }

  const keys = createRemoteJWKSet(url, {
    timeoutDuration: persistsMs + TIMEOUT_MS,
    [jwksCache]: had,
    async [customFetch](address, request) {
      const error = failureInForce();
      if (error !== undefined) throw error;
      return persist(() => {
        const signal = AbortSignal.any([request.signal, AbortSignal.timeout(TIMEOUT_MS)]);
        return fetch(address, { ...request, signal });
      }, persistsMs);
    },
  });

  async function staleKey(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey | undefined> {
    const { jwks, uat: hadAtMs } = had;
    if (jwks === undefined || clock.now().getTime() - hadAtMs > STALE_MS) return undefined;
    return createLocalJWKSet(jwks)(header, token).catch(() => undefined);
  }

  function failed(cause: unknown): Error {
    const known = failureInForce();
    if (known !== undefined) return known;
    const error = new Error('The key set cannot be had', { cause });
    failure = { error, untilMs: clock.monotonicMs() + PAUSE_MS };
    return error;
  }

  function fetchAside(): void {
    if (keys.reloading || failureInForce() !== undefined) return;
    keys.reload().then(() => (failure = undefined), failed);
  }

  async function find(header: JWSHeaderParameters, token: FlattenedJWSInput): Promise<CryptoKey> {
    if (failure !== undefined && !keys.fresh) {
      const stale = await staleKey(header, token);
      if (stale !== undefined) {
        fetchAside();
        return stale;
      }
    }
    try {
      const key = await keys(header, token);
      if (failureInForce() === undefined) failure = undefined;
      return key;
    } catch (cause) {
      if (isOfToken(cause)) throw cause;
      const error = failed(cause);
      const stale = await staleKey(header, token);
      if (stale !== undefined) return stale;
      throw error;
    }
  }

  return Object.assign(find, {
    load: () =>
      keys.reload().catch((cause: unknown) => {
        throw failed(cause);
      }),
  });
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
    // Else its connection would be kept until it is collected.
    if (result.status === 'fulfilled') result.value.body?.cancel().catch(() => {});
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
