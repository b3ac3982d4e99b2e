import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type SelectionSetNode,
} from 'graphql/index.js';
import { type Refused, refusals } from './errors.ts';

/** Thirty milliseconds of them. */
const MOST_COMPARISONS = 30_000;
/** What it takes to compare two fields with arguments, beside two without. */
const WEIGHT_OF_ARGUMENTS = 10;

/**
 * Pure. Why a document has too many fields of one name in one place, each of which would have to be compared
 * with all others; undefined: it has not.
 *
 * @param document is within its limits, and valid but for that.
 */
export function repetitionExcess(document: DocumentNode): Refused | undefined {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  for (const operation of document.definitions)
    if (
      operation.kind === Kind.OPERATION_DEFINITION &&
      comparisonsOf([operation.selectionSet], fragments) > MOST_COMPARISONS
    ) {
      const message = 'The operation asks for fields of one name too often';
      return refusals([
        { message, nodes: [operation], extensions: { code: 'REPETITION_LIMIT_EXCEEDED', limit: MOST_COMPARISONS } },
      ]);
    }
  return undefined;
}

function comparisonsOf(
  sets: readonly SelectionSetNode[],
  fragments: ReadonlyMap<string, FragmentDefinitionNode>,
): number {
  const byName = new Map<string, FieldNode[]>();
  const spread = new Set<string>();
  for (const set of sets) collect(set);
  return [...byName.values()].reduce((sum, nodes) => {
    const within = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const weight = nodes.some(({ arguments: given = [] }) => given.length > 0) ? WEIGHT_OF_ARGUMENTS : 1;
    const own = (weight * nodes.length * (nodes.length - 1)) / 2;
    return sum + own + (within.length === 0 ? 0 : comparisonsOf(within, fragments));
  }, 0);

  function collect({ selections }: SelectionSetNode): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        const name = (selection.alias ?? selection.name).value;
        const known = byName.get(name);
        if (known === undefined) byName.set(name, [selection]);
        else known.push(selection);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        collect(selection.selectionSet);
      } else if (!spread.has(selection.name.value)) {
        spread.add(selection.name.value);
        const fragment = fragments.get(selection.name.value);
        if (fragment !== undefined) collect(fragment.selectionSet);
      }
    }
  }
}
