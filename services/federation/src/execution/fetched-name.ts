/**
 * The name that a field is fetched under. The planner adds fields to what is asked for, and takes a
 * client's alias for a field of that name. So aliases get names that no field has.
 *
 * @param key what the client calls the field.
 * @param name what the schema calls it.
 */
export function fetchedName(key: string, name: string): string {
  return key === name ? name : `_as_${key}`;
}
