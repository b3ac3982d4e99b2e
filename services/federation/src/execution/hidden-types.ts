import {
  type DocumentNode,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  TypeInfo,
  visit,
  visitWithTypeInfo,
} from 'graphql/index.js';
import { withTypeName } from './planned-document.ts';
import type { Supergraph } from './supergraph.ts';

/** Interfaces and unions of which clients know some objects, and not all. */
export type PartlyHidden = ReadonlySet<string>;

/** Pure. @param schema what clients see. */
export function readPartlyHidden(schema: GraphQLSchema, { objectsOf }: Supergraph): PartlyHidden {
  const names = [...objectsOf].flatMap(([name, objects]) => {
    const type = schema.getType(name);
    return isAbstractType(type) && schema.getPossibleTypes(type).length < objects.size ? [name] : [];
  });
  return new Set(names);
}

/**
 * Asks for the name of the type where an object may be of a type that clients do not know. They get
 * nothing of it, whatever they ask for.
 */
export function askHiddenTypes(document: DocumentNode, schema: GraphQLSchema, types: PartlyHidden): DocumentNode {
  if (types.size === 0) return document;
  const info = new TypeInfo(schema);
  return visit(
    document,
    visitWithTypeInfo(info, {
      Field: {
        leave(node) {
          const { selectionSet } = node;
          if (selectionSet === undefined || !types.has(getNamedType(info.getType())?.name ?? '')) return undefined;
          return { ...node, selectionSet: withTypeName(selectionSet) };
        },
      },
    }),
  );
}
