import type { Static, TSchema } from 'typebox';
import { Value } from 'typebox/value';
import { invalidRequest } from '../common-errors.ts';
import { fieldsOf } from '../http/schema-faults.ts';

/**
 * The input of a mutation, by the schema that the body has over REST. A member that is null is as
 * one that is not there.
 *
 * @throws ServiceError INVALID_REQUEST with each fault.
 */
export function checkedInput<Schema extends TSchema>(schema: Schema, input: unknown): Static<Schema> {
  const given: unknown = typeof input === 'object' && input !== null ? withoutNulls(input) : input;
  if (Value.Check(schema, given)) return given;
  throw invalidRequest(fieldsOf(Value.Errors(schema, given), 'input', schema));
}

/**
 * The arguments of a list, by the schema that its query has over REST, where numbers are texts.
 *
 * @throws ServiceError INVALID_REQUEST with each fault.
 */
export function checkedArguments<Schema extends TSchema>(schema: Schema, args: object): Static<Schema> {
  const texts = Object.entries(args).map(([name, value]: [string, unknown]) => [
    name,
    typeof value === 'number' ? String(value) : value,
  ]);
  return checkedInput(schema, Object.fromEntries(texts));
}

function withoutNulls(input: object): object {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== null));
}
