import type { RequiresSelection } from '@graphql-hive/router-query-planner';
import { mergeInto } from './merge.ts';
import type { EntityPath, Lookup } from './plan.ts';
import { rewrite } from './rewrites.ts';
import { isOfTypes, type Supergraph } from './supergraph.ts';
import { type AnswerPath, isObject, type JsonObject } from './types.ts';

/** The entities of a lookup, and which representation each is asked by. */
export interface Found {
  readonly lookup: Lookup;
  readonly entities: readonly { readonly entity: JsonObject; readonly representation: number }[];
}

/** What a fetch asks for: the entities of each lookup, and representations by variable, none of them twice. */
export interface Representations {
  readonly found: readonly Found[];
  readonly byVariable: ReadonlyMap<string, readonly JsonObject[]>;
}

/** Finds the entities of lookups in what has been fetched so far. */
export function represent(lookups: readonly Lookup[], data: JsonObject, supergraph: Supergraph): Representations {
  const sets = new Map<string, RepresentationSet>();
  const found = lookups.map((lookup) => {
    const set = sets.get(lookup.variable) ?? new RepresentationSet();
    sets.set(lookup.variable, set);
    const entities: Found['entities'][number][] = [];
    for (const entity of new Set(lookup.paths.flatMap((path) => entitiesAt(data, path, supergraph)))) {
      const representation = representationOf(entity, lookup, supergraph);
      if (representation !== undefined) entities.push({ entity, representation: set.add(representation) });
    }
    return { lookup, entities };
  });
  return { found, byVariable: new Map([...sets].map(([variable, { members }]) => [variable, members])) };
}

class RepresentationSet {
  readonly members: JsonObject[] = [];
  readonly #places = new Map<string, number>();

  /** @returns its place, or that of its equal. */
  add(representation: JsonObject): number {
    const text = JSON.stringify(representation);
    const known = this.#places.get(text);
    if (known !== undefined) return known;
    const place = this.members.push(representation) - 1;
    this.#places.set(text, place);
    return place;
  }
}

/** The objects at a path; what is null or of another type has none. */
function entitiesAt(data: JsonObject, path: EntityPath, supergraph: Supergraph): readonly JsonObject[] {
  const entities: JsonObject[] = [];
  visit(data, 0);
  return entities;

  function visit(value: unknown, depth: number): void {
    if (Array.isArray(value)) {
      const below = path[depth] === 'items' ? depth + 1 : depth;
      for (const item of value) visit(item, below);
      return;
    }
    if (!isObject(value)) return;
    const step = path[depth];
    if (step === undefined) entities.push(value);
    else if (step === 'items') return;
    else if ('field' in step) visit(value[step.field], depth + 1);
    else if (isOf(value, step.types, supergraph)) visit(value, depth + 1);
  }
}

function isOf(object: JsonObject, types: readonly string[], supergraph: Supergraph): boolean {
  const typename = object['__typename'];
  return typeof typename !== 'string' || isOfTypes(supergraph, typename, types);
}

/**
 * Where the objects are that a path leads to. One object may be in several places. Type conditions
 * do not count: the objects tell them apart.
 */
export function placesOf(data: JsonObject, path: EntityPath): ReadonlyMap<JsonObject, readonly AnswerPath[]> {
  const places = new Map<JsonObject, AnswerPath[]>();
  const steps = path.filter((step) => step === 'items' || 'field' in step);
  visit(data, 0, []);
  return places;

  function visit(value: unknown, depth: number, place: AnswerPath): void {
    const step = steps[depth];
    if (Array.isArray(value)) {
      const below = step === 'items' ? depth + 1 : depth;
      for (const [index, item] of value.entries()) visit(item, below, [...place, index]);
      return;
    }
    if (!isObject(value)) return;
    if (step === undefined) {
      const before = places.get(value);
      if (before === undefined) places.set(value, [place]);
      else before.push(place);
    } else if (step !== 'items' && 'field' in step) visit(value[step.field], depth + 1, [...place, step.field]);
  }
}

/** Undefined: what the subgraph needs to know of the entity is not known, or nothing but null. */
function representationOf(entity: JsonObject, lookup: Lookup, supergraph: Supergraph): JsonObject | undefined {
  const representation = select(entity, lookup.requires, supergraph);
  if (representation === undefined) return undefined;
  representation['__typename'] ??= entity['__typename'];
  const isKnown = Object.keys(representation).some((key) => key !== '__typename' && representation[key] !== null);
  if (!isKnown) return undefined;
  rewrite(representation, lookup.before, supergraph);
  return representation;
}

/** The part of an object that is required. Undefined: a member of it has not been fetched. */
function select(
  object: JsonObject,
  selections: readonly RequiresSelection[],
  supergraph: Supergraph,
): JsonObject | undefined {
  const selected: JsonObject = {};
  for (const selection of selections) {
    if (selection.kind === 'Field') {
      const value = selectValue(object[selection.name], selection.selections, supergraph);
      if (value === undefined) return undefined;
      selected[selection.alias ?? selection.name] = value;
    } else if (selection.kind === 'InlineFragment' && isOf(object, [selection.typeCondition], supergraph)) {
      const part = select(object, selection.selections, supergraph);
      if (part === undefined) return undefined;
      // The subgraph has to tell its types apart, as the condition did.
      if (object['__typename'] !== undefined) selected['__typename'] = object['__typename'];
      mergeInto(selected, part, supergraph.objects);
    }
  }
  return selected;
}

function selectValue(
  value: unknown,
  selections: readonly RequiresSelection[] | undefined,
  supergraph: Supergraph,
): unknown {
  if (selections === undefined || selections.length === 0 || value === null) return value;
  if (Array.isArray(value)) {
    const items = value.map((item: unknown) => selectValue(item, selections, supergraph));
    return items.includes(undefined) ? undefined : items;
  }
  return isObject(value) ? select(value, selections, supergraph) : undefined;
}
