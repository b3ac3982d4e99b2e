import type { Followed } from './catch-up.ts';

/** What subscribers are sent of an item. */
export interface FeedEvent<Item> {
  /** The store's version of the change: it grows, and is the same on every replica. */
  readonly version: number;
  /** An item that is replaced by another one under its key is `modified`. */
  readonly type: 'added' | 'modified' | 'expired' | 'removed';
  readonly item: Item;
}

/** A change of an item as the store's watch brought it, in the order of the store's versions. */
interface ItemChange<Item> {
  readonly version: number;
  readonly item: Item;
  readonly deleted: boolean;
}

/** The recent events, for subscribers that come back, and the live ones. */
export interface Feed<Item> extends Followed {
  apply(change: ItemChange<Item>): void;
  /** Nothing else happened up to `version`. */
  reach(version: number): void;
  /**
   * A complete list of the store: whatever differs from what was sent becomes events of the version
   * before it.
   */
  replace(items: readonly Item[], version: number): void;
  /**
   * The events after `version`, or undefined when they are no longer (or were never) known here:
   * the subscriber then has to begin with {@link snapshot}. Whoever knows of a later version than is
   * reached here has it from a replica that is ahead.
   */
  since(version: number): readonly FeedEvent<Item>[] | undefined;
  /** Everything that is there, as `added` events. */
  snapshot(): readonly FeedEvent<Item>[];
  /**
   * The version that {@link snapshot} is of: that of the last change or list, which other replicas
   * reach soonest; 0 before the first list.
   */
  readonly version: number;
  /** @returns a function that ends the subscription. */
  subscribe(listener: (event: FeedEvent<Item>) => void): () => void;
}

export interface FeedOptions<Item> {
  /** How many past events are kept. */
  readonly capacity: number;
  /** By which subscribers know the item. */
  readonly keyOf: (item: Item) => string;
  /** All that subscribers see of it: what leaves this as it is, is no event. */
  readonly show: (item: Item) => string;
  /** Whether subscribers are to know of it; it is `expired` for them once they are not. */
  readonly isPresent?: (item: Item) => boolean;
}

export function createFeed<Item>(options: FeedOptions<Item>): Feed<Item> {
  const { capacity, keyOf, show, isPresent = () => true } = options;
  const published = new Map<string, { readonly item: Item; readonly shown: string }>();
  const listeners = new Set<(event: FeedEvent<Item>) => void>();
  const waiters = new Set<{ readonly version: number; readonly resolve: () => void }>();
  let recent: FeedEvent<Item>[] = [];
  /** Every event after this version is in `recent`. */
  let completeAfter = Number.POSITIVE_INFINITY;
  let version = 0;
  let reached = 0;

  function send(event: FeedEvent<Item>): void {
    recent.push(event);
    if (recent.length > capacity * 2) {
      const dropped = recent.length - capacity;
      completeAfter = recent[dropped - 1]?.version ?? completeAfter;
      recent = recent.slice(dropped);
    }
    for (const listener of listeners) listener(event);
  }

  function apply(item: Item, deleted: boolean, at: number): void {
    const key = keyOf(item);
    const known = published.get(key);
    if (deleted || !isPresent(item)) {
      if (known === undefined) return;
      published.delete(key);
      send({ version: at, type: deleted ? 'removed' : 'expired', item });
      return;
    }
    const shown = show(item);
    published.set(key, { item, shown });
    if (known?.shown !== shown) send({ version: at, type: known === undefined ? 'added' : 'modified', item });
  }

  function reach(at: number): void {
    reached = Math.max(reached, at);
    for (const waiter of waiters) if (waiter.version <= reached) waiter.resolve();
  }

  return {
    apply({ version: at, item, deleted }) {
      if (at <= version) return;
      version = at;
      apply(item, deleted, at);
      reach(at);
    },
    reach,
    replace(items, at) {
      const listed = new Set(items.map(keyOf));
      // A subscriber that gets only some of these events, and resumes from their version, is sent
      // everything anew. Before the first list there is nobody.
      for (const [key, { item }] of published) if (!listed.has(key)) apply(item, true, version);
      for (const item of items) apply(item, false, version);
      recent = [];
      completeAfter = at;
      version = Math.max(version, at);
      reach(version);
    },
    get reached() {
      return reached;
    },
    async whenReached(at, signal) {
      if (at <= reached || signal.aborted) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { version: at, resolve: () => resolve() };
      waiters.add(waiter);
      signal.addEventListener('abort', waiter.resolve);
      await promise;
      waiters.delete(waiter);
      signal.removeEventListener('abort', waiter.resolve);
    },
    since(from) {
      if (from < completeAfter || from > reached) return undefined;
      return recent.filter((event) => event.version > from);
    },
    snapshot: () => Array.from(published.values(), ({ item }) => ({ version, type: 'added', item })),
    get version() {
      return version;
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}
