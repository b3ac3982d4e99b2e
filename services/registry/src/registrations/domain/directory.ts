import { representativeOf } from './instances.ts';
import type { Registration } from './registration.ts';

/** What stands for a name. */
export interface DirectoryEntry<Rendered> {
  readonly registration: Registration;
  /** Its answer: made when it is needed, and kept until something in it changes. */
  readonly rendered: Rendered;
}

export interface DirectoryDeps<Rendered> {
  readonly render: (registration: Registration, lastHeartbeat: Date | undefined) => Rendered;
  /** The newest heartbeat of a life of a registration. */
  readonly lastBeatAt: (id: string) => Date | undefined;
}

/** Everything that can be discovered, by name, ready to be served. */
export interface Directory<Rendered> {
  /** Undefined when the name is unknown or all its instances expired. */
  find(serviceName: string): DirectoryEntry<Rendered> | undefined;
  /** As {@link find}, for a caller that asks for the service: counts in `hits`. */
  lookUp(serviceName: string): DirectoryEntry<Rendered> | undefined;
  readonly hits: number;
  /**
   * What stands for each name, of those of its instances alone that match. Names are in the order
   * of UTF-16 code units: the same on every replica.
   */
  matching(filter: DirectoryFilter): Generator<DirectoryEntry<Rendered>, void>;
  readonly size: number;
  /**
   * Grows with every change, heartbeats included: what was made of a list is valid as long as this
   * stays.
   */
  readonly revision: number;
  /** @param instances all that the name has now. */
  put(serviceName: string, instances: readonly Registration[]): void;
  /** A heartbeat of this instance changed: that of others than what stands for the name is not shown. */
  touch(life: Pick<Registration, 'serviceName' | 'id'>): void;
}

export interface DirectoryFilter {
  /** Start of the name. */
  readonly prefix: string;
  readonly matches: (instance: Registration) => boolean;
}

/** Whatever can be discovered. */
export const EVERYTHING: DirectoryFilter = { prefix: '', matches: () => true };

interface Slot<Rendered> {
  readonly instances: readonly Registration[];
  registration: Registration;
  entry: DirectoryEntry<Rendered> | undefined;
}

export function createDirectory<Rendered>(deps: DirectoryDeps<Rendered>): Directory<Rendered> {
  const slots = new Map<string, Slot<Rendered>>();
  let revision = 0;
  let names: string[] | undefined;
  let hits = 0;

  function entryOf(slot: Slot<Rendered>): DirectoryEntry<Rendered> {
    slot.entry ??= newEntry(slot.registration);
    return slot.entry;
  }

  function newEntry(registration: Registration): DirectoryEntry<Rendered> {
    let made: Rendered | undefined;
    return {
      registration,
      get rendered() {
        made ??= deps.render(registration, deps.lastBeatAt(registration.id));
        return made;
      },
    };
  }

  function find(serviceName: string): DirectoryEntry<Rendered> | undefined {
    const slot = slots.get(serviceName);
    return slot === undefined ? undefined : entryOf(slot);
  }

  function entryOfMatching(slot: Slot<Rendered>, matches: DirectoryFilter['matches']) {
    if (matches(slot.registration)) return entryOf(slot);
    const registration = representativeOf(slot.instances.filter(matches));
    return registration && newEntry({ ...registration, serviceId: slot.registration.serviceId });
  }

  function* slotsInOrder(): Generator<Slot<Rendered>, void> {
    names ??= [...slots.keys()].sort();
    for (const name of names) {
      const slot = slots.get(name);
      if (slot !== undefined) yield slot;
    }
  }

  return {
    find,
    lookUp(serviceName) {
      const entry = find(serviceName);
      if (entry !== undefined) hits += 1;
      return entry;
    },
    get hits() {
      return hits;
    },
    *matching({ prefix, matches }) {
      for (const slot of slotsInOrder()) {
        if (!slot.registration.serviceName.startsWith(prefix)) continue;
        const entry = entryOfMatching(slot, matches);
        if (entry !== undefined) yield entry;
      }
    },
    get size() {
      return slots.size;
    },
    get revision() {
      return revision;
    },
    put(serviceName, instances) {
      const registration = representativeOf(instances);
      const isThere = registration !== undefined;
      if (!isThere && !slots.has(serviceName)) return;
      revision += 1;
      if (isThere !== slots.has(serviceName)) names = undefined;
      if (isThere) slots.set(serviceName, { instances, registration, entry: undefined });
      else slots.delete(serviceName);
    },
    touch({ serviceName, id }) {
      const slot = slots.get(serviceName);
      if (slot?.registration.id !== id) return;
      revision += 1;
      slot.entry = undefined;
    },
  };
}
