import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { Clock } from '../clock.ts';
import type { Logger } from '../process/log.ts';
import type { KubeConnection } from './connection.ts';
import { listAndWatch, type WatchSilence } from './list-watch.ts';
import { createListeners } from './listeners.ts';
import { entriesOf } from './managed-fields.ts';
import type { KubeObject } from './resource-client.ts';
import { type Change, createStore, type Store } from './store.ts';

const SILENCE: WatchSilence = { probeAfterMs: 3000, probeTimeoutMs: 5000, idleTimeoutMs: 150_000 };

export interface InformerOptions<T extends KubeObject> {
  readonly connection: KubeConnection;
  readonly kind: ResourceKind<T>;
  /** All namespaces when absent. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly clock: Clock;
  readonly log: Logger;
  /** Every object is offered again as a `resync` change this often; never when absent. */
  readonly resyncMs?: number;
  /** Called when a list or watch failed or was refused, with `list` or `watch`. */
  readonly onFailure?: (operation: 'list' | 'watch') => void;
  /**
   * Applied to every object before it is stored, to drop what this process never reads. It must
   * keep name, namespace, uid and resourceVersion. Of `managedFields` it
   * gets those of {@link ownFieldsOf} alone.
   */
  readonly transform?: (object: T) => T;
  /** The field manager whose entries of `managedFields` are kept; none when absent. */
  readonly ownFieldsOf?: string;
  /** 3 s, 5 s and 150 s when absent. */
  readonly silence?: WatchSilence;
}

/**
 * Whether the store follows the API server: `connected` once a list is complete and a watch from it
 * is open, `disconnected` from the first failure until that is so again. A watch that the server
 * ended normally and that was reopened at once is not a loss: no event was missed, and the server
 * was there. A server that hangs is noticed by {@link WatchSilence}.
 */
export type Connectivity = 'connected' | 'disconnected';

/** What a list or a watch brought. */
type StreamNews<T> =
  | { readonly type: 'listed'; readonly objects: readonly T[]; readonly resourceVersion: string }
  | { readonly type: 'stored' | 'deleted'; readonly object: T };

/** Keeps a local copy of all objects of a kind by list and watch, and reports changes. */
export interface Informer<T extends KubeObject> {
  /** Whose objects it holds; undefined: those of all namespaces. */
  readonly namespace: string | undefined;
  readonly store: Store<T>;
  /** Begins; returns at once. */
  start(): void;
  /** Resolves once nothing of it is left running. It cannot be started again. */
  stop(): Promise<void>;
  /** Resolves when the first full list is in the store; never when it is stopped before. */
  readonly synced: Promise<void>;
  hasSynced(): boolean;
  connectivity(): Connectivity;
  /**
   * When the copy was last known to be in step: the last list, event, bookmark or probe; undefined
   * before the first.
   */
  lastContactAt(): Date | undefined;
  /** @param listener called for every change, in order, synchronously. What it throws is logged. */
  onChange(listener: (change: Change<T>) => void): void;
  /** @param listener as for {@link onChange}. */
  onConnectivity(listener: (connectivity: Connectivity) => void): void;
  /**
   * @param listener called for what the API server sent, in its order, before our own writes are
   * applied.
   */
  onStream(listener: (news: StreamNews<T>) => void): void;
  /**
   * @param listener called with a version up to which {@link onStream} has reported everything,
   * though the last change was before it: about once a minute.
   */
  onBookmark(listener: (version: string) => void): void;
  /**
   * Puts the answer to our own write into the store, so that it is visible here before the watch
   * brings it.
   */
  recordWrite(object: T): void;
  /**
   * Puts an object into the store that was read again, because {@link InformerOptions.transform}
   * keeps more of it now.
   */
  recordRead(object: T): void;
  /** As {@link recordWrite}, for an object that we deleted and that no finalizer holds. */
  recordDelete(object: T): void;
}

export function createInformer<T extends KubeObject>(options: InformerOptions<T>): Informer<T> {
  const { kind, clock, log, transform = (object) => object } = options;
  const changes = createListeners<Change<T>>(log);
  const connectivities = createListeners<Connectivity>(log);
  const stream = createListeners<StreamNews<T>>(log);
  const bookmarks = createListeners<string>(log);
  const store = createStore<T>(changes.emit);
  const synced = Promise.withResolvers<void>();
  const stopping = new AbortController();
  const accept = (object: T): T => transform(prune(object, kind, options.ownFieldsOf));
  let connectivity: Connectivity = 'disconnected';
  let hasSynced = false;
  let lastContactAt: Date | undefined;
  let running: Promise<void> | undefined;
  let resync: NodeJS.Timeout | undefined;

  function setConnectivity(next: Connectivity): void {
    if (next === connectivity) return;
    connectivity = next;
    log.info({ kind: kind.kind, connectivity }, 'informer connectivity changed');
    connectivities.emit(next);
  }

  const following = () =>
    listAndWatch<T>(
      {
        ...options,
        silence: options.silence ?? SILENCE,
        accept,
        onContact() {
          lastContactAt = clock.now();
        },
        onConnected: (connected) => setConnectivity(connected ? 'connected' : 'disconnected'),
        onList(objects, version) {
          store.replace(objects, version);
          stream.emit({ type: 'listed', objects, resourceVersion: version });
          hasSynced = true;
          synced.resolve();
        },
        onPut(object) {
          store.put(object);
          stream.emit({ type: 'stored', object });
        },
        onDelete(object) {
          store.remove(object);
          stream.emit({ type: 'deleted', object });
        },
        onBookmark: bookmarks.emit,
      },
      stopping.signal,
    );

  return {
    namespace: options.namespace,
    store,
    start() {
      running ??= following();
      if (options.resyncMs !== undefined) {
        resync ??= setInterval(() => {
          for (const object of store.values()) changes.emit({ type: 'resync', object });
        }, options.resyncMs);
      }
    },
    async stop() {
      clearInterval(resync);
      stopping.abort();
      await running;
    },
    synced: synced.promise,
    hasSynced: () => hasSynced,
    connectivity: () => connectivity,
    lastContactAt: () => lastContactAt,
    onChange: changes.add,
    onConnectivity: connectivities.add,
    onStream: stream.add,
    onBookmark: bookmarks.add,
    recordWrite: (object) => store.put(accept(object)),
    recordRead: (object) => store.reread(accept(object)),
    recordDelete: (object) => store.delete(object),
  };
}

/**
 * Drops what nobody reads from the cache and is a large part of each object; lists also leave out
 * the kind.
 */
function prune<T extends KubeObject>(object: T, kind: ResourceKind<T>, owner: string | undefined): T {
  const { managedFields, ...rest } = object.metadata;
  const own = owner === undefined ? [] : entriesOf(managedFields, owner);
  const metadata = own.length === 0 ? rest : { ...rest, managedFields: own };
  return { ...object, apiVersion: kind.apiVersion, kind: kind.kind, metadata };
}
