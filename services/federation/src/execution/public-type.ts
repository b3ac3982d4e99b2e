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
  return schema.getType(name) === undefined ? 'hidden' : undefined;
}

/** Cuts a path off where it leads into what the client did not ask for. */
export function clientPath(
  path: AnswerPath,
  root: { readonly data: unknown; readonly shape: Shape; readonly selection: Selection },
  types: Types,
): AnswerPath {
  let { data: value, shape, selection }: { data: unknown; shape: Shape | undefined; selection: Selection } = root;
  for (const [length, key] of path.entries()) {
    while (shape?.kind === 'required') shape = shape.of;
    if (typeof key === 'number') {
      if (shape?.kind !== 'list') return path.slice(0, length);
      shape = shape.of;
      value = Array.isArray(value) ? value[key] : undefined;
      continue;
    }
    if (shape?.kind !== 'object' && shape?.kind !== 'abstract') return path.slice(0, length);
    const object = isObject(value) ? value : {};
    const type = publicTypeOf(object, shape, types);
    const field =
      type === undefined || type === 'hidden' ? undefined : selection.fieldsOf(type).find((field) => field.key === key);
    if (field === undefined) return path.slice(0, length);
    ({ shape, selection } = field);
    value = object[key];
  }
  return path;
}
