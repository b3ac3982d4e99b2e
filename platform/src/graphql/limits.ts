import {
  type DocumentNode,
  type FragmentDefinitionNode,
  GraphQLError,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
  type ValidationRule,
} from 'graphql/index.js';

/** What one operation of GraphQL may have. A fragment counts wherever it is spread. */
export interface GraphqlLimits {
  /** Fields one in another. */
  readonly depth: number;
  /** Fields under another name: by it one field is asked for many times. */
  readonly aliases: number;
  /** Fields of the root types. */
  readonly rootFields: number;
  /** Directives of the operation, its fields and its fragments. */
  readonly directives: number;
  /** Fields and fragments altogether. */
  readonly selections: number;
  /** Selection sets one in another, those of fragments too. */
  readonly nesting: number;
}

/** More than people and programs write; both are counted by every server of GraphQL. */
export const EXPANSION_LIMITS = { selections: 10_000, nesting: 100 } as const;

/** A limit that an operation is beyond. */
export interface Excess {
  readonly limit: keyof GraphqlLimits;
  readonly most: number;
  /** For who wrote the operation. */
  readonly message: string;
  readonly operation: OperationDefinitionNode;
}

/** What is counted, in words. */
const WORDS: Readonly<Record<keyof GraphqlLimits, string>> = {
  depth: 'levels of fields',
  aliases: 'aliases',
  rootFields: 'fields of its root',
  directives: 'directives',
  selections: 'fields and fragments, once its fragments are put in',
  nesting: 'levels of fields and fragments',
};

/** The limits in the order in which they are told. */
const LIMITS = ['depth', 'aliases', 'rootFields', 'directives', 'selections', 'nesting'] as const;

/**
 * Pure. All limits that operations of a document are beyond. A fragment is measured once, so that it
 * takes no longer than the document is long. The document need not be valid.
 */
export function excesses(document: DocumentNode, limits: GraphqlLimits): readonly Excess[] {
  return measureOperations(document).flatMap(({ operation, measure }) =>
    LIMITS.filter((limit) => measure[limit] > limits[limit]).map((limit) => ({
      limit,
      most: limits[limit],
      message: `The operation has more than ${limits[limit]} ${WORDS[limit]}`,
      operation,
    })),
  );
}

/** A rule of validation that refuses documents beyond the limits. */
export function limitsRule(limits: GraphqlLimits): ValidationRule {
  return (context) => ({
    Document(document) {
      for (const { message, operation } of excesses(document, limits))
        context.reportError(new GraphQLError(message, { nodes: [operation] }));
    },
  });
}

/** What a selection comes to, with what fragments bring. `rootFields` are those that are in no other. */
type Measure = GraphqlLimits;

const NOTHING: Measure = { depth: 0, aliases: 0, rootFields: 0, directives: 0, selections: 0, nesting: 0 };

function measureOperations(
  document: DocumentNode,
): readonly { readonly operation: OperationDefinitionNode; readonly measure: Measure }[] {
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
    const measure = fragment === undefined ? NOTHING : withDirectives(ofSet(fragment.selectionSet), fragment);
    measured.set(name, measure);
    return measure;
  }

  function ofSet({ selections }: SelectionSetNode): Measure {
    const all = selections
      .map((selection) => {
        if (selection.kind === Kind.FIELD) {
          const within = selection.selectionSet === undefined ? NOTHING : ofSet(selection.selectionSet);
          const aliases = within.aliases + (selection.alias === undefined ? 0 : 1);
          return withDirectives({ ...within, depth: within.depth + 1, aliases, rootFields: 1 }, selection);
        }
        const isSpread = selection.kind === Kind.FRAGMENT_SPREAD;
        return withDirectives(isSpread ? ofFragment(selection.name.value) : ofSet(selection.selectionSet), selection);
      })
      .reduce(together, NOTHING);
    return { ...all, selections: all.selections + selections.length, nesting: all.nesting + 1 };
  }

  return document.definitions.flatMap((node) =>
    node.kind === Kind.OPERATION_DEFINITION
      ? [{ operation: node, measure: withDirectives(ofSet(node.selectionSet), node) }]
      : [],
  );
}

function withDirectives(measure: Measure, { directives = [] }: { readonly directives?: readonly unknown[] }): Measure {
  return directives.length === 0 ? measure : { ...measure, directives: measure.directives + directives.length };
}

function together(a: Measure, b: Measure): Measure {
  return {
    depth: Math.max(a.depth, b.depth),
    aliases: a.aliases + b.aliases,
    rootFields: a.rootFields + b.rootFields,
    directives: a.directives + b.directives,
    selections: a.selections + b.selections,
    nesting: Math.max(a.nesting, b.nesting),
  };
}
