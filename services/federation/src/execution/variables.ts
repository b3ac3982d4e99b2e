import { type GraphQLSchema, getVariableValues, type OperationDefinitionNode } from 'graphql/index.js';
import { type Refused, refusals, requestError } from './errors.ts';
import { isObject, type JsonObject } from './types.ts';

/** Lists and objects one in another. What recurses through them uses a stack that is not without end. */
const MOST_DEPTH = 32;

/** Faults that are told at once. */
const MOST_FAULTS = 50;

/** Pure. The values of an operation's variables, each of its type. */
export function coerced(
  { variableDefinitions = [] }: OperationDefinitionNode,
  given: Readonly<JsonObject>,
  schema: GraphQLSchema,
): Refused | { readonly values: Readonly<JsonObject> } {
  if (Object.values(given).some((value) => isDeeper(value, MOST_DEPTH))) {
    const message = `A variable has more than ${MOST_DEPTH} levels of lists and objects`;
    return refusals([{ message, extensions: { code: 'VARIABLE_LIMIT_EXCEEDED', limit: MOST_DEPTH } }]);
  }
  const { errors, coerced: values } = getVariableValues(schema, variableDefinitions, given, { maxErrors: MOST_FAULTS });
  return errors === undefined ? { values } : { errors: errors.map(requestError) };
}

function isDeeper(value: unknown, most: number): boolean {
  if (!Array.isArray(value) && !isObject(value)) return false;
  return most === 0 || Object.values(value).some((within) => isDeeper(within, most - 1));
}
