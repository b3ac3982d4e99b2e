import type { KubeObject } from './resource-client.ts';

/**
 * What happened to one object, as a process sees it. An object that replaces another of its name is
 * deleted, then added.
 */
export type Change<T> =
  | { readonly type: 'added'; readonly object: T }
  | { readonly type: 'modified'; readonly object: T; readonly previous: T }
  | { readonly type: 'deleted'; readonly object: T }
  /** Nothing happened; the object is offered again so that a missed effect is repaired. */
  | { readonly type: 'resync'; readonly object: T };

/**
 * The objects of one kind by `namespace/name`, each in the newest version that this process knows.
 */
export interface Store<T> {
  get(key: string): T | undefined;
  values(): IterableIterator<T>;
  readonly size: number;
}

export interface WritableStore<T> extends Store<T> {
  /**
   * An object that the API server sent or answered with. Older than what is known, or deleted:
   * ignored.
   */
  put(object: T): void;
  /** As {@link put}, for what was read again because another part of it is to be kept now. */
  reread(object: T): void;
  /**
   * The API server reports that it is gone, or is no longer selected, as of the object's version:
   * it comes back by nothing that is older.
   */
  remove(object: T): void;
  /**
   * This process deleted it: what is known of this uid goes, and comes back by no event that is
   * still under way.
   */
  delete(object: T): void;
  /** A full list as of `listVersion`: what it lacks and is not newer than it is gone. */
  replace(objects: readonly T[], listVersion: string): void;
}

const TOMBSTONE_LIMIT = 10_000;

/** `namespace/name`, or the name of what has no namespace. */
export function objectKey(object: KubeObject): string {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/**
 * Resource versions grow with every write of a kind; comparing them is part of the API's contract
 * since Kubernetes 1.35 (KEP-5504).
 */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  return versionOf(a) > versionOf(b);
}

export function versionOf(object: KubeObject): number {
  return Number(object.metadata.resourceVersion ?? 0);
}

/**
 * Events may come late, twice, or after the answer to our own write; the store never goes back in
 * time.
 */
export function createStore<T extends KubeObject>(onChange: (change: Change<T>) => void): WritableStore<T> {
  const objects = new Map<string, T>();
  /** The version, by uid, that an object must be newer than to be there again. */
  const tombstones = new Map<string, number>();
  /** The last list had everything up to this version. */
  let listedUpTo = 0;

  function bury(uid: string | undefined, version: number): void {
    if (uid === undefined) return;
    tombstones.set(uid, version);
    if (tombstones.size <= TOMBSTONE_LIMIT) return;
    for (const oldest of tombstones.keys()) {
      tombstones.delete(oldest);
      break;
    }
  }

  function isBuried(object: T): boolean {
    const gone = tombstones.get(object.metadata.uid ?? '');
    return gone !== undefined && versionOf(object) <= gone;
  }

  function put(object: T): void {
    if (isBuried(object)) return;
    const key = objectKey(object);
    const previous = objects.get(key);
    if (previous !== undefined && !isNewer(object, previous)) return;
    // The late answer to a request: a list since then says that the object is gone.
    if (previous === undefined && versionOf(object) <= listedUpTo) return;
    if (previous !== undefined && previous.metadata.uid === object.metadata.uid) {
      objects.set(key, object);
      onChange({ type: 'modified', object, previous });
      return;
    }
    // Another uid under the same name: the predecessor is gone, though its deletion was not seen.
    if (previous !== undefined) drop(previous, Infinity);
    objects.set(key, object);
    onChange({ type: 'added', object });
  }

  /** @param version up to which it is gone. */
  function drop(object: T, version: number): void {
    bury(object.metadata.uid, version);
    const key = objectKey(object);
    const known = objects.get(key);
    // A newer one: it lost what it was selected by, and has it again.
    if (known === undefined || known.metadata.uid !== object.metadata.uid || versionOf(known) > version) return;
    objects.delete(key);
    onChange({ type: 'deleted', object: known });
  }

  return {
    get: (key) => objects.get(key),
    values: () => objects.values(),
    get size() {
      return objects.size;
    },
    put,
    reread(object) {
      const key = objectKey(object);
      const previous = objects.get(key);
      if (previous === undefined || previous.metadata.uid !== object.metadata.uid) return put(object);
      if (versionOf(previous) !== versionOf(object)) return put(object);
      objects.set(key, object);
      onChange({ type: 'modified', object, previous });
    },
    remove: (object) => drop(object, versionOf(object)),
    delete: (object) => drop(object, Infinity),
    replace(listed, listVersion) {
      const version = Number(listVersion);
      const present = new Set(listed.map(objectKey));
      listedUpTo = 0;
      for (const object of listed) put(object);
      listedUpTo = version;
      for (const [key, object] of objects) {
        if (!present.has(key) && versionOf(object) <= version) drop(object, version);
      }
    },
  };
}
