import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  getOperationAST,
  type InlineFragmentNode,
  Kind,
  type NameNode,
  type SelectionNode,
  type SelectionSetNode,
  visit,
} from 'graphql/index.js';
import { isCondition, isIncluded } from './conditions.ts';
import { fetchedName } from './fetched-name.ts';
import type { JsonObject } from './types.ts';

/**
 * The document as it is planned, with these values of its variables: without @skip and @include and
 * what they leave out, for plans with conditions are not always valid. Introspection is answered
 * from the schema, and names of types of the type of an object, which has to be fetched for them.
 *
 * @param withheld fields that are not to be planned.
 */
export function plannedDocument(
  document: DocumentNode,
  variables: Readonly<JsonObject>,
  withheld: ReadonlySet<FieldNode>,
): DocumentNode {
  return visit(document, {
    Field: {
      enter: (node) => (isIncluded(node, variables) && !withheld.has(node) ? withoutConditions(fetchedAs(node)) : null),
    },
    InlineFragment: { enter: (node) => (isIncluded(node, variables) ? withoutConditions(withTypeName(node)) : null) },
    FragmentSpread: { enter: (node) => (isIncluded(node, variables) ? withoutConditions(node) : null) },
    SelectionSet: {
      leave: (node) => (node.selections.length === 0 ? { ...node, selections: [TYPE_NAME] } : undefined),
    },
  });
}

/** Whether the operation needs anything but names of root types. */
export function asksSubgraphs(document: DocumentNode, operationName: string | undefined): boolean {
  const fragments = new Map<string, FragmentDefinitionNode>();
  for (const definition of document.definitions) {
    if (definition.kind === Kind.FRAGMENT_DEFINITION) fragments.set(definition.name.value, definition);
  }
  const operation = getOperationAST(document, operationName);
  return operation ? asks(operation.selectionSet) : false;

  function asks({ selections }: SelectionSetNode): boolean {
    return selections.some((selection) => {
      if (selection.kind === Kind.FIELD) return selection.name.value !== TYPE_NAME.name.value;
      const fragment = selection.kind === Kind.INLINE_FRAGMENT ? selection : fragments.get(selection.name.value);
      return fragment !== undefined && asks(fragment.selectionSet);
    });
  }
}

const TYPE_NAME: FieldNode = { kind: Kind.FIELD, name: nameOf('__typename') };

function fetchedAs(node: FieldNode): FieldNode {
  const { name, alias } = node;
  if (name.value.startsWith('__')) return TYPE_NAME;
  return alias === undefined ? node : { ...node, alias: nameOf(fetchedName(alias.value, name.value)) };
}

/** Without a field of the type itself, the planner may lose a fragment within an interface that is an object elsewhere. */
function withTypeName(node: InlineFragmentNode): InlineFragmentNode {
  const { selectionSet } = node;
  return { ...node, selectionSet: { ...selectionSet, selections: [TYPE_NAME, ...selectionSet.selections] } };
}

function withoutConditions<Node extends SelectionNode>(node: Node): Node {
  const { directives = [] } = node;
  return { ...node, directives: directives.filter(({ name }) => !isCondition(name.value)) };
}

function nameOf(value: string): NameNode {
  return { kind: Kind.NAME, value };
}
