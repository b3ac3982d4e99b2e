/**
 * Events of a stream that begins with a full list. `cursor` is the event's id: a later stream that
 * names it resumes after the event.
 */
export type ListedEvent<Item, Gone extends string> =
  /** `synced` ends a full list; `reset` begins another one. */
  | { readonly type: 'opened' | 'synced' | 'reset'; readonly cursor: string | undefined }
  | { readonly type: 'added' | 'modified' | Gone; readonly item: Item; readonly cursor: string | undefined };

/** How the set of known items changed. `previous` is what was known before, absent for `added`. */
export interface ItemChange<Item, Gone extends string> {
  readonly type: 'added' | 'modified' | Gone | 'removed';
  readonly item: Item;
  readonly previous?: Item;
}

/** What a stream has sent so far, and where to resume it. No I/O. */
export interface ListedCache<Item, Gone extends string> {
  /**
   * To be called for every new connection, before its first event.
   *
   * @returns the cursor to resume from.
   */
  beginConnection(): string | undefined;
  /** Adds one event. @returns what really changed: repeated facts are no change. */
  apply(event: ListedEvent<Item, Gone>): readonly ItemChange<Item, Gone>[];
  find(key: string): Item | undefined;
  /** Whether a full list is awaited or under way: what is known may be out of date. */
  isListing(): boolean;
  items(): Iterable<Item>;
}

export interface ListedCacheOptions<Item> {
  readonly keyOf: (item: Item) => string;
  /** Whether two items of one key say the same. */
  readonly isSame: (a: Item, b: Item) => boolean;
}

/**
 * While a full list arrives (first connection, or after `reset`) known items stay: items that the
 * list did not name are dropped at `synced`. So a registry that comes back never makes a live item
 * vanish for a moment, and a list cut short costs nothing. For the same reason the cursor moves
 * only outside full lists: resuming from the middle of one would skip its rest. After `reset` it
 * stays where it was until the list is complete: it says to the next registry how much is known
 * here, so that one which is behind does not begin with what it knew before.
 */
export function createListedCache<Item, Gone extends string>(
  options: ListedCacheOptions<Item>,
): ListedCache<Item, Gone> {
  const { keyOf, isSame } = options;
  const items = new Map<string, Item>();
  let cursor: string | undefined;
  /** Keys that the full list in progress has named; undefined: none is in progress. */
  let listed: Set<string> | undefined;
  let cursorOfList: string | undefined;

  function beginList(): void {
    listed = new Set();
    cursorOfList = undefined;
  }

  function endList(listedKeys: ReadonlySet<string>): ItemChange<Item, Gone>[] {
    const changes: ItemChange<Item, Gone>[] = [];
    for (const [key, item] of items) {
      if (listedKeys.has(key)) continue;
      items.delete(key);
      changes.push({ type: 'removed', item, previous: item });
    }
    listed = undefined;
    cursor = cursorOfList;
    return changes;
  }

  function put(item: Item): ItemChange<Item, Gone>[] {
    const key = keyOf(item);
    const previous = items.get(key);
    items.set(key, item);
    listed?.add(key);
    if (previous === undefined) return [{ type: 'added', item }];
    return isSame(previous, item) ? [] : [{ type: 'modified', item, previous }];
  }

  function drop(type: Gone, item: Item): ItemChange<Item, Gone>[] {
    const key = keyOf(item);
    const previous = items.get(key);
    items.delete(key);
    listed?.delete(key);
    return previous === undefined ? [] : [{ type, item, previous }];
  }

  return {
    beginConnection() {
      if (cursor === undefined) beginList();
      else listed = undefined;
      return cursor;
    },
    apply(event) {
      if (event.type === 'reset') {
        beginList();
        return [];
      }
      if (listed === undefined) cursor = event.cursor ?? cursor;
      else cursorOfList = event.cursor ?? cursorOfList;
      if ('item' in event) {
        return event.type === 'added' || event.type === 'modified' ? put(event.item) : drop(event.type, event.item);
      }
      return event.type === 'synced' && listed !== undefined ? endList(listed) : [];
    },
    find: (key) => items.get(key),
    isListing: () => listed !== undefined,
    items: () => items.values(),
  };
}
