import type { LookupAddress } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import {
  AddressRefusedError,
  type AddressRule,
  allowedOf,
  isRefusedAddress,
} from '@rollcall/platform/outbound/address-rules.ts';
import type { Resolve } from '@rollcall/platform/outbound/lookups.ts';
import { isAddress } from '@rollcall/platform/outbound/url-host.ts';

/** Where a host name leads, as it is now. */
export interface Addresses {
  /**
   * Two or more, sorted; empty: there is nothing to choose from, and the name itself is as good.
   * The same array until they change.
   */
  current(): readonly string[];
  /**
   * @returns what is to be waited for before {@link current} can be relied on; undefined: nothing.
   * It never rejects.
   */
  refresh(): Promise<void> | undefined;
  /** Whether it leads nowhere but where no connection may be made. */
  isRefused(): boolean;
  /** One of them accepted no connection: there may be others by now. */
  suspect(): void;
}

/** Asked for again after that, by the way... */
const FRESH_MS = 5000;
/**
 * ...and after that nothing goes to the old ones before the answer is there: an address may have
 * another owner by now.
 */
const USABLE_MS = 30_000;
/** However suspect they are. */
const LEAST_PAUSE_MS = 1000;
const NONE: readonly string[] = [];

interface FollowDeps {
  readonly resolve: Resolve;
  /** Addresses that it forbids are left out. */
  readonly mayConnect: AddressRule;
  readonly clock: Clock;
}

/**
 * Follows a host name while it is used. What could not be looked up stays as it was.
 *
 * @param hostname as in a URL: IPv6 addresses are bracketed. An address is not looked up.
 */
export function followAddresses(hostname: string, { resolve, mayConnect, clock }: FollowDeps): Addresses {
  let current = NONE;
  let isRefused = isRefusedAddress(hostname, mayConnect);
  let askedAtMs = Number.NEGATIVE_INFINITY;
  let goodUntilMs = isAddress(hostname) ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
  let usableUntilMs = goodUntilMs;
  let asking: Promise<void> | undefined;

  async function ask(): Promise<void> {
    try {
      const answer = severalOf(allowedOf(hostname, await resolve(hostname), mayConnect));
      isRefused = false;
      if (answer.join() !== current.join()) current = answer;
    } catch (error) {
      // A name that cannot be looked up shows when a connection is made to it.
      if (error instanceof AddressRefusedError) isRefused = true;
    } finally {
      asking = undefined;
      goodUntilMs = clock.monotonicMs() + FRESH_MS;
      usableUntilMs = clock.monotonicMs() + USABLE_MS;
    }
  }

  return {
    current: () => current,
    isRefused: () => isRefused,
    refresh() {
      const nowMs = clock.monotonicMs();
      if (nowMs < goodUntilMs) return undefined;
      if (asking === undefined && nowMs >= askedAtMs + LEAST_PAUSE_MS) {
        askedAtMs = nowMs;
        asking = ask();
      }
      return nowMs < usableUntilMs ? undefined : asking;
    },
    suspect() {
      if (goodUntilMs === Number.POSITIVE_INFINITY) return;
      goodUntilMs = Number.NEGATIVE_INFINITY;
      usableUntilMs = Number.NEGATIVE_INFINITY;
    },
  };
}

/**
 * Pure. Of two families the one that is named first: both are ways to the same servers, and whoever
 * connects by name falls back to the other (RFC 8305).
 */
function severalOf(answer: readonly LookupAddress[]): readonly string[] {
  const family = answer[0]?.family;
  const addresses = new Set(answer.filter((each) => each.family === family).map(({ address }) => address));
  return addresses.size < 2 ? NONE : [...addresses].toSorted();
}

/** Looks every name up as this address. */
export function always(address: string): LookupFunction {
  const family = isIP(address);
  return (_hostname, options, callback) => {
    if (options.all === true) callback(null, [{ address, family }]);
    else callback(null, address, family);
  };
}
