import { type DocumentNode, type FieldNode, print, type ValueNode, visit } from 'graphql/index.js';

/**
 * The names that fields of a document are fetched under. The planner adds fields to what is asked for,
 * and takes a client's alias for a field of that name. So aliases get names that no field has. Two
 * fields that have one name in the answer, in different types, have different names here, unless they
 * are the same field with the same arguments: one object may be asked for both.
 */
export class FetchedNames {
  /** Fields with other arguments than the first one of that name: which of these arguments they have. */
  readonly #others = new Map<FieldNode, number>();

  constructor(document: DocumentNode) {
    const known = new Map<string, string[]>();
    visit(document, {
      Field: (node) => {
        const name = nameOf(keyOf(node), node.name.value, 0);
        const given = argumentsOf(node);
        const all = known.get(name);
        if (all === undefined) known.set(name, [given]);
        else if (!all.includes(given)) all.push(given);
        const index = all?.indexOf(given) ?? 0;
        if (index > 0) this.#others.set(node, index);
      },
    });
  }

  /** @param node of the document. */
  of(node: FieldNode): string {
    return nameOf(keyOf(node), node.name.value, this.#others.get(node) ?? 0);
  }
}

function keyOf({ alias, name }: FieldNode): string {
  return (alias ?? name).value;
}

/** The length tells where the key ends and the name begins. No key begins with a digit, as the index does. */
function nameOf(key: string, name: string, index: number): string {
  if (index > 0) return `_as${key.length}_${index}_${key}_${name}`;
  return key === name ? name : `_as${key.length}_${key}_${name}`;
}

/** The same for arguments that are the same in whichever order. */
function argumentsOf({ arguments: given = [] }: FieldNode): string {
  return given
    .map(({ name, value }) => `${name.value}: ${print(sorted(value))}`)
    .toSorted()
    .join();
}

function sorted(value: ValueNode): ValueNode {
  return visit(value, {
    ObjectValue: {
      leave: (object) => ({
        ...object,
        fields: object.fields.toSorted((one, other) => (one.name.value < other.name.value ? -1 : 1)),
      }),
    },
  });
}
