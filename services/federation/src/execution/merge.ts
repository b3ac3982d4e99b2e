import { isObject, type JsonObject } from './types.ts';

/**
 * Merges what a fetch brought into what is there: objects by key, lists by position. A null never
 * takes the place of a value: the other subgraph may know what this one does not.
 */
export function mergeInto(target: JsonObject, source: JsonObject): void {
  for (const [key, value] of Object.entries(source)) {
    // It would be the prototype of the target.
    if (key === '__proto__') continue;
    const present = target[key];
    if (present === undefined || present === null) target[key] = value;
    else if (value !== null && value !== undefined) target[key] = merged(present, value);
  }
}

function merged(present: unknown, value: unknown): unknown {
  // Lists of entities that two places share are one and the same.
  if (present === value) return present;
  if (Array.isArray(present) && Array.isArray(value)) {
    const known: readonly unknown[] = present;
    const brought: readonly unknown[] = value;
    const longer = brought.length > known.length ? brought : known;
    return longer.map((_, index) => mergedItem(known[index], brought[index]));
  }
  if (!isObject(present) || !isObject(value)) return value;
  mergeInto(present, value);
  return present;
}

function mergedItem(present: unknown, value: unknown): unknown {
  if (present === undefined || present === null) return value;
  return value === undefined || value === null ? present : merged(present, value);
}
