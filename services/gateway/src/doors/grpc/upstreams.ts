import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/log.ts';
import { LOOK_INTERVAL_MS, type Place, PooledConnection, type PooledOptions } from './pooled-connection.ts';

export interface UpstreamOptions extends PooledOptions {
  /** A target gets another connection when each that it has carries so many calls... */
  readonly callsPerSession: number;
  /** ...up to so many connections; then they carry more. */
  readonly sessionsPerTarget: number;
}

interface UpstreamDeps {
  readonly clock: Clock;
  readonly log: Logger;
}

/** The connections to all backends. */
export interface Upstreams {
  /** @returns one for a call, which may yet have to be made. */
  connectionTo(place: Place): PooledConnection;
  readonly sessions: number;
  /** Ends all connections, and with them what is still under way. */
  close(): void;
}

/** Those to one address of an origin that take new calls. */
type Pool = PooledConnection[];

/** Keeps HTTP/2 connections to backends: made when a call needs one, given up when they are idle, old, broken or told to go. */
export function createUpstreams(options: UpstreamOptions, { clock, log }: UpstreamDeps): Upstreams {
  /** By origin and address. */
  const pools = new Map<string, Map<string | undefined, Pool>>();
  /** Those, too, that take no new calls and still have some. */
  const all = new Set<PooledConnection>();

  function drop(pooled: PooledConnection): void {
    const { origin, endpoint } = pooled.place;
    const byAddress = pools.get(origin);
    const pool = byAddress?.get(endpoint.address);
    const index = pool?.indexOf(pooled) ?? -1;
    if (byAddress === undefined || pool === undefined || index < 0) return;
    pool.splice(index, 1);
    if (pool.length === 0) byAddress.delete(endpoint.address);
    if (byAddress.size === 0) pools.delete(origin);
  }

  function add(place: Place): PooledConnection {
    const pooled = new PooledConnection(place, {
      options,
      clock,
      log,
      onUnusable: drop,
      onGone: () => all.delete(pooled),
    });
    all.add(pooled);
    const { origin, endpoint } = place;
    const byAddress = pools.get(origin) ?? new Map<string | undefined, Pool>();
    const pool = byAddress.get(endpoint.address) ?? [];
    pool.push(pooled);
    pools.set(origin, byAddress.set(endpoint.address, pool));
    return pooled;
  }

  const timer = setInterval(() => {
    for (const pooled of all) pooled.look();
  }, LOOK_INTERVAL_MS);
  timer.unref();

  return {
    connectionTo(place) {
      const pool = pools.get(place.origin)?.get(place.endpoint.address);
      if (pool === undefined) return add(place);
      let least: PooledConnection | undefined;
      let usable = 0;
      for (const pooled of pool) {
        if (!pooled.takesCalls()) continue;
        usable += 1;
        if (least === undefined || pooled.calls < least.calls) least = pooled;
      }
      if (least === undefined) return add(place);
      const hasRoom = least.calls < options.callsPerSession && least.calls < least.room;
      return hasRoom || usable >= options.sessionsPerTarget ? least : add(place);
    },
    get sessions() {
      return all.size;
    },
    close() {
      clearInterval(timer);
      for (const pooled of all) pooled.close();
    },
  };
}
