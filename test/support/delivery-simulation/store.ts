import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import { isSameJson } from '@rollcall/operator/delivery/workload/fingerprint.ts';
import type { Change } from '@rollcall/operator/runtime/decision.ts';
import type { KubeObject } from '@rollcall/platform/kube/resource-client.ts';

/** What the API server answers where it would answer 404, 409 or AlreadyExists. */
export class RefusedError extends Error {}

type Json = Record<string, unknown>;

/**
 * An API server in memory: versions, generations, finalizers, preconditions, merge patches. Objects
 * are never changed in place.
 */
export interface Store {
  list<T extends KubeObject>(kind: ResourceKind<T>): T[];
  find<T extends KubeObject>(kind: ResourceKind<T>, name: string): T | undefined;
  /** Makes a change as the operator's applier does. @throws RefusedError */
  apply(change: Change): void;
  create(kind: ResourceKind<KubeObject>, manifest: object): void;
  /**
   * What users and controllers write: without preconditions; an object that is gone is left alone.
   */
  patch(kind: ResourceKind<KubeObject>, name: string, patch: object): void;
  patchStatus(kind: ResourceKind<KubeObject>, name: string, status: object): void;
  delete(kind: ResourceKind<KubeObject>, name: string): void;
}

export function createStore(defaults: (kind: string, object: Json) => Json): Store {
  const objects = new Map<string, KubeObject>();
  let version = 0;

  function put(kind: ResourceKind<KubeObject>, before: KubeObject | undefined, wanted: Json): void {
    const isSameSpec = before !== undefined && wanted['spec'] === (before as unknown as Json)['spec'];
    const after = isSameSpec ? wanted : defaults(kind.kind, wanted);
    const metadata = { ...(after['metadata'] as Json) };
    if (isSameJson(metadata['annotations'] ?? {}, {})) delete metadata['annotations'];
    if (before !== undefined && isSameObject({ ...before }, { ...after, metadata })) return;
    version += 1;
    metadata['resourceVersion'] = String(version);
    metadata['generation'] ??= 1;
    if (before !== undefined && !isSameSpec && !isSameJson((before as unknown as Json)['spec'], after['spec'])) {
      metadata['generation'] = (before.metadata.generation ?? 0) + 1;
    }
    const key = keyOf(kind, String(metadata['name']));
    const isReleased = metadata['deletionTimestamp'] !== undefined && isEmpty(metadata['finalizers']);
    if (isReleased) objects.delete(key);
    else objects.set(key, { ...after, metadata } as unknown as KubeObject);
  }

  function create(kind: ResourceKind<KubeObject>, manifest: object): void {
    const { metadata } = manifest as { metadata: Json };
    const key = keyOf(kind, String(metadata['name']));
    if (objects.has(key)) throw new RefusedError('AlreadyExists');
    put(kind, undefined, clone({ ...manifest, metadata: { ...metadata, uid: `uid-${version + 1}` } }));
  }

  function get(kind: ResourceKind<KubeObject>, name: string): KubeObject {
    const object = objects.get(keyOf(kind, name));
    if (object === undefined) throw new RefusedError('NotFound');
    return object;
  }

  function fenced(kind: ResourceKind<KubeObject>, { metadata }: KubeObject): KubeObject {
    const object = get(kind, metadata.name);
    const { uid, resourceVersion } = object.metadata;
    if (uid !== metadata.uid || resourceVersion !== metadata.resourceVersion) throw new RefusedError('Conflict');
    return object;
  }

  function remove(kind: ResourceKind<KubeObject>, object: KubeObject): void {
    if (isEmpty(object.metadata.finalizers)) {
      objects.delete(keyOf(kind, object.metadata.name));
      version += 1;
    } else {
      put(kind, object, { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-11-21T00:00:00Z' } });
    }
  }

  return {
    list: <T extends KubeObject>(kind: ResourceKind<T>) =>
      [...objects].filter(([key]) => key.startsWith(`${kind.plural}/`)).map(([, object]) => object as T),
    find: <T extends KubeObject>(kind: ResourceKind<T>, name: string) =>
      objects.get(keyOf(kind, name)) as T | undefined,
    apply(change) {
      switch (change.action) {
        case 'event':
        // No job does.
        case 'apply':
        // Nobody owns fields here.
        case 'disown':
          return;
        case 'create':
          return create(change.kind, change.manifest);
        case 'patch':
          return put(
            change.kind,
            fenced(change.kind, change.object),
            merge(fenced(change.kind, change.object), change.patch),
          );
        case 'status':
          return put(change.kind, fenced(change.kind, change.object), {
            ...fenced(change.kind, change.object),
            status: clone(change.status),
          });
        case 'delete':
          return remove(change.kind, fenced(change.kind, change.object));
      }
    },
    create,
    patch(kind, name, patch) {
      const object = objects.get(keyOf(kind, name));
      if (object !== undefined) put(kind, object, merge(object, patch));
    },
    patchStatus(kind, name, status) {
      const object = objects.get(keyOf(kind, name));
      if (object !== undefined) put(kind, object, { ...object, status });
    },
    delete(kind, name) {
      const object = objects.get(keyOf(kind, name));
      if (object !== undefined) remove(kind, object);
    },
  };
}

function keyOf(kind: ResourceKind<KubeObject>, name: string): string {
  return `${kind.plural}/${name}`;
}

function isSameObject(a: Json, b: Json): boolean {
  return Object.keys({ ...a, ...b }).every((key) => isSameJson(a[key] ?? null, b[key] ?? null));
}

function isEmpty(list: unknown): boolean {
  return !Array.isArray(list) || list.length === 0;
}

function clone<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** RFC 7386. */
function merge(target: unknown, patch: object): Json {
  const result: Json = isObject(target) ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = isObject(value) ? merge(result[key], value) : clone(value);
  }
  return result;
}

function isObject(value: unknown): value is Json {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
