import { isDeepStrictEqual } from 'node:util';
import type { ManagedFieldsEntry } from '@rollcall/crds/object-meta.ts';

type Fields = NonNullable<ManagedFieldsEntry['fieldsV1']>;

/** Those entries that a manager has by writing the object itself, not its status. */
export function entriesOf(
  entries: readonly ManagedFieldsEntry[] | undefined,
  manager: string,
): readonly ManagedFieldsEntry[] {
  return entries?.filter((entry) => isOf(entry, manager)) ?? [];
}

/**
 * Whether a manager owns any field of the object beyond `kept`.
 *
 * @param kept paths such as `spec.template`.
 */
export function ownsBeyond(
  entries: readonly ManagedFieldsEntry[] | undefined,
  manager: string,
  kept: readonly string[],
): boolean {
  return entriesOf(entries, manager).some(({ fieldsV1 = {} }) => !isDeepStrictEqual(fieldsV1, only(fieldsV1, kept)));
}

/**
 * The entries without what a manager owns beyond `kept`, for a patch of `metadata.managedFields`.
 */
export function withoutOwned(
  entries: readonly ManagedFieldsEntry[],
  manager: string,
  kept: readonly string[],
): readonly ManagedFieldsEntry[] {
  const rest = entries.flatMap((entry) => {
    if (!isOf(entry, manager)) return [entry];
    const fieldsV1 = only(entry.fieldsV1 ?? {}, kept);
    return Object.keys(fieldsV1).length === 0 ? [] : [{ ...entry, fieldsV1 }];
  });
  // An empty list changes nothing; this is how the API server is asked for one.
  return rest.length === 0 ? [{}] : rest;
}

function isOf({ manager: name, subresource = '' }: ManagedFieldsEntry, manager: string): boolean {
  return name === manager && subresource === '';
}

function only(fields: Fields, kept: readonly string[]): Fields {
  const names = new Set(kept.map((path) => path.split('.')[0] ?? ''));
  const found = [...names].flatMap((name) => {
    const below = fields[`f:${name}`];
    if (below === undefined) return [];
    const deeper = kept.filter((path) => path.startsWith(`${name}.`)).map((path) => path.slice(name.length + 1));
    const part = kept.includes(name) ? below : only(below, deeper);
    return Object.keys(part).length === 0 && part !== below ? [] : [[`f:${name}`, part] as const];
  });
  return Object.fromEntries(found);
}
