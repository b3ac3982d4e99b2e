import { hash } from 'node:crypto';
import { type DocumentNode, Kind } from 'graphql/index.js';
import type { Caller } from './access-rules.ts';
import { argumentsOf } from './join-directives.ts';

/**
 * Shares of the requests for which fields come of their new owners (`@override(label: "percent(5)")`),
 * in per cent, the smallest first.
 */
export type OverrideShares = readonly number[];

const PERCENT = /^percent\((\d{1,3}(?:\.\d{1,8})?)\)$/;

/** Pure. Reads them from a supergraph. */
export function readOverrideShares({ definitions }: DocumentNode): OverrideShares {
  const shares = new Set<number>();
  for (const definition of definitions) {
    if (definition.kind !== Kind.OBJECT_TYPE_DEFINITION && definition.kind !== Kind.INTERFACE_TYPE_DEFINITION) continue;
    for (const directive of definition.fields?.flatMap(({ directives = [] }) => directives) ?? []) {
      const label = argumentsOf([directive], 'join__field')?.['overrideLabel'];
      const [, percent] = (typeof label === 'string' && PERCENT.exec(label)) || [];
      if (percent !== undefined) shares.add(Number(percent));
    }
  }
  return [...shares].toSorted((a, b) => a - b);
}

/**
 * Where the requests of a caller are among all, in per cent: fields of shares above it come of their
 * new owners. A caller is always at the same place. As plans differ by shares alone, it is the nearest
 * one below.
 *
 * @param drawn the place of who is not known; anywhere when absent.
 */
export function placeOf(caller: Caller | undefined, shares: OverrideShares, drawn = drawPlace()): number {
  if (shares.length === 0) return 0;
  const place = caller?.subject === undefined ? drawn : placeOfSubject(caller.subject);
  return shares.findLast((share) => share <= place) ?? 0;
}

/** A place anywhere. */
export function drawPlace(): number {
  return Math.random() * 100;
}

/** Pure. */
function placeOfSubject(subject: string): number {
  return (hash('sha256', subject, 'buffer').readUInt32BE() / 2 ** 32) * 100;
}
