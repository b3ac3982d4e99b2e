/**
 * The name that a field is fetched under. The planner adds fields to what is asked for, and takes a
 * client's alias for a field of that name. So aliases get names that no field has. Two fields that have
 * one alias, in different types, have different names.
 *
 * @param key what the client calls the field.
 * @param name what the schema calls it.
 */
export function fetchedName(key: string, name: string): string {
  // The length tells where the one ends and the other begins.
  return key === name ? name : `_as${key.length}_${key}_${name}`;
}
