/** The part of a dependent's owner that garbage collection needs (meta/v1 OwnerReference). */
export interface OwnerReference {
  readonly apiVersion: string;
  readonly kind: string;
  readonly name: string;
  readonly uid: string;
  readonly controller?: boolean;
  readonly blockOwnerDeletion?: boolean;
}

/** Which fields a writer of an object owns (meta/v1 ManagedFieldsEntry). */
export interface ManagedFieldsEntry {
  readonly manager?: string;
  /** Absent: of the object itself. */
  readonly subresource?: string;
  /**
   * A tree whose keys are `f:<field>`, `k:<key of a list item>` and `v:<value>`; a leaf is `{}`.
   */
  readonly fieldsV1?: FieldTree;
}

interface FieldTree {
  readonly [key: string]: FieldTree;
}

/**
 * The fields of meta/v1 ObjectMeta that Rollcall uses, as they are on the wire: instants are RFC
 * 3339 strings. `uid`, `resourceVersion` and `creationTimestamp` are absent only on an object that
 * has not been stored yet.
 */
export interface ObjectMeta {
  readonly name: string;
  readonly namespace?: string;
  readonly generateName?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  /** Set while finalizers hold an object that was deleted. */
  readonly deletionTimestamp?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly ownerReferences?: readonly OwnerReference[];
  readonly finalizers?: readonly string[];
  readonly managedFields?: readonly ManagedFieldsEntry[];
}
