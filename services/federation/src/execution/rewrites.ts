import type { FetchRewrite } from '@graphql-hive/router-query-planner';
import { isOfTypes, type Supergraph } from './supergraph.ts';
import { isObject, type JsonObject } from './types.ts';

/** A change of a representation before it is sent, or of an answer before it is merged. */
export interface Rewrite {
  readonly path: readonly RewriteStep[];
  /** The last key of the path gets this name. */
  readonly renameTo?: string;
  /** The last key of the path gets this value. */
  readonly value?: string;
}

/** Into the value of a key, or on only with objects of these types. */
type RewriteStep = { readonly key: string } | { readonly types: readonly string[] };

/** Reads rewrites of a query plan. @throws Error for one that is not known. */
export function readRewrites(rewrites: readonly FetchRewrite[] = []): readonly Rewrite[] {
  return rewrites.map((rewrite) => {
    if ('KeyRenamer' in rewrite) {
      const { path, renameKeyTo } = rewrite.KeyRenamer;
      return { path: path.map(readStep), renameTo: renameKeyTo };
    }
    const setter = 'ValueSetter' in rewrite ? rewrite.ValueSetter : rewrite;
    return { path: setter.path.map(readStep), value: setter.setValueTo };
  });
}

function readStep(segment: { readonly Key: string } | { readonly TypenameEquals: readonly string[] }): RewriteStep {
  return 'Key' in segment ? { key: segment.Key } : { types: segment.TypenameEquals };
}

/** Changes the value in place; a list item by item. */
export function rewrite(value: unknown, rewrites: readonly Rewrite[], supergraph: Supergraph): void {
  for (const one of rewrites) follow(value, 0, { ...one, supergraph });
}

type Following = Rewrite & { readonly supergraph: Supergraph };

function follow(value: unknown, depth: number, following: Following): void {
  if (Array.isArray(value)) {
    for (const item of value) follow(item, depth, following);
    return;
  }
  const step = following.path[depth];
  if (!isObject(value) || step === undefined) return;
  if ('types' in step) {
    const typename = value['__typename'];
    if (typeof typename === 'string' && !isOfTypes(following.supergraph, typename, step.types)) return;
    follow(value, depth + 1, following);
  } else if (depth < following.path.length - 1) follow(value[step.key], depth + 1, following);
  else change(value, step.key, following);
}

function change(object: JsonObject, key: string, { renameTo, value }: Rewrite): void {
  if (renameTo !== undefined && Object.hasOwn(object, key)) {
    object[renameTo] = object[key];
    delete object[key];
  }
  if (value !== undefined) object[key] = value;
}
