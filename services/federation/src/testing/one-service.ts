import { execute, type GraphQLSchema, parse } from 'graphql/index.js';
import { isObject, type JsonObject } from '../execution/types.ts';
import type { Resolvers } from './subgraph.ts';

type Value = (object: JsonObject, args: JsonObject) => unknown;

/** What each field of each type is, of an object that has nothing but its type and id, and of arguments. */
export type Values = Readonly<Record<string, Readonly<Record<string, Value>>>>;

/** An object is its type and id; all else follows from them, in every subgraph alike. */
export function objectOf(type: string, id: unknown): JsonObject {
  return { __typename: type, id: String(id) };
}

/** Resolvers of a subgraph that has these fields of the types. */
export function resolversOf(values: Values, ...types: readonly (readonly [string, ...string[]])[]): Resolvers {
  return Object.fromEntries(
    types.map(([type, ...fields]) => [
      type,
      Object.fromEntries(
        fields.map((field): [string, Value] => [field, (...asked) => values[type]?.[field]?.(...asked)]),
      ),
    ]),
  );
}

/** What one service that had it all would answer. */
export async function answerOfOneService(schema: GraphQLSchema, query: string, values: Values): Promise<object> {
  const result = await execute({
    schema,
    document: parse(query),
    typeResolver: (object) => (isObject(object) ? String(object['__typename']) : undefined),
    fieldResolver: (...[source, args, , { parentType, fieldName }]) => {
      const object = isObject(source) ? source : {};
      return fieldName === 'id' ? object['id'] : values[parentType.name]?.[fieldName]?.(object, args);
    },
  });
  return JSON.parse(JSON.stringify(result));
}
