import { createListedCache } from './listed-cache.ts';
import type { ServiceRecord } from './registry-types.ts';
import type { WatchEvent } from './watch.ts';

/**
 * How the set of known services changed. `previous` is what was known before, absent for `added`.
 */
export interface ServiceChange {
  readonly type: 'added' | 'modified' | 'expired' | 'removed';
  readonly service: ServiceRecord;
  readonly previous?: ServiceRecord;
}

/** What the watch has sent so far, and where to resume it. No I/O: fed by {@link discover}. */
export interface ServiceCache {
  /**
   * To be called for every new connection, before its first event.
   *
   * @returns the cursor to resume from.
   */
  beginConnection(): string | undefined;
  /** Adds one event. @returns what really changed: repeated facts are no change. */
  apply(event: WatchEvent): readonly ServiceChange[];
  find(name: string): ServiceRecord | undefined;
  /** Whether a full list is awaited or under way: what is known may be out of date. */
  isListing(): boolean;
  /** By name, in order of UTF-16 code units. */
  list(): readonly ServiceRecord[];
}

export function createServiceCache(): ServiceCache {
  const cache = createListedCache<ServiceRecord, 'expired' | 'removed'>({
    keyOf: ({ service_name }) => service_name,
    isSame: sameFacts,
  });
  let sorted: readonly ServiceRecord[] | undefined;

  return {
    beginConnection: () => cache.beginConnection(),
    apply(event) {
      sorted = undefined;
      const { cursor } = event;
      const changes = cache.apply('service' in event ? { type: event.type, item: event.service, cursor } : event);
      return changes.map(({ type, item, previous }) =>
        previous === undefined ? { type, service: item } : { type, service: item, previous },
      );
    },
    find: (name) => cache.find(name),
    isListing: () => cache.isListing(),
    list() {
      sorted ??= Array.from(cache.items()).sort((a, b) => (a.service_name < b.service_name ? -1 : 1));
      return sorted;
    },
  };
}

/** Whether two records say the same; heartbeats do not count. */
export function sameFacts(a: ServiceRecord, b: ServiceRecord): boolean {
  return (
    a.service_id === b.service_id &&
    a.service_url === b.service_url &&
    a.registered_at === b.registered_at &&
    a.capabilities.length === b.capabilities.length &&
    a.capabilities.every((capability) => b.capabilities.includes(capability))
  );
}
