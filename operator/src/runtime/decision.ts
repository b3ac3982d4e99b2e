import type { ResourceKind } from '@rollcall/crds/resource-kind.ts';
import type { ApplyManifest, KubeObject, Manifest } from '@rollcall/platform/kube/resource-client.ts';

/**
 * One effect that a plan asks for. A change to an existing object carries the object as it was
 * observed: it takes effect only while the object still has that uid and resourceVersion, so that a
 * decision made on an old view, or by an operator that no longer leads, changes nothing.
 */
export type Change =
  | CreateChange
  | ApplyChange
  | PatchChange
  | DisownChange
  | StatusChange
  | DeleteChange
  | EventChange;

interface CreateChange {
  readonly action: 'create';
  readonly kind: ResourceKind<KubeObject>;
  readonly manifest: Manifest<KubeObject> &
    ({ readonly spec: object } | { readonly revision: number; readonly data: unknown });
}

/**
 * Server-side apply: the operator owns exactly the fields of the manifest, and takes them from
 * others.
 */
interface ApplyChange {
  readonly action: 'apply';
  readonly kind: ResourceKind<KubeObject>;
  /** Undefined: there must be none. */
  readonly object: KubeObject | undefined;
  readonly manifest: ApplyManifest;
}

/** A JSON merge patch. */
interface PatchChange {
  readonly action: 'patch';
  readonly kind: ResourceKind<KubeObject>;
  readonly object: KubeObject;
  readonly patch: object;
  /** Whether those after it are made also when the API server refuses this one. */
  readonly independent?: boolean;
}

/**
 * Gives up what this operator owns of an object's fields, so that whoever applies them next meets
 * no conflict.
 */
interface DisownChange {
  readonly action: 'disown';
  readonly kind: ResourceKind<KubeObject>;
  readonly object: KubeObject;
  /** Paths of the fields that it goes on to own, such as `spec.template`. */
  readonly kept: readonly string[];
  readonly independent?: boolean;
}

/** Server-side apply of status; `status` holds every field that the operator owns. */
interface StatusChange {
  readonly action: 'status';
  readonly kind: ResourceKind<KubeObject>;
  readonly object: KubeObject;
  readonly status: object;
}

/** An object that is gone already counts as deleted. */
interface DeleteChange {
  readonly action: 'delete';
  readonly kind: ResourceKind<KubeObject>;
  readonly object: KubeObject;
}

/** An Event on an object; see `events.ts`. Never delays or fails a reconcile. */
export interface EventChange {
  readonly action: 'event';
  readonly regarding: KubeObject;
  readonly type: 'Normal' | 'Warning';
  /** CamelCase, for programs. */
  readonly reason: string;
  readonly message: string;
}

/**
 * What a plan returns: changes to be made in order, the first failure ends them unless it is
 * independent, and when to observe again.
 */
export interface Decision {
  readonly changes: readonly Change[];
  /** Absent: observe again when something changes. */
  readonly requeueAfterMs?: number;
}

/** Changes that are all to be tried, whichever of them the API server refuses. */
export function independently(changes: readonly Change[]): readonly Change[] {
  return changes.map((change) =>
    change.action === 'patch' || change.action === 'disown' ? { ...change, independent: true } : change,
  );
}

/**
 * A failure that trying again does not mend: it is counted and logged, and the key waits for its
 * next change.
 */
export class TerminalError extends Error {
  override readonly name = 'TerminalError';
}
