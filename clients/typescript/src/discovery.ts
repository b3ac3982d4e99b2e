import { type BackOff, backOffMs } from './back-off.ts';
import { createEmitter, type Subscribable } from './emitter.ts';
import { createListedCache, type ListedCache } from './listed-cache.ts';
import { pause } from './pause.ts';
import { RegistryError } from './registry-error.ts';
import type { InstanceRecord, ServiceFilter, ServiceRecord } from './registry-types.ts';
import { type ConnectionOptions, createTransport } from './transport.ts';
import { sameFacts, sameInstance, type Watched, watchedInstances, watchedServices, watchList } from './watch.ts';

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

/**
 * How the set of known services changed. `previous` is what was known before, absent for `added`.
 */
export interface ServiceChange<Item = ServiceRecord> {
  readonly type: 'added' | 'modified' | 'expired' | 'removed';
  readonly service: Item;
  readonly previous?: Item;
}

/** @public */
export interface DirectoryEvents<Item = ServiceRecord> {
  /** A service appeared, changed its facts, expired or was removed. */
  change: ServiceChange<Item>;
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

/** What is registered, as last received. */
interface Following<Item> extends Subscribable<DirectoryEvents<Item>> {
  /**
   * Resolves when all that is registered is known for the first time; rejects when closed before.
   */
  readonly ready: Promise<void>;
  state(): DirectoryState;
  /** Stops watching. What is known stays readable. */
  close(): void;
  [Symbol.dispose](): void;
}

/** The programs that are registered, each an instance of its service. */
export interface InstanceDirectory extends Following<InstanceRecord> {
  /** Those of one service, in no particular order; of all without a name. */
  list(name?: string): readonly InstanceRecord[];
}

/** The registered services as last received. Lookups are local: no request, no waiting. */
export interface Directory extends Following<ServiceRecord> {
  /**
   * A service, or undefined where none of that name is known. `last_heartbeat` is as of its last
   * change of facts.
   */
  find(name: string): ServiceRecord | undefined;
  /** @throws RegistryError with status 404 where no service of that name is known. */
  get(name: string): ServiceRecord;
  /** The services that match, by name. */
  list(filter?: Pick<ServiceFilter, 'capability' | 'prefix'>): readonly ServiceRecord[];
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
  const cache = createListedCache<ServiceRecord, 'expired' | 'removed'>({
    keyOf: ({ service_name }) => service_name,
    isSame: sameFacts,
  });
  return {
    ...followList(options, watchedServices, cache),
    find: (name) => cache.find(name),
    get: (name) => cache.find(name) ?? notFound(name),
    list({ capability, prefix = '' } = {}) {
      return Array.from(cache.items())
        .filter(
          (service) =>
            (capability === undefined || service.capabilities.includes(capability)) &&
            service.service_name.startsWith(prefix),
        )
        .sort((a, b) => (a.service_name < b.service_name ? -1 : 1));
    },
  };
}

/**
 * As {@link discover}, of each instance. A registry that knows no instances tells of services.
 *
 * @throws TypeError where a server's URL is unusable.
 */
export function discoverInstances(options: DiscoverOptions): InstanceDirectory {
  const cache = createListedCache<InstanceRecord, 'expired' | 'removed'>({
    keyOf: ({ service_name, instance_id = '' }) => `${service_name}:${instance_id}`,
    isSame: sameInstance,
  });
  return {
    ...followList(options, watchedInstances, cache),
    list: (name) => Array.from(cache.items()).filter(({ service_name }) => name === undefined || service_name === name),
  };
}

/** Fills the cache from the watch until it is closed. */
function followList<Item extends object>(
  options: DiscoverOptions,
  watched: Watched<Item, 'expired' | 'removed'>,
  cache: ListedCache<Item, 'expired' | 'removed'>,
): Following<Item> {
  const transport = createTransport(options);
  const emitter = createEmitter<DirectoryEvents<Item>>();
  const closing = new AbortController();
  const ready = Promise.withResolvers<void>();
  ready.promise.catch(() => undefined);
  let state: DirectoryState = 'connecting';
  let synced = false;

  async function followOneConnection(): Promise<void> {
    const { silenceMs } = options;
    const cursor = cache.beginConnection();
    for await (const event of watchList(transport, watched, { cursor, silenceMs, signal: closing.signal })) {
      if (event.type === 'opened') emitter.emit('connected', { resumed: cursor !== undefined });
      for (const { item, ...change } of cache.apply(event)) emitter.emit('change', { ...change, service: item });
      if (event.type === 'synced') {
        synced = true;
        ready.resolve();
        emitter.emit('synced', { total: [...cache.items()].length });
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

  function close(): void {
    closing.abort(new Error('the directory was closed'));
    ready.reject(closing.signal.reason);
  }

  void follow();
  return {
    ready: ready.promise,
    state: () => state,
    on: (type, listener) => emitter.on(type, listener),
    close,
    [Symbol.dispose]: close,
  };
}

function notFound(name: string): never {
  throw new RegistryError(`no service ${name} is registered`, { status: 404, error: 'Service not found' });
}
