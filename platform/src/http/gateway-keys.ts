import type { Clock } from '../clock.ts';
import type { Actor } from '../process/lifecycle.ts';
import { sleep } from '../retry.ts';
import { createKeySet, type KeySet } from './key-sets.ts';

/** A replica that is new may have to wait until the network lets it connect to the gateway. */
const PERSISTS_MS = 10_000;
/** A gateway that waits for this service, as in a first installation, must not wait for ever. */
const LONGEST_WAIT_MS = 10_000;
const PAUSE_MS = 1000;

/** The keys by which the gateway signs. @param jwksUrl its `/.well-known/jwks.json`. */
export function createGatewayKeys(jwksUrl: URL, clock: Clock): KeySet {
  return createKeySet(jwksUrl, { clock, persistsMs: PERSISTS_MS });
}

/**
 * Fetches the keys before a replica is ready, so that it refuses nobody whom the one that it
 * replaces would let in. After 10 s it is ready without them, and goes on trying.
 *
 * @param longestWaitMs in place of these 10 s.
 */
export function keysLoader(keys: Pick<KeySet, 'load'>, longestWaitMs = LONGEST_WAIT_MS): Actor {
  const stopping = new AbortController();

  async function loadUntilHad(): Promise<void> {
    while (!stopping.signal.aborted) {
      try {
        return await keys.load();
      } catch {
        await sleep(PAUSE_MS, stopping.signal);
      }
    }
  }

  return {
    name: 'gateway keys',
    start: async () => void (await Promise.race([loadUntilHad(), sleep(longestWaitMs, stopping.signal)])),
    stop: async () => stopping.abort(),
  };
}
