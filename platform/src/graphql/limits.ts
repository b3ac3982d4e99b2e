import {
  type ASTNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type SelectionSetNode,
  type ValidationRule,
} from 'graphql/index.js';

/** What one request of GraphQL may have. */
export interface GraphqlLimits {
  /** Fields one in another. */
  readonly depth: number;
  /** Fields under another name: by it one field is asked for many times. */
  readonly aliases: number;
  /** Fields of the root types. */
  readonly rootFields: number;
}

/** What a selection comes to, with what fragments bring. */
interface Measure {
  readonly depth: number;
  readonly aliases: number;
  /** Beside those of fields in it. */
  readonly fields: number;
}

const NOTHING: Measure = { depth: 0, aliases: 0, fields: 0 };

/**
 * A rule of validation that refuses documents beyond the limits. A fragment counts wherever it is
 * spread, and is measured once.
 */
export function limitsRule(limits: GraphqlLimits): ValidationRule {
  return (context) => ({
    Document(document) {
      for (const { node, measure } of measureOperations(document)) {
        const refuse = (what: string, most: number) =>
          context.reportError(new GraphQLError(`The operation has more than ${most} ${what}`, { nodes: [node] }));
        if (measure.depth > limits.depth) refuse('levels of fields', limits.depth);
        if (measure.aliases > limits.aliases) refuse('aliases', limits.aliases);
        if (measure.fields > limits.rootFields) refuse('fields of its root', limits.rootFields);
      }
    },
  });
}

function measureOperations(document: DocumentNode): readonly { readonly node: ASTNode; readonly measure: Measure }[] {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  const measured = new Map<string, Measure>();

  function ofFragment(name: string): Measure {
    const known = measured.get(name);
    if (known !== undefined) return known;
    // A fragment in itself is refused by a rule of GraphQL's own.
    measured.set(name, NOTHING);
    const fragment = fragments.get(name);
    const measure = fragment === undefined ? NOTHING : ofSelections(fragment.selectionSet);
    measured.set(name, measure);
    return measure;
  }

  function ofSelections({ selections }: SelectionSetNode): Measure {
    return selections
      .map((selection) => {
        if (selection.kind === Kind.FRAGMENT_SPREAD) return ofFragment(selection.name.value);
        if (selection.kind === Kind.INLINE_FRAGMENT) return ofSelections(selection.selectionSet);
        const below = selection.selectionSet === undefined ? NOTHING : ofSelections(selection.selectionSet);
        const aliases = below.aliases + (selection.alias === undefined ? 0 : 1);
        return { depth: below.depth + 1, aliases, fields: 1 };
      })
      .reduce(together, NOTHING);
  }

  return document.definitions.flatMap((node) =>
    node.kind === Kind.OPERATION_DEFINITION ? [{ node, measure: ofSelections(node.selectionSet) }] : [],
  );
}

function together(a: Measure, b: Measure): Measure {
  return { depth: Math.max(a.depth, b.depth), aliases: a.aliases + b.aliases, fields: a.fields + b.fields };
}
