import type { ObjectMeta } from '@rollcall/crds/object-meta.ts';

/** `kubectl apply` keeps a copy of the whole object in it. */
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration';

/** Of an object these fields, as far as it has them. */
export function pick<T extends object, Field extends keyof T>(
  from: T | undefined,
  ...fields: readonly Field[]
): Partial<Pick<T, Field>> {
  const kept: Partial<Pick<T, Field>> = {};
  for (const field of fields) if (from !== undefined && Object.hasOwn(from, field)) kept[field] = from[field];
  return kept;
}

/** What every copy of an object keeps of its metadata, and these fields. */
export function pickMetadata<Field extends keyof ObjectMeta>(metadata: ObjectMeta, ...fields: readonly Field[]) {
  const known = pick(metadata, 'namespace', 'uid', 'resourceVersion', 'deletionTimestamp');
  return { name: metadata.name, ...known, ...pick(metadata, ...fields) };
}

export function withoutLastApplied(metadata: ObjectMeta): ObjectMeta {
  if (metadata.annotations?.[LAST_APPLIED] === undefined) return metadata;
  const { [LAST_APPLIED]: _, ...annotations } = metadata.annotations;
  return { ...metadata, annotations };
}
