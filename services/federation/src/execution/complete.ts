import type { GraphQLObjectType } from 'graphql/index.js';
import { ErrorTree } from './error-tree.ts';
import { clientPath, publicTypeOf, type Types } from './public-type.ts';
import type { CompositeType, SelectedField, Selection } from './selection.ts';
import type { Shape } from './shape.ts';
import { type AnswerPath, type GraphError, isObject, type JsonObject } from './types.ts';

/** What was fetched for an operation. */
export interface Fetched {
  readonly data: JsonObject;
  /** Of subgraphs; they explain what is missing. */
  readonly errors: readonly GraphError[];
  readonly root: GraphQLObjectType;
  readonly selection: Selection;
}

/** What a client gets. */
export interface Completed {
  readonly data: JsonObject | null;
  readonly errors: readonly GraphError[];
}

/**
 * Makes the client's answer of what was fetched: only what is asked for, in that order, each value
 * of its type. A null where none may be takes the object around it away, with an error unless there
 * is one already (specification of GraphQL, section 6.4.4).
 */
export function complete({ data, errors, root, selection }: Fetched, types: Types): Completed {
  const shape: Shape = { kind: 'object', type: root };
  const known = errors.map(({ path = [], ...error }): GraphError => {
    const asked = clientPath(path, { data, shape, selection }, types);
    return asked.length === 0 ? error : { ...error, path: asked };
  });
  const completion = new Completion(types, known);
  return { data: completion.object(data, { type: root, selection }, undefined), errors: completion.errors };
}

/** Where a value is: kept as a chain, and made a path only for an error. */
interface Place {
  readonly above: Place | undefined;
  readonly key: string | number;
  readonly field: SelectedField;
}

/** Stands for a null where none may be. */
const NOT_ALLOWED = Symbol('null is not allowed');

class Completion {
  readonly errors: GraphError[];
  readonly #types: Types;
  readonly #places = new ErrorTree();

  constructor(types: Types, errors: readonly GraphError[]) {
    this.#types = types;
    this.errors = [...errors];
    for (const { path = [] } of errors) this.#places.add(path);
  }

  /** Null: one of its fields is, and may not be. */
  object(
    object: JsonObject,
    { type, selection }: { readonly type: CompositeType; readonly selection: Selection },
    above: Place | undefined,
  ): JsonObject | null {
    const completed: JsonObject = {};
    for (const field of selection.fieldsOf(type)) {
      const place = { above, key: field.key, field };
      const fetched = field.name === '__typename' ? this.#typeName(type) : object[field.fetched];
      const value = field.isWithheld ? this.#withheld(place) : this.#value(fetched, field.shape, place);
      if (value === NOT_ALLOWED) return null;
      completed[field.key] = value;
    }
    return completed;
  }

  /** There is an error for it already, of all places in lists together. */
  #withheld(place: Place): null | typeof NOT_ALLOWED {
    if (place.field.shape?.kind !== 'required') return null;
    this.#places.add(pathOf(place));
    return NOT_ALLOWED;
  }

  /** Of an interface it is not known which of its types it is. */
  #typeName(type: { readonly name: string }): string | null {
    return this.#types.supergraph.objects.has(type.name) ? type.name : null;
  }

  #value(value: unknown, shape: Shape | undefined, place: Place): unknown {
    // Introspection is answered from the schema.
    if (shape === undefined) return value;
    if (shape.kind === 'required') {
      const required = this.#value(value, shape.of, place);
      if (required !== null) return required;
      this.#explain(place);
      return NOT_ALLOWED;
    }
    // What an object of JavaScript has by itself is a function.
    if (value === null || value === undefined || typeof value === 'function') return null;
    if (shape.kind === 'leaf') return this.#leaf(value, shape, place);
    if (shape.kind === 'list') return this.#list(value, shape.of, place);
    if (!isObject(value)) return this.#invalid('an object', place);
    const type = publicTypeOf(value, shape, this.#types);
    if (type === 'hidden') return null;
    if (type === undefined) return this.#invalid('one of its types', place);
    return this.object(value, { type, selection: place.field.selection }, place);
  }

  #list(value: unknown, shape: Shape, place: Place): unknown {
    if (!Array.isArray(value)) return this.#invalid('a list', place);
    const items: unknown[] = [];
    for (const [key, item] of value.entries()) {
      const completed = this.#value(item, shape, { above: place, key, field: place.field });
      if (completed === NOT_ALLOWED) return null;
      items.push(completed);
    }
    return items;
  }

  #leaf(value: unknown, { type, enumValues }: Extract<Shape, { readonly kind: 'leaf' }>, place: Place): unknown {
    if (enumValues !== undefined) {
      if (typeof value === 'string' && enumValues.has(value)) return value;
      const isHidden =
        typeof value === 'string' && this.#types.supergraph.enumValues.get(type.name)?.has(value) === true;
      return isHidden ? null : this.#invalid(type.name, place);
    }
    try {
      return type.serialize(value) ?? null;
    } catch {
      return this.#invalid(type.name, place);
    }
  }

  #invalid(expected: string, place: Place): null {
    this.#report(`The service brought something else than ${expected} for ${place.field.coordinate}`, pathOf(place));
    return null;
  }

  #explain(place: Place): void {
    const path = pathOf(place);
    if (this.#places.explains(path)) return;
    this.#report(`Cannot return null for non-nullable field ${place.field.coordinate}`, path);
  }

  #report(message: string, path: AnswerPath): void {
    this.errors.push({ message, path, extensions: { code: 'INVALID_SUBGRAPH_ANSWER' } });
    this.#places.add(path);
  }
}

function pathOf(place: Place): AnswerPath {
  const path: (string | number)[] = [];
  for (let at: Place | undefined = place; at !== undefined; at = at.above) path.push(at.key);
  return path.toReversed();
}
