import { passOverUnexpectedContinue } from '@rollcall/platform/node-internals/unexpected-continue.ts';
import type { Lookups } from '@rollcall/platform/outbound/lookups.ts';
import { Agent, type Dispatcher, Pool } from 'undici';
import { always } from './discovery/addresses.ts';
import type { Endpoint } from './discovery/endpoint.ts';

export interface DispatcherOptions {
  /** The lookup of a name included. */
  readonly connectTimeoutMs: number;
  readonly lookups: Lookups;
}

/** The HTTP/1.1 connections to all services. */
export interface Dispatchers {
  /** By the host of the endpoint's origin certificates are checked and `Host` is set. */
  of(endpoint: Endpoint): Dispatcher;
  /** To wherever a host name leads. */
  readonly byName: Dispatcher;
  /** Ends all connections by name; those to one address end with their requests. */
  destroy(): Promise<void>;
}

/**
 * A connection that carries nothing for so long is closed by the gateway, before a server that
 * stops closes it: Rollcall's own, and most that drain, wait longer. A request that meets such a
 * close may have been read, so that no POST may be sent again.
 */
const KEEP_ALIVE_MS = 2000;
const connections = { allowH2: false, keepAliveTimeout: KEEP_ALIVE_MS, keepAliveMaxTimeout: KEEP_ALIVE_MS } as const;

/**
 * As many connections as are needed: how many requests are under way bounds them. Services of one
 * origin share the connections by name, so a bound here would let the requests of one wait for those
 * of another.
 */
export function createDispatchers({ connectTimeoutMs, lookups }: DispatcherOptions): Dispatchers {
  passOverUnexpectedContinue();
  // Half of the time: who fails by then knows that it is the lookup, which does not count against a
  // service.
  const lookup = lookups.within(connectTimeoutMs / 2);
  const byName = new Agent({ ...connections, connect: { timeout: connectTimeoutMs, lookup } });
  const byAddress = new WeakMap<Endpoint, Pool>();

  return {
    byName,
    of(endpoint) {
      const { origin } = endpoint;
      if (endpoint.address === undefined) return byName;
      const connect = { timeout: connectTimeoutMs, lookup: always(endpoint.address) };
      const pool = byAddress.get(endpoint) ?? new Pool(origin, { ...connections, connect });
      byAddress.set(endpoint, pool);
      return pool;
    },
    destroy: () => byName.destroy(),
  };
}
