import type { Informer } from '@rollcall/platform/kube/informer.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';
import { objectKey, type Change as StoreChange } from '@rollcall/platform/kube/store.ts';

/** The objects of some informers by something that they have in common. */
export interface ObjectIndex<T> {
  /** In no particular order. */
  readonly get: (key: string) => readonly T[];
  readonly keys: () => Iterable<string>;
}

/**
 * @param keyOf where an object belongs; undefined: nowhere. Must be made before the informers
 * start.
 */
export function indexBy<T extends KubeObject>(
  informers: readonly Pick<Informer<T>, 'onChange'>[],
  keyOf: (object: T) => string | undefined,
): ObjectIndex<T> {
  const groups = new Map<string, Map<string, T>>();

  function put(key: string | undefined, object: T): void {
    if (key === undefined) return;
    const group = groups.get(key) ?? new Map<string, T>();
    groups.set(key, group.set(objectKey(object), object));
  }

  function remove(key: string | undefined, object: T): void {
    const group = key === undefined ? undefined : groups.get(key);
    if (key === undefined || group?.delete(objectKey(object)) !== true) return;
    if (group.size === 0) groups.delete(key);
  }

  function onChange(change: StoreChange<T>): void {
    const key = keyOf(change.object);
    if (change.type === 'deleted') return remove(key, change.object);
    if (change.type === 'modified') {
      const before = keyOf(change.previous);
      if (before !== key) remove(before, change.previous);
    }
    put(key, change.object);
  }

  for (const informer of informers) informer.onChange(onChange);
  return {
    get: (key) => [...(groups.get(key)?.values() ?? [])],
    keys: () => groups.keys(),
  };
}
