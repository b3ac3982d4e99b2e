import { type DocumentNode, type FragmentDefinitionNode, Kind, type SelectionSetNode } from 'graphql/index.js';
import { type Refused, refusals } from './errors.ts';
import { fieldsByKey, fragmentsOf } from './fragments.ts';

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
  const fragments = fragmentsOf(document);
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
  return [...fieldsByKey(sets, fragments).values()].reduce((sum, nodes) => {
    const within = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
    const weight = nodes.some(({ arguments: given = [] }) => given.length > 0) ? WEIGHT_OF_ARGUMENTS : 1;
    const own = (weight * nodes.length * (nodes.length - 1)) / 2;
    return sum + own + (within.length === 0 ? 0 : comparisonsOf(within, fragments));
  }, 0);
}
