import type { Clock } from '@rollcall/platform/clock.ts';
import { passOverUnexpectedContinue } from '@rollcall/platform/outbound/unexpected-continue.ts';
import { Agent, type Dispatcher, Pool } from 'undici';
import { always } from './discovery/addresses.ts';
import type { Lookups } from './discovery/lookups.ts';

export interface DispatcherOptions {
  /** The lookup of a name included. */
  readonly connectTimeoutMs: number;
  readonly lookups: Lookups;
}

/** The HTTP/1.1 connections to all services. */
export interface Dispatchers {
  /**
   * @param origin `http://host:port`; by its host certificates are checked and `Host` is set.
   * @param address of that host to connect to; undefined: whichever accepts the connection.
   */
  of(origin: string, address: string | undefined): Dispatcher;
  /** To wherever a host name leads. */
  readonly byName: Dispatcher;
  /** Ends all connections, and with them what is still under way. */
  destroy(): Promise<void>;
}

interface Pinned {
  readonly pool: Pool;
  usedAtMs: number;
}

const CHECK_INTERVAL_MS = 30_000;
/**
 * Connections to an address that nothing was sent to for so long are closed once what is under way
 * is over.
 */
const IDLE_MS = 60_000;
/**
 * A connection that carries nothing for so long is closed by the gateway, before a server that
 * stops closes it: Rollcall's own, and most that drain, wait longer. A request that meets such a
 * close may have been read, so that no POST may be sent again.
 */
const KEEP_ALIVE_MS = 2000;
const connections = { allowH2: false, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS } as const;

/**
 * As many connections as are needed: how many requests are under way bounds them. Services that are
 * registered for one origin share its connections, so a bound here would let the requests of one
 * wait for those of another.
 */
export function createDispatchers(options: DispatcherOptions, clock: Clock): Dispatchers {
  passOverUnexpectedContinue();
  const { connectTimeoutMs, lookups } = options;
  // Half of the time: who fails by then knows that it is the lookup, which does not count against a
  // service.
  const lookup = lookups.within(connectTimeoutMs / 2);
  const byName = new Agent({ ...connections, connect: { timeout: connectTimeoutMs, lookup } });
  const byAddress = new Map<string, Pinned>();
  const closing = new Set<Pool>();

  function pin(key: string, origin: string, address: string): Pinned {
    const connect = { timeout: connectTimeoutMs, lookup: always(address) };
    const pinned = { pool: new Pool(origin, { ...connections, connect }), usedAtMs: 0 };
    byAddress.set(key, pinned);
    return pinned;
  }

  async function close(pool: Pool): Promise<void> {
    closing.add(pool);
    await pool.close();
    closing.delete(pool);
  }

  const timer = setInterval(() => {
    const beforeMs = clock.monotonicMs() - IDLE_MS;
    for (const [key, { pool, usedAtMs }] of byAddress) {
      if (usedAtMs > beforeMs) continue;
      byAddress.delete(key);
      void close(pool);
    }
  }, CHECK_INTERVAL_MS);
  timer.unref();

  return {
    byName,
    of(origin, address) {
      if (address === undefined) return byName;
      const key = `${origin} ${address}`;
      const pinned = byAddress.get(key) ?? pin(key, origin, address);
      pinned.usedAtMs = clock.monotonicMs();
      return pinned.pool;
    },
    async destroy() {
      clearInterval(timer);
      const pools = [...byAddress.values()].map(({ pool }) => pool);
      await Promise.all([byName, ...pools, ...closing].map((dispatcher) => dispatcher.destroy()));
    },
  };
}
