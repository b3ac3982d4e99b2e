/**
 * Cursors are versions of the store, marked: registries from before instances give and take bare
 * ones, and tell nothing of instances. Who comes from there, or goes there, begins anew.
 */
const MARK = 'i';
const MARKED = new RegExp(`^${MARK}(\\d{1,15})$`);

/** What a subscriber resumes by, behind the events of this version. */
export function cursorOf(version: number): string {
  return MARK + version;
}

/** @returns undefined for what is no cursor of ours. */
export function versionIn(cursor: string): number | undefined {
  const [, version] = MARKED.exec(cursor) ?? [];
  return version === undefined ? undefined : Number(version);
}
