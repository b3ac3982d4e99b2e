import { type DocumentNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql/index.js';

/** What an operation comes to once each fragment stands wherever it is spread. */
interface Expansion {
  readonly selections: number;
  /** Selection sets one in another. */
  readonly depth: number;
}

/** A planner expands fragments; it cannot be stopped, and its stack is not ours. */
const MOST_SELECTIONS = 10_000;
const MOST_DEPTH = 100;

/** Whether a valid document is too large to be planned. A fragment is measured once, however often it is spread. */
export function isTooLarge(document: DocumentNode): boolean {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const measured = new Map<string, Expansion>();
  return document.definitions.some((definition) => {
    if (definition.kind !== Kind.OPERATION_DEFINITION) return false;
    const { selections, depth } = ofSet(definition.selectionSet);
    return selections > MOST_SELECTIONS || depth > MOST_DEPTH;
  });

  function ofSet({ selections }: SelectionSetNode): Expansion {
    let [size, depth] = [0, 0];
    for (const selection of selections) {
      const of =
        selection.kind === Kind.FRAGMENT_SPREAD ? ofFragment(selection.name.value) : ofOptional(selection.selectionSet);
      size += 1 + of.selections;
      depth = Math.max(depth, of.depth);
    }
    return { selections: size, depth: depth + 1 };
  }

  function ofOptional(set: SelectionSetNode | undefined): Expansion {
    return set === undefined ? { selections: 0, depth: 0 } : ofSet(set);
  }

  function ofFragment(name: string): Expansion {
    const known = measured.get(name) ?? ofOptional(fragments.get(name)?.selectionSet);
    measured.set(name, known);
    return known;
  }
}
