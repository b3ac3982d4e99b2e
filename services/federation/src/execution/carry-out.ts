import { Kind, parse } from 'graphql/index.js';
import { type Found, placesOf, type Representations, represent } from './entities.ts';
import { failedCall, invalidAnswer, MOST_ERRORS, readErrors, type SubgraphError } from './errors.ts';
import { mergeInto } from './merge.ts';
import { callOf, type Fetch, type Step } from './plan.ts';
import { type Rewrite, rewrite } from './rewrites.ts';
import type { Supergraph } from './supergraph.ts';
import {
  type AnswerPath,
  type GraphError,
  isObject,
  type JsonObject,
  type SubgraphAnswer,
  type SubgraphCall,
} from './types.ts';

/** One operation as it is carried out. */
export interface Run {
  readonly supergraph: Supergraph;
  /** Those of the client, coerced. */
  readonly variables: Readonly<JsonObject>;
  /** What has been fetched, by `FetchedNames`, and helper fields besides. */
  readonly data: JsonObject;
  /** What went wrong; paths are of `data`. */
  readonly errors: GraphError[];
  readonly send: (call: SubgraphCall) => Promise<SubgraphAnswer>;
  readonly signal: AbortSignal;
}

/** Carries out a plan. @throws the reason of the signal once it is aborted, and nothing else. */
export async function carryOut(step: Step, run: Run): Promise<void> {
  switch (step.kind) {
    case 'sequence':
      for (const next of step.steps) await carryOut(next, run);
      return;
    case 'parallel':
      await Promise.all(step.steps.map((next) => carryOut(next, run)));
      return;
    case 'fetch':
      await fetch(step, run);
  }
}

async function fetch(step: Fetch, run: Run): Promise<void> {
  const asked = represent(step.lookups, run.data, run.supergraph);
  if (step.lookups.length > 0 && asked.found.every(({ entities }) => entities.length === 0)) return;
  run.signal.throwIfAborted();
  const places = new Places(step, asked, run.data);
  try {
    const answer = await run.send(callOf(step, run.variables, asked.byVariable));
    const errors = readErrors(answer.errors, step.subgraph);
    for (const error of errors) {
      if (run.errors.length >= MOST_ERRORS) break;
      for (const placed of places.place(error)) run.errors.push(placed);
    }
    const problem = take(answer.data, { step, asked, run });
    if (problem !== undefined && errors.length === 0) {
      run.errors.push(...places.everywhere(invalidAnswer(problem, step.subgraph)));
    }
  } catch (error) {
    run.signal.throwIfAborted();
    run.errors.push(...places.everywhere(failedCall(error, step.subgraph)));
  }
}

interface Fetched {
  readonly step: Fetch;
  readonly asked: Representations;
  readonly run: Run;
}

/** Merges what a subgraph brought. @returns what is wrong with it. */
function take(data: unknown, { step, asked, run }: Fetched): string | undefined {
  if (!isObject(data)) return 'The service answered without data';
  if (step.lookups.length === 0) {
    rewrite(data, step.rewrites, run.supergraph);
    mergeInto(run.data, data, run.supergraph.objects);
    return undefined;
  }
  const problems = asked.found.map((found) => takeEntities(data[found.lookup.field], found, { asked, run }));
  return problems.find((problem) => problem !== undefined);
}

function takeEntities(brought: unknown, found: Found, { asked, run }: Omit<Fetched, 'step'>): string | undefined {
  const { lookup, entities } = found;
  if (entities.length === 0) return undefined;
  const expected = asked.byVariable.get(lookup.variable)?.length;
  // By position alone it is known which is which.
  if (!Array.isArray(brought) || brought.length !== expected)
    return 'The service answered with other entities than were asked for';
  rewrite(brought, lookup.after, run.supergraph);
  for (const { entity, representation } of entities) {
    const value: unknown = brought[representation];
    if (isObject(value)) mergeInto(entity, value, run.supergraph.objects);
  }
  return undefined;
}

/** Where in the client's answer the errors of a fetch belong. */
class Places {
  readonly #step: Fetch;
  readonly #asked: Representations;
  readonly #data: JsonObject;
  readonly #names: ReadonlyMap<string, string>;
  readonly #places = new Map<Found, ReadonlyMap<number, readonly AnswerPath[]>>();
  /** What all places of a lookup have in common, or the root fields. */
  #common: readonly AnswerPath[] | undefined;

  constructor(step: Fetch, asked: Representations, data: JsonObject) {
    this.#step = step;
    this.#asked = asked;
    this.#data = data;
    this.#names = new Map([step.rewrites, ...step.lookups.map(({ after }) => after)].flat().flatMap(renamed));
  }

  /** An entity that several places share has the error in each. */
  place(error: SubgraphError): readonly GraphError[] {
    const { path = [], ...rest } = error;
    if (this.#step.lookups.length === 0) {
      return path.length === 0 ? this.everywhere(rest) : [{ ...rest, path: this.#renamed(path) }];
    }
    const [field, index, ...below] = path;
    const found = this.#asked.found.find(({ lookup }) => lookup.field === field);
    const places = found && typeof index === 'number' ? this.#placesOf(found).get(index) : undefined;
    if (places === undefined) return this.everywhere(rest);
    return places.map((place) => ({ ...rest, path: [...place, ...this.#renamed(below)] }));
  }

  /** An error of all that the fetch was to bring: at what its places have in common. */
  everywhere(error: Omit<GraphError, 'path'>): readonly GraphError[] {
    this.#common ??= this.#findCommon();
    return this.#common.map((path) => ({ ...error, path }));
  }

  #findCommon(): readonly AnswerPath[] {
    if (this.#step.lookups.length === 0) return rootKeys(this.#step.query).map((key) => this.#renamed([key]));
    return this.#asked.found.flatMap((found) => {
      const places = [...this.#placesOf(found).values()].flat();
      return places.length === 0 ? [] : [places.reduce(commonPath)];
    });
  }

  /** By representation. Found once: there may be an error for each of many entities. */
  #placesOf(found: Found): ReadonlyMap<number, readonly AnswerPath[]> {
    const known = this.#places.get(found);
    if (known !== undefined) return known;
    const { lookup, entities } = found;
    const byPath = lookup.paths.map((path) => placesOf(this.#data, path));
    const places = new Map<number, AnswerPath[]>();
    for (const { entity, representation } of entities) {
      const before = places.get(representation) ?? [];
      places.set(representation, before);
      for (const of of byPath) for (const place of of.get(entity) ?? []) before.push(place);
    }
    this.#places.set(found, places);
    return places;
  }

  #renamed(path: AnswerPath): AnswerPath {
    return path.map((key) => (typeof key === 'string' ? (this.#names.get(key) ?? key) : key));
  }
}

/** What a rewrite names differently, by the name in the answer of the subgraph. */
function renamed({ path, renameTo }: Rewrite): readonly [string, string][] {
  const last = path.at(-1);
  return renameTo !== undefined && last !== undefined && 'key' in last ? [[last.key, renameTo]] : [];
}

function commonPath(a: AnswerPath, b: AnswerPath): AnswerPath {
  const end = a.findIndex((key, index) => key !== b[index]);
  return end === -1 ? a : a.slice(0, end);
}

function rootKeys(query: string): readonly string[] {
  return parse(query).definitions.flatMap((definition) =>
    definition.kind === Kind.OPERATION_DEFINITION
      ? definition.selectionSet.selections.flatMap((field) =>
          field.kind === Kind.FIELD ? [(field.alias ?? field.name).value] : [],
        )
      : [],
  );
}
