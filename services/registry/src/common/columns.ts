/**
 * Columns for a SELECT, each under the name that members of objects have: `job_uid AS "jobUid"`.
 *
 * @param columns separated by commas; no caller's text.
 */
export function asMembers(columns: string): string {
  return columns.replaceAll(/\w+/g, (column) => `${column} AS "${memberOf(column)}"`);
}

function memberOf(column: string): string {
  return column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
}

/** The other way: `job_uid` of `jobUid`. */
export function columnOf(member: string): string {
  return member.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
