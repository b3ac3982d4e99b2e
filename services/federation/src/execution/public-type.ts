import type { GraphQLSchema } from 'graphql/index.js';
import type { CompositeType, Selection } from './selection.ts';
import type { Shape } from './shape.ts';
import type { Supergraph } from './supergraph.ts';
import { type AnswerPath, isObject, type JsonObject } from './types.ts';

/** What clients know of types, and what the supergraph knows besides. */
export interface Types {
  readonly schema: GraphQLSchema;
  readonly supergraph: Supergraph;
}

/**
 * The type of an object that a subgraph brought, as clients know it. Where its subgraph knows it by
 * the name of an interface alone (@interfaceObject), it is the interface.
 *
 * @returns 'hidden' for a type that clients do not know, undefined for one that has no place there.
 */
export function publicTypeOf(
  object: JsonObject,
  shape: Extract<Shape, { readonly kind: 'object' | 'abstract' }>,
  { schema, supergraph }: Types,
): CompositeType | 'hidden' | undefined {
  if (shape.kind === 'object') return shape.type;
  const name = object['__typename'];
  if (typeof name !== 'string') return shape.type;
  const type = shape.objects.get(name);
  if (type !== undefined) return type;
  if (!supergraph.objects.has(name)) return shape.type;
  // A contract may know the type, and not that it is one of these.
  const isOne = shape.type !== undefined && supergraph.objectsOf.get(shape.type.name)?.has(name) === true;
  return isOne || schema.getType(name) === undefined ? 'hidden' : undefined;
}

/**
 * The place of an error as the client knows it: with its names of fields, and cut off where the
 * path leads into what it did not ask for.
 *
 * @param path in `data`.
 */
export function clientPath(
  path: AnswerPath,
  root: { readonly data: unknown; readonly shape: Shape; readonly selection: Selection },
  types: Types,
): AnswerPath {
  const known: (string | number)[] = [];
  let { data: value, shape, selection }: { data: unknown; shape: Shape | undefined; selection: Selection } = root;
  for (const key of path) {
    while (shape?.kind === 'required') shape = shape.of;
    if (typeof key === 'number') {
      if (shape?.kind !== 'list') break;
      shape = shape.of;
      value = Array.isArray(value) ? value[key] : undefined;
      known.push(key);
      continue;
    }
    if (shape?.kind !== 'object' && shape?.kind !== 'abstract') break;
    const object = isObject(value) ? value : {};
    const type = publicTypeOf(object, shape, types);
    if (type === undefined || type === 'hidden') break;
    const field = selection.fieldsOf(type).find(({ fetched }) => fetched === key);
    if (field === undefined) break;
    ({ shape, selection } = field);
    value = object[key];
    known.push(field.key);
  }
  return known;
}
