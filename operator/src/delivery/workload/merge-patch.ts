import { isAbsent, isObject, isSameJson } from './fingerprint.ts';

/**
 * The JSON merge patch (RFC 7386) that makes `to` of `from`: what is to go is null, lists are
 * replaced as a whole. Undefined when there is nothing to change.
 */
export function mergePatch(from: object, to: object): Readonly<Record<string, unknown>> | undefined {
  const before = new Map<string, unknown>(Object.entries(from));
  const after = new Map<string, unknown>(Object.entries(to));
  const patch: Record<string, unknown> = {};
  for (const key of before.keys()) {
    if (isAbsent(after.get(key)) && !isAbsent(before.get(key))) patch[key] = null;
  }
  for (const [key, wanted] of after) {
    const found = before.get(key);
    if (isAbsent(wanted) || isSameJson(found, wanted)) continue;
    patch[key] = isObject(found) && isObject(wanted) ? mergePatch(found, wanted) : wanted;
  }
  return Object.keys(patch).length === 0 ? undefined : patch;
}
