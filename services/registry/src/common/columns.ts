/**
 * Columns for a SELECT, each under the name that members of objects have: `job_uid AS "jobUid"`.
 *
 * @param columns separated by commas; no caller's text.
 */
export function asMembers(columns: string): string {
  const memberOf = (column: string) => column.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  return columns.replaceAll(/\w+/g, (column) => `${column} AS "${memberOf(column)}"`);
}
