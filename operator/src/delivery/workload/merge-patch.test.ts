import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { isSameJson } from './fingerprint.ts';
import { mergePatch } from './merge-patch.ts';

test('what goes is null, what stays is not named, lists are whole', () => {
  expect(mergePatch({ a: 1, b: { c: 1, d: 2 }, e: [1, 2] }, { a: 1, b: { c: 3 }, e: [1] })).toEqual({
    b: { c: 3, d: null },
    e: [1],
  });
  expect(mergePatch({ a: { b: 1 } }, { a: { b: 1 } })).toBeUndefined();
});

/** RFC 7386, as the API server does it. */
function apply(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof target === 'object' && target !== null && !Array.isArray(target);
  const result: Record<string, unknown> = isObject ? { ...target } : {};
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete result[key];
    else result[key] = apply(result[key], value);
  }
  return result;
}

test('a patch makes the one of the other', () => {
  const leaf = fc.oneof(fc.integer(), fc.string(), fc.boolean(), fc.array(fc.integer(), { maxLength: 3 }));
  const { node } = fc.letrec<{ node: unknown }>((tie) => ({
    node: fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd'), fc.oneof({ depthSize: 'small' }, leaf, tie('node')), {
      maxKeys: 4,
    }),
  }));
  fc.assert(
    fc.property(node, node, (from, to) => {
      expect(isSameJson(apply(from, mergePatch(from as object, to as object) ?? {}), to)).toBe(true);
    }),
    { numRuns: 300 },
  );
});
