import type { Endpoint } from '../../upstream/discovery/endpoint.ts';
import { type BackendAddress, BackendConnection, type BackendDeps } from './backend-connection.ts';
import { CHECK_INTERVAL_MS } from './peer-watch.ts';

/**
 * Keeps HTTP/2 connections to backends: made when a call needs one, given up when they are idle,
 * old, broken or refused by GOAWAY.
 */
export class BackendPool {
  readonly #deps: BackendDeps;
  readonly #timer: NodeJS.Timeout;
  /** Until they are closed. */
  readonly #connections = new Map<Endpoint, Set<BackendConnection>>();

  constructor(deps: BackendDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => {
      for (const connection of this.#all()) connection.check();
    }, CHECK_INTERVAL_MS).unref();
  }

  /** @returns one for a call, which may yet have to be made. */
  connectionTo(address: BackendAddress): BackendConnection {
    const ofEndpoint = this.#connections.get(address.endpoint) ?? new Set();
    let least: BackendConnection | undefined;
    let open = 0;
    for (const connection of ofEndpoint) {
      if (!connection.acceptsCalls()) continue;
      open += 1;
      if (least === undefined || connection.calls < least.calls) least = connection;
    }
    const isEnough = open >= this.#deps.limits.sessionsPerTarget;
    if (least !== undefined && (isEnough || !least.isFull())) return least;
    const connection = new BackendConnection(address, this.#deps);
    this.#connections.set(address.endpoint, ofEndpoint.add(connection));
    connection.session.once('close', () => {
      ofEndpoint.delete(connection);
      if (ofEndpoint.size === 0) this.#connections.delete(address.endpoint);
    });
    return connection;
  }

  get size(): number {
    return [...this.#all()].length;
  }

  /** Ends all connections, and with them what is still under way. */
  close(): void {
    clearInterval(this.#timer);
    for (const { session } of this.#all()) session.destroy();
  }

  #all(): Iterable<BackendConnection> {
    return this.#connections.values().flatMap((ofOne) => ofOne);
  }
}
