import { type BackOff, backOffMs } from './back-off.ts';
import { createEmitter, type Subscribable } from './emitter.ts';
import { pause } from './pause.ts';
import { RegistryError } from './registry-error.ts';
import type { ServiceFilter, ServiceRecord } from './registry-types.ts';
import { createServiceCache, type ServiceChange } from './service-cache.ts';
import { type ConnectionOptions, createTransport } from './transport.ts';
import { watchServices } from './watch.ts';

export interface DiscoverOptions extends ConnectionOptions {
  /**
   * A connection on which nothing arrived for this long is dead, in milliseconds. Default 40,000.
   */
  readonly silenceMs?: number | undefined;
  /** Between attempts to connect. Default 250 ms, doubling up to 10 s, with jitter. */
  readonly retry?: BackOff | undefined;
  /**
   * Let a Node process end while only waiting to reconnect. An open watch itself keeps it alive
   * until {@link Directory.close}.
   */
  readonly unref?: boolean | undefined;
}

/** @public */
export interface DirectoryEvents {
  /** A service appeared, changed its facts, expired or was removed. */
  change: ServiceChange;
  /** All that is registered is known; again after every full list. */
  synced: { readonly total: number };
  /** A registry accepted the watch. */
  connected: { readonly resumed: boolean };
  /** The watch broke or could not be opened; the cache goes on serving. */
  disconnected: { readonly error: unknown; readonly retryInMs: number };
}

/**
 * `connecting`: not all that is registered is known yet. `live`: fed by the watch. `stale`: the
 * watch is down or catching up, the last known state is served.
 *
 * @public
 */
export type DirectoryState = 'connecting' | 'live' | 'stale';

/** The registered services as last received. Lookups are local: no request, no waiting. */
export interface Directory extends Subscribable<DirectoryEvents> {
  /**
   * Resolves when all that is registered is known for the first time; rejects when closed before.
   */
  readonly ready: Promise<void>;
  state(): DirectoryState;
  /**
   * A service, or undefined where none of that name is known. `last_heartbeat` is as of its last
   * change of facts.
   */
  find(name: string): ServiceRecord | undefined;
  /** @throws RegistryError with status 404 where no service of that name is known. */
  get(name: string): ServiceRecord;
  /** The services that match, by name. */
  list(filter?: ServiceFilter): readonly ServiceRecord[];
  /**
   * A service to call: the one of that name, or by turns one that matches the filter.
   *
   * @throws RegistryError with status 404 where there is none.
   */
  pick(which: string | ServiceFilter): ServiceRecord;
  /** Stops watching. What is known stays readable. */
  close(): void;
  [Symbol.dispose](): void;
}

const DEFAULT_RETRY: BackOff = { baseMs: 250, maxMs: 10_000 };

/**
 * A connection that ends sooner counts as a failure, so that one which always ends at once is not
 * retried at once.
 */
const STABLE_AFTER_MS = 5000;

/**
 * Follows `GET /services/watch` and keeps what it says. Never gives up: while no registry answers,
 * the last known state is served and connecting is tried again with back-off.
 *
 * @throws TypeError where a server's URL is unusable.
 */
export function discover(options: DiscoverOptions): Directory {
  const transport = createTransport(options);
  const cache = createServiceCache();
  const emitter = createEmitter<DirectoryEvents>();
  const closing = new AbortController();
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => undefined);
  const turns = new Map<string, number>();
  let state: DirectoryState = 'connecting';
  let synced = false;

  async function followOneConnection(): Promise<void> {
    const { silenceMs } = options;
    const cursor = cache.beginConnection();
    for await (const event of watchServices(transport, { cursor, silenceMs, signal: closing.signal })) {
      if (event.type === 'opened') emitter.emit('connected', { resumed: cursor !== undefined });
      for (const change of cache.apply(event)) emitter.emit('change', change);
      if (event.type === 'synced') {
        synced = true;
        ready.resolve();
        emitter.emit('synced', { total: cache.list().length });
      }
      if (synced) state = cache.isListing() ? 'stale' : 'live';
    }
  }

  async function follow(): Promise<void> {
    for (let failures = 0; !closing.signal.aborted; failures += 1) {
      const startedAt = performance.now();
      let error: unknown = new RegistryError('the registry ended the watch', { error: 'Registry unreachable' });
      try {
        await followOneConnection();
      } catch (thrown) {
        error = thrown;
      }
      if (closing.signal.aborted) return;
      if (synced) state = 'stale';
      if (performance.now() - startedAt >= STABLE_AFTER_MS) failures = 0;
      const retryInMs = backOffMs(failures, options.retry ?? DEFAULT_RETRY);
      emitter.emit('disconnected', { error, retryInMs });
      await pause(retryInMs, { signal: closing.signal, unref: options.unref });
    }
  }

  function list(filter: ServiceFilter = {}): readonly ServiceRecord[] {
    const { capability, prefix } = filter;
    if (capability === undefined && prefix === undefined) return cache.list();
    return cache
      .list()
      .filter(
        (service) =>
          (capability === undefined || service.capabilities.includes(capability)) &&
          (prefix === undefined || service.service_name.startsWith(prefix)),
      );
  }

  function pick(which: string | ServiceFilter): ServiceRecord {
    const matching = typeof which === 'string' ? [cache.find(which)] : list(which);
    const key = typeof which === 'string' ? which : `${which.capability ?? ''} ${which.prefix ?? ''}`;
    const turn = (turns.get(key) ?? -1) + 1;
    const picked = matching[turn % Math.max(1, matching.length)];
    if (picked === undefined) throw notFound(typeof which === 'string' ? which : JSON.stringify(which));
    if (matching.length > 1) turns.set(key, turn % matching.length);
    return picked;
  }

  function close(): void {
    closing.abort(new Error('the directory was closed'));
    ready.reject(closing.signal.reason);
  }

  void follow();
  return {
    ready: ready.promise,
    state: () => state,
    on: (type, listener) => emitter.on(type, listener),
    find: (name) => cache.find(name),
    get: (name) => cache.find(name) ?? fail(notFound(name)),
    list,
    pick,
    close,
    [Symbol.dispose]: close,
  };
}

function notFound(what: string): RegistryError {
  return new RegistryError(`no service ${what} is registered`, { status: 404, error: 'Service not found' });
}

function fail(error: Error): never {
  throw error;
}
