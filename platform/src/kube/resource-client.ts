import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';
import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { KubeConnection, KubeRequest } from './connection.ts';
import { isConflict, isFieldConflict, isNotFound, KubeApiError } from './errors.ts';

/** What every object of the Kubernetes API has. */
export interface KubeObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ObjectMeta;
}

/**
 * A write takes effect only on the object with this uid, and only while it has this
 * resourceVersion: `isConflict` else. For a status write give the resourceVersion where it is
 * known: the API server ignores a uid there, so that with a uid alone the object is read first.
 */
export interface Preconditions {
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** An object to be created or applied: its metadata needs only what the writer decides. */
export type Manifest<T extends KubeObject> = Omit<T, 'status' | 'metadata'> & {
  readonly metadata: Partial<ObjectMeta>;
};

interface PatchOptions extends Preconditions {
  readonly subresource?: 'status';
}

interface ApplyOptions {
  readonly fieldManager: string;
  /** Forces ownership of fields of other managers. */
  readonly force?: boolean;
  readonly subresource?: 'status';
}

interface DeleteOptions extends Preconditions {
  readonly propagation?: 'Background' | 'Foreground' | 'Orphan';
}

/** One kind in one namespace. All methods throw the errors of {@link KubeConnection.request}. */
export interface ResourceClient<T extends KubeObject> {
  readonly kind: ResourceKind<T>;
  readonly namespace: string;
  /** Reads from the API server, not from a cache. @throws KubeApiError 404 when absent. */
  get(name: string): Promise<T>;
  /** As {@link get}, `undefined` when absent. */
  find(name: string): Promise<T | undefined>;
  create(manifest: Manifest<T>): Promise<T>;
  /** JSON merge patch (RFC 7386). */
  patch(name: string, patch: object, options?: PatchOptions): Promise<T>;
  /** JSON patch (RFC 6902), for lists and for `test` operations. */
  jsonPatch(name: string, operations: readonly object[]): Promise<T>;
  /**
   * Server-side apply: this manager owns exactly the fields of `manifest`. Creates the object when
   * it is absent, except where `manifest.metadata.uid` is given. That and `resourceVersion` in it
   * are {@link Preconditions}.
   */
  apply(manifest: ApplyManifest, options: ApplyOptions): Promise<T>;
  /**
   * @returns false when there was nothing to delete.
   * @throws KubeApiError 409 when a precondition does not hold.
   */
  delete(name: string, options?: DeleteOptions): Promise<boolean>;
}

/** A partial object for server-side apply. */
export interface ApplyManifest {
  readonly metadata: Partial<ObjectMeta> & { readonly name: string };
  readonly spec?: object;
  readonly status?: object;
  readonly data?: Readonly<Record<string, string>>;
  readonly type?: string;
  readonly addressType?: string;
  readonly ports?: readonly object[];
  readonly endpoints?: readonly object[];
}

/** The path of a kind's collection; of all namespaces when none is given. */
export function collectionPath(kind: ResourceKind<KubeObject>, namespace?: string): string {
  const root = kind.apiVersion.includes('/') ? `/apis/${kind.apiVersion}` : `/api/${kind.apiVersion}`;
  return kind.namespaced && namespace !== undefined
    ? `${root}/namespaces/${encodeURIComponent(namespace)}/${kind.plural}`
    : `${root}/${kind.plural}`;
}

export function resourceClient<T extends KubeObject>(
  connection: KubeConnection,
  kind: ResourceKind<T>,
  namespace: string,
): ResourceClient<T> {
  const collection = collectionPath(kind, namespace);

  async function send(request: ObjectRequest): Promise<T> {
    const { name, subresource, ...rest } = request;
    const suffix = subresource === undefined ? '' : `/${subresource}`;
    return connection.request<T>({ ...rest, path: `${collection}/${toPathSegment(name)}${suffix}` });
  }

  const get = (name: string) => send({ method: 'GET', name });
  const find = (name: string) => orUndefined(get(name));

  async function patch(name: string, change: object, options: PatchOptions = {}): Promise<T> {
    const { subresource, ...given } = options;
    return withFence({ name, subresource, given, get }, (preconditions) =>
      send({
        method: 'PATCH',
        name,
        subresource,
        body: withPreconditions(change, preconditions),
        contentType: 'application/merge-patch+json',
      }),
    );
  }

  async function apply(manifest: ApplyManifest, options: ApplyOptions): Promise<T> {
    const { name } = manifest.metadata;
    const { subresource, fieldManager, force } = options;
    return withFence({ name, subresource, given: manifest.metadata, get }, (preconditions) =>
      send({
        method: 'PATCH',
        name,
        subresource,
        query: { fieldManager, force: force === true ? true : undefined },
        body: withPreconditions({ apiVersion: kind.apiVersion, kind: kind.kind, ...manifest }, preconditions),
        contentType: 'application/apply-patch+yaml',
      }),
    );
  }

  return {
    kind,
    namespace,
    get,
    find,
    create: (manifest) => connection.request<T>({ method: 'POST', path: collection, body: manifest }),
    patch,
    jsonPatch: (name, operations) =>
      send({ method: 'PATCH', name, body: operations, contentType: 'application/json-patch+json' }),
    apply,
    async delete(name, options = {}) {
      const body = {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        propagationPolicy: options.propagation ?? 'Background',
        preconditions: preconditionsOf(options),
      };
      return (await orUndefined(send({ method: 'DELETE', name, body }))) !== undefined;
    },
  };
}

interface ObjectRequest extends Omit<KubeRequest, 'path'> {
  readonly name: string;
  readonly subresource?: 'status' | undefined;
}

/**
 * @throws KubeApiError 404 for what can be no object's name, without asking: the path of an empty
 * name is that of the whole collection, and the API server deletes it all the same.
 */
function toPathSegment(name: string): string {
  if (name === '' || name === '.' || name === '..' || /[/%]/.test(name)) {
    throw new KubeApiError(404, {
      code: 404,
      reason: 'NotFound',
      message: `${JSON.stringify(name)} is no object's name`,
    });
  }
  return encodeURIComponent(name);
}

async function orUndefined<T>(answer: Promise<T>): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (isNotFound(error)) return undefined;
    throw error;
  }
}

/** Of an object's metadata: this object, in the version that was read, and no other. */
export function preconditionsOf({ uid, resourceVersion }: Preconditions): Preconditions {
  return { ...(uid === undefined ? {} : { uid }), ...(resourceVersion === undefined ? {} : { resourceVersion }) };
}

/**
 * The API server compares a patch's `metadata.uid` and `metadata.resourceVersion` with the
 * object's.
 */
function withPreconditions(patch: object, given: Preconditions): object {
  const preconditions = preconditionsOf(given);
  if (Object.keys(preconditions).length === 0) return patch;
  const metadata = 'metadata' in patch && typeof patch.metadata === 'object' ? patch.metadata : {};
  return { ...patch, metadata: { ...metadata, ...preconditions } };
}

const FENCE_TRIES = 10;

interface Fence<T> {
  readonly name: string;
  readonly subresource: 'status' | undefined;
  readonly given: Preconditions;
  readonly get: (name: string) => Promise<T>;
}

/**
 * Turns a uid that the API server would ignore, that of a status write, into the resourceVersion of
 * the object with this uid.
 */
async function withFence<T extends KubeObject>(
  { name, subresource, given, get }: Fence<T>,
  write: (preconditions: Preconditions) => Promise<T>,
): Promise<T> {
  if (subresource !== 'status' || given.uid === undefined || given.resourceVersion !== undefined) return write(given);
  for (let tries = 1; ; tries += 1) {
    const { uid, resourceVersion } = (await get(name)).metadata;
    if (uid !== given.uid || resourceVersion === undefined) {
      throw new KubeApiError(409, { code: 409, reason: 'Conflict', message: `${name} is another object than it was` });
    }
    try {
      return await write({ uid, resourceVersion });
    } catch (error) {
      // Another field was written in between, unless an owner of the same fields is why.
      if (!isConflict(error) || isFieldConflict(error) || tries === FENCE_TRIES) throw error;
    }
  }
}
