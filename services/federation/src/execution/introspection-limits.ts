import { type DocumentNode, type FieldNode, Kind, type OperationDefinitionNode } from 'graphql/index.js';
import { type Refused, refusals } from './errors.ts';
import { fieldsByKey, fragmentsOf } from './fragments.ts';

type Fragments = ReturnType<typeof fragmentsOf>;

/** How often an operation may ask for each: once is enough for all of the schema. */
const MOST_TIMES: Readonly<Record<string, number>> = { __schema: 1, __type: 5 };
/** Each brings many items, and these bring the next. */
const LISTS = new Set(['types', 'fields', 'inputFields', 'interfaces', 'possibleTypes', 'enumValues']);
/** Lists one in another: the fields of all types, or those of the types of the fields of a type. */
const MOST_LEVELS = 2;

/**
 * Pure. Why a document asks for more of the schema than any tool does; undefined: it does not. It is answered
 * at once, and costs nothing otherwise: nothing else may happen meanwhile.
 *
 * @param document is within its limits, and valid but for that.
 */
export function introspectionExcess(document: DocumentNode): Refused | undefined {
  const fragments = fragmentsOf(document);
  const beyond = document.definitions.find(
    (definition) => definition.kind === Kind.OPERATION_DEFINITION && asksTooMuch(definition, fragments),
  );
  if (beyond === undefined) return undefined;
  const message = `The schema may be asked for once, ${MOST_TIMES['__type']} types by name, each field under one name, and ${MOST_LEVELS} lists one in another`;
  return refusals([{ message, nodes: [beyond], extensions: { code: 'INTROSPECTION_LIMIT_EXCEEDED' } }]);
}

function asksTooMuch({ selectionSet }: OperationDefinitionNode, fragments: Fragments): boolean {
  const roots = [...fieldsByKey([selectionSet], fragments).values()];
  return Object.entries(MOST_TIMES).some(([name, times]) => {
    const asked = roots.filter(([field]) => field?.name.value === name);
    return asked.length > times || asked.some((nodes) => isTooMuch(nodes, MOST_LEVELS, fragments));
  });
}

/** @param levels of lists that are allowed within. */
function isTooMuch(nodes: readonly FieldNode[], levels: number, fragments: Fragments): boolean {
  const within = nodes.flatMap(({ selectionSet }) => selectionSet ?? []);
  const named = new Set<string>();
  for (const [key, fields] of fieldsByKey(within, fragments)) {
    const name = fields[0]?.name.value ?? key;
    if (named.has(name)) return true;
    named.add(name);
    const left = LISTS.has(name) ? levels - 1 : levels;
    if (left < 0 || isTooMuch(fields, left, fragments)) return true;
  }
  return false;
}
