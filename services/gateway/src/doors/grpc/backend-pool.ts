import { BackendConnection, type BackendDeps, type Place } from './backend-connection.ts';
import { CHECK_INTERVAL_MS } from './peer-watch.ts';

/**
 * Keeps HTTP/2 connections to backends: made when a call needs one, given up when they are idle,
 * old, broken or refused by GOAWAY.
 */
export class BackendPool {
  readonly #deps: BackendDeps;
  readonly #timer: NodeJS.Timeout;
  /** By origin and address, until they are closed. */
  readonly #connections = new Map<string, Set<BackendConnection>>();

  constructor(deps: BackendDeps) {
    this.#deps = deps;
    this.#timer = setInterval(() => {
      for (const connection of this.#all()) connection.check();
    }, CHECK_INTERVAL_MS).unref();
  }

  /** @returns one for a call, which may yet have to be made. */
  connectionTo(place: Place): BackendConnection {
    const { callsPerSession, sessionsPerTarget } = this.#deps.limits;
    const key = `${place.origin} ${place.endpoint.address ?? ''}`;
    let least: BackendConnection | undefined;
    let count = 0;
    for (const connection of this.#connections.get(key) ?? []) {
      if (!connection.acceptsCalls()) continue;
      count += 1;
      if (least === undefined || connection.calls < least.calls) least = connection;
    }
    if (least === undefined) return this.#add(key, place);
    const isFull = least.calls >= Math.min(callsPerSession, least.room);
    return isFull && count < sessionsPerTarget ? this.#add(key, place) : least;
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

  #add(key: string, place: Place): BackendConnection {
    const connection = new BackendConnection(place, this.#deps);
    const ofKey = this.#connections.get(key) ?? new Set();
    this.#connections.set(key, ofKey.add(connection));
    connection.session.on('close', () => {
      ofKey.delete(connection);
      if (ofKey.size === 0) this.#connections.delete(key);
    });
    return connection;
  }
}
