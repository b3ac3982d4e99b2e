import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  type InlineFragmentNode,
  Kind,
  type NameNode,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql/index.js';
import { isCondition, isIncluded } from './conditions.ts';
import type { FetchedNames } from './fetched-names.ts';
import type { JsonObject } from './types.ts';

interface PlannedScope {
  readonly schema: GraphQLSchema;
  readonly fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  /** Those of @skip and @include. */
  readonly variables: Readonly<JsonObject>;
  /** Fields that are not to be planned. */
  readonly withheld: ReadonlySet<FieldNode>;
  readonly names: FetchedNames;
}

/**
 * The operation as it is planned, with these values of its variables: without @skip and @include and
 * what they leave out, for plans with conditions are not always valid, and with fragments where they are
 * spread. One that is always of the type is not kept as a fragment. Introspection is answered from the
 * schema, and names of types of the type of an object, which has to be fetched for them.
 */
export function plannedDocument(
  operation: OperationDefinitionNode,
  { schema, fragments, variables, withheld, names }: PlannedScope,
): DocumentNode {
  const types = new TypeInfo(schema);
  const planned = visit(
    operation,
    visitWithTypeInfo(types, {
      Field: {
        enter: (node) =>
          isIncluded(node, variables) && !withheld.has(node) ? withoutConditions(fetchedAs(node, names)) : null,
      },
      InlineFragment: { enter: (node) => (isIncluded(node, variables) ? withoutConditions(node) : null) },
      FragmentSpread: {
        enter(node) {
          const fragment = fragments.get(node.name.value);
          return fragment !== undefined && isIncluded(node, variables) ? spread(fragment) : null;
        },
      },
      SelectionSet: {
        leave(node, _key, parent) {
          const selections = withoutNeedlessFragments(node.selections, types.getParentType()?.name);
          const isOfField = parent !== undefined && 'kind' in parent && parent.kind === Kind.FIELD;
          return { ...node, selections: selections.length === 0 && isOfField ? [TYPE_NAME] : selections };
        },
      },
    }),
  );
  return { kind: Kind.DOCUMENT, definitions: [planned] };
}

/**
 * Where the planner gets a fragment, it also gets a field of the type itself there: it may lose one
 * without, within an interface that is an object elsewhere. That field may cost a call.
 *
 * @param type what they are asked of.
 */
function withoutNeedlessFragments(
  selections: readonly SelectionNode[],
  type: string | undefined,
): readonly SelectionNode[] {
  return selections.flatMap((selection) => {
    if (selection.kind !== Kind.INLINE_FRAGMENT) return [selection];
    const { typeCondition, directives = [], selectionSet } = selection;
    const isNeedless = (typeCondition === undefined || typeCondition.name.value === type) && directives.length === 0;
    return isNeedless ? selectionSet.selections : [{ ...selection, selectionSet: withTypeName(selectionSet) }];
  });
}

/** Whether a planned document needs anything but names of root types. */
export function asksSubgraphs({ definitions }: DocumentNode): boolean {
  return definitions.some((definition) => 'selectionSet' in definition && asks(definition.selectionSet));
}

function asks({ selections }: SelectionSetNode): boolean {
  return selections.some((selection) =>
    selection.kind === Kind.FIELD
      ? selection.name.value !== TYPE_NAME.name.value
      : selection.kind === Kind.INLINE_FRAGMENT && asks(selection.selectionSet),
  );
}

function spread({ typeCondition, selectionSet }: FragmentDefinitionNode): InlineFragmentNode {
  return { kind: Kind.INLINE_FRAGMENT, typeCondition, selectionSet };
}

const TYPE_NAME: FieldNode = { kind: Kind.FIELD, name: nameOf('__typename') };

function fetchedAs(node: FieldNode, names: FetchedNames): FieldNode {
  if (node.name.value.startsWith('__')) return TYPE_NAME;
  const fetched = names.of(node);
  return fetched === node.name.value ? node : { ...node, alias: nameOf(fetched) };
}

/** Asks for the name of the type besides. */
export function withTypeName(set: SelectionSetNode): SelectionSetNode {
  return { ...set, selections: [TYPE_NAME, ...set.selections] };
}

function withoutConditions<Node extends SelectionNode>(node: Node): Node {
  const { directives = [] } = node;
  return { ...node, directives: directives.filter(({ name }) => !isCondition(name.value)) };
}

function nameOf(value: string): NameNode {
  return { kind: Kind.NAME, value };
}
