import {
  type GraphQLInterfaceType,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLSchema,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  isScalarType,
} from 'graphql/index.js';

/** A type, prepared for many values of it. */
export type Shape =
  | { readonly kind: 'required'; readonly of: Shape }
  | { readonly kind: 'list'; readonly of: Shape }
  | { readonly kind: 'leaf'; readonly type: GraphQLLeafType; readonly enumValues: ReadonlySet<string> | undefined }
  | { readonly kind: 'object'; readonly type: GraphQLObjectType }
  | {
      readonly kind: 'abstract';
      readonly name: string;
      readonly objects: ReadonlyMap<string, GraphQLObjectType>;
      /** Absent for a union. */
      readonly type: GraphQLInterfaceType | undefined;
    };

export function shapeOf(type: GraphQLOutputType, schema: GraphQLSchema): Shape {
  if (isNonNullType(type)) return { kind: 'required', of: shapeOf(type.ofType, schema) };
  if (isListType(type)) return { kind: 'list', of: shapeOf(type.ofType, schema) };
  if (isScalarType(type)) return { kind: 'leaf', type, enumValues: undefined };
  if (isEnumType(type)) return { kind: 'leaf', type, enumValues: new Set(type.getValues().map(({ name }) => name)) };
  if (isObjectType(type)) return { kind: 'object', type };
  const objects = new Map(schema.getPossibleTypes(type).map((object) => [object.name, object]));
  return { kind: 'abstract', name: type.name, objects, type: isInterfaceType(type) ? type : undefined };
}
