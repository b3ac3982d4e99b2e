import type { LookupFunction } from 'node:net';
import type { Clock } from '@rollcall/platform/clock.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import {
  BackendConnection,
  type BackendConnectionOptions,
  CHECK_INTERVAL_MS,
  type Place,
} from './backend-connection.ts';

export interface BackendPoolOptions extends BackendConnectionOptions {
  /** A target gets another connection when each that it has carries so many calls... */
  readonly callsPerSession: number;
  /** ...up to so many connections; then they carry more. */
  readonly sessionsPerTarget: number;
}

interface BackendPoolDeps {
  /** Gives up before a connection does. */
  readonly lookup: LookupFunction;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * Keeps HTTP/2 connections to backends: made when a call needs one, given up when they are idle,
 * old, broken or refused by GOAWAY.
 */
export class BackendPool {
  readonly #options: BackendPoolOptions;
  readonly #deps: BackendPoolDeps;
  readonly #timer: NodeJS.Timeout;
  /** Those, by origin and address, to which new calls went last. */
  readonly #pools = new Map<string, BackendConnection[]>();
  /** Also connections that get no new calls and still have some. */
  readonly #all = new Set<BackendConnection>();

  constructor(options: BackendPoolOptions, deps: BackendPoolDeps) {
    this.#options = options;
    this.#deps = deps;
    this.#timer = setInterval(() => this.#check(), CHECK_INTERVAL_MS).unref();
  }

  /** @returns one for a call, which may yet have to be made. */
  connectionTo(place: Place): BackendConnection {
    const { callsPerSession, sessionsPerTarget } = this.#options;
    const key = `${place.origin} ${place.endpoint.address ?? ''}`;
    const pool = (this.#pools.get(key) ?? []).filter((connection) => connection.acceptsCalls());
    let least = pool[0];
    for (const connection of pool) if (least === undefined || connection.calls < least.calls) least = connection;
    if (
      least === undefined ||
      (least.calls >= Math.min(callsPerSession, least.room) && pool.length < sessionsPerTarget)
    ) {
      least = this.#add(place);
      pool.push(least);
    }
    this.#pools.set(key, pool);
    return least;
  }

  get size(): number {
    return this.#all.size;
  }

  /** Ends all connections, and with them what is still under way. */
  close(): void {
    clearInterval(this.#timer);
    for (const connection of this.#all) connection.destroy();
  }

  #add(place: Place): BackendConnection {
    const { lookup, clock, log } = this.#deps;
    const connection = new BackendConnection(place, this.#options, { lookup, clock });
    this.#all.add(connection);
    connection.session.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code?.startsWith('ERR_HTTP2_') === true)
        log.warn({ err: error, origin: place.origin }, 'gRPC backend breaks HTTP/2');
    });
    connection.session.on('close', () => this.#all.delete(connection));
    return connection;
  }

  #check(): void {
    for (const connection of this.#all) connection.check();
    for (const [key, pool] of this.#pools) {
      if (!pool.some((connection) => connection.acceptsCalls())) this.#pools.delete(key);
    }
  }
}
