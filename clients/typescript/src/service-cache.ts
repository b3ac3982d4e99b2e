import type { ServiceRecord } from './registry-types.ts';
import type { ServiceEvent, WatchEvent } from './watch.ts';

/** How the set of known services changed. `previous` is what was known before, absent for `added`. */
export interface ServiceChange {
  readonly type: 'added' | 'modified' | 'expired' | 'removed';
  readonly service: ServiceRecord;
  readonly previous?: ServiceRecord;
}

/** What the watch has told so far, and where to resume it. No I/O: fed by {@link discover}. */
export interface ServiceCache {
  /** To be called for every new connection, before its first event. @returns the cursor to resume from. */
  beginConnection(): string | undefined;
  /** Takes one event in. @returns what really changed: repeated facts are no change. */
  apply(event: WatchEvent): readonly ServiceChange[];
  find(name: string): ServiceRecord | undefined;
  /** Whether a full list is awaited or under way: what is known may be out of date. */
  isListing(): boolean;
  /** By name, in order of UTF-16 code units. */
  list(): readonly ServiceRecord[];
}

/**
 * While a full list arrives (first connection, or after `reset`) known services stay: those that the list did not name are
 * dropped at `synced`. So a registry that comes back never makes a live service vanish for a moment, and a list cut short
 * costs nothing. For the same reason the cursor moves only outside full lists: resuming from the middle of one would skip
 * its rest.
 */
export function createServiceCache(): ServiceCache {
  const services = new Map<string, ServiceRecord>();
  let sorted: readonly ServiceRecord[] | undefined;
  let cursor: string | undefined;
  /** Names that the full list in progress has named; undefined: none is in progress. */
  let listed: Set<string> | undefined;
  let cursorOfList: string | undefined;

  function beginList(): void {
    listed = new Set();
    cursor = undefined;
    cursorOfList = undefined;
  }

  function endList(listedNames: ReadonlySet<string>): ServiceChange[] {
    const changes: ServiceChange[] = [];
    for (const [name, service] of services) {
      if (listedNames.has(name)) continue;
      services.delete(name);
      changes.push({ type: 'removed', service, previous: service });
    }
    listed = undefined;
    cursor = cursorOfList;
    return changes;
  }

  function applyToService({ type, service }: ServiceEvent): ServiceChange[] {
    const name = service.service_name;
    const previous = services.get(name);
    if (type === 'expired' || type === 'removed') {
      services.delete(name);
      listed?.delete(name);
      return previous === undefined ? [] : [{ type, service, previous }];
    }
    services.set(name, service);
    listed?.add(name);
    if (previous === undefined) return [{ type: 'added', service }];
    return sameFacts(previous, service) ? [] : [{ type: 'modified', service, previous }];
  }

  return {
    beginConnection() {
      if (cursor === undefined) beginList();
      return cursor;
    },
    apply(event) {
      if (event.type === 'reset') {
        beginList();
        return [];
      }
      if (listed === undefined) cursor = event.cursor ?? cursor;
      else cursorOfList = event.cursor ?? cursorOfList;
      sorted = undefined;
      if ('service' in event) return applyToService(event);
      return event.type === 'synced' && listed !== undefined ? endList(listed) : [];
    },
    find: (name) => services.get(name),
    isListing: () => listed !== undefined,
    list() {
      sorted ??= [...services.values()].sort((a, b) => (a.service_name < b.service_name ? -1 : 1));
      return sorted;
    },
  };
}

/** Whether two records say the same; heartbeats do not count. */
function sameFacts(a: ServiceRecord, b: ServiceRecord): boolean {
  return (
    a.service_id === b.service_id &&
    a.service_url === b.service_url &&
    a.registered_at === b.registered_at &&
    a.capabilities.length === b.capabilities.length &&
    a.capabilities.every((capability) => b.capabilities.includes(capability))
  );
}
