import {
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  isObjectType,
  Kind,
  type SelectionNode,
  type SelectionSetNode,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql/index.js';
import type { UntypedField, UntypedFields } from './interface-objects.ts';

/**
 * Asks an interface for what fragments ask of one of its types, where it comes from subgraphs that know
 * the interface as an object (@interfaceObject): where there are fragments of several types, the planner
 * loses calls for them. So it does for other types, where the interface is asked as well, wherever it
 * comes from. More may be fetched than is asked for; the answer has none of it. Fields of a key are known
 * before the type is: the planner would go back for them.
 *
 * @param document planned, without fragments by name, and with different names for fields that are not the same.
 */
export function askInterfaces(
  document: DocumentNode,
  schema: GraphQLSchema,
  untypedFields: UntypedFields,
): DocumentNode {
  if (untypedFields.size === 0) return document;
  const types = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(types, {
      Field: {
        leave(node) {
          const untyped = untypedFields.get(`${types.getParentType()?.name}.${node.name.value}`);
          if (untyped === undefined || node.selectionSet === undefined) return undefined;
          const selectionSet = raised(node.selectionSet, untyped, schema);
          return selectionSet === undefined ? undefined : { ...node, selectionSet };
        },
      },
    }),
  );
}

/** Undefined: it may stay as it is. */
function raised(
  set: SelectionSetNode,
  { fields: names, keys, isUntyped }: UntypedField,
  schema: GraphQLSchema,
): SelectionSetNode | undefined {
  const objects = new Set<string>();
  const fields = new Set<FieldNode>();
  let isAsked = isUntyped;
  collect(set.selections, undefined);
  if (!isAsked) return undefined;
  const ofKeys = [...fields].filter(({ name }) => isUntyped && keys.has(name.value));
  const chosen = objects.size > 1 ? fields : new Set(ofKeys);
  if (chosen.size === 0) return undefined;
  return { ...set, selections: [...chosen, ...without(set.selections, chosen)] };

  function collect(selections: readonly SelectionNode[], object: string | undefined): void {
    for (const selection of selections) {
      if (selection.kind === Kind.INLINE_FRAGMENT) {
        const condition = selection.typeCondition?.name.value ?? '';
        const isOfObject = isObjectType(schema.getType(condition));
        if (isOfObject) objects.add(condition);
        collect(selection.selectionSet.selections, isOfObject ? condition : object);
      } else if (selection.kind === Kind.FIELD && names.has(selection.name.value)) {
        if (object !== undefined) fields.add(selection);
        else isAsked ||= !keys.has(selection.name.value);
      }
    }
  }
}

function without(selections: readonly SelectionNode[], fields: ReadonlySet<SelectionNode>): readonly SelectionNode[] {
  return selections
    .filter((selection) => !fields.has(selection))
    .map((selection) =>
      selection.kind === Kind.INLINE_FRAGMENT
        ? {
            ...selection,
            selectionSet: { ...selection.selectionSet, selections: without(selection.selectionSet.selections, fields) },
          }
        : selection,
    );
}
