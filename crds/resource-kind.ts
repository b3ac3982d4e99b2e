declare const objectType: unique symbol;

/**
 * What a client needs to know to address one kind of Kubernetes object. `T` is the type of the
 * object on the wire; it is carried for the compiler only and never present at run time.
 */
export interface ResourceKind<T> {
  /** `v1` for the core group, else `<group>/<version>`. */
  readonly apiVersion: string;
  readonly kind: string;
  /** The resource name in URLs, lower case. */
  readonly plural: string;
  readonly namespaced: boolean;
  readonly [objectType]?: T;
}

/** A kind whose objects live in namespaces. */
export function namespacedKind<T extends { readonly apiVersion: string; readonly kind: string }>(
  apiVersion: T['apiVersion'],
  kind: T['kind'],
  plural: string,
): ResourceKind<T> {
  return { apiVersion, kind, plural, namespaced: true };
}
