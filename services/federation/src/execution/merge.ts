import { isObject, type JsonObject } from './types.ts';

/**
 * Merges what a fetch brought into what is there: objects by key, lists by position. A null never
 * takes the place of a value: the other subgraph may know what this one does not. Nor does the name
 * of an interface, by which a subgraph knows its objects, take the place of the name of their type.
 *
 * @param types the names of object types.
 */
export function mergeInto(target: JsonObject, source: JsonObject, types: ReadonlySet<string>): void {
  // There are hundreds of entities in an answer: pairs of keys and values would be garbage.
  for (const key of Object.keys(source)) {
    // It would be the prototype of the target.
    if (key === '__proto__') continue;
    const value = source[key];
    const present = target[key];
    if (present === undefined || present === null) target[key] = value;
    else if (key === '__typename' && !(typeof value === 'string' && types.has(value))) continue;
    else target[key] = merged(present, value, types);
  }
}

function merged(present: unknown, value: unknown, types: ReadonlySet<string>): unknown {
  // Objects that two places share are one and the same.
  if (present === value || value === undefined || value === null) return present;
  if (present === undefined || present === null) return value;
  if (Array.isArray(present) && Array.isArray(value)) {
    const known: readonly unknown[] = present;
    const brought: readonly unknown[] = value;
    const longer = brought.length > known.length ? brought : known;
    return longer.map((_, index) => merged(known[index], brought[index], types));
  }
  if (!isObject(present) || !isObject(value)) return value;
  mergeInto(present, value, types);
  return present;
}
