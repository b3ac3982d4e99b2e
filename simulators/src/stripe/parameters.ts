import { parse } from 'qs';
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { Value } from 'typebox/value';
import { StripeError, type StripeErrorBody } from './errors.ts';
import type { Metadata } from './objects.ts';

/** Parameters are text, as forms are; these are the texts that are numbers and flags. */
export const Digits = Type.String({ pattern: '^\\d{1,15}$' });
export const Flag = Type.Enum(['true', 'false']);
export const Text = Type.String({ minLength: 1, maxLength: 5000 });
/** At most 50 names of 40 characters and values of 500. */
export const MetadataParameter = Type.Record(Type.String({ maxLength: 40 }), Type.String({ maxLength: 500 }), {
  maxProperties: 50,
});
/** Ids in an answer that become the objects they stand for, such as `payment_intent.latest_charge`. */
export const Expand = Type.Optional(Type.Array(Text));

/** An object of parameters; any other name is refused. */
export function Parameters<Properties extends TProperties>(properties: Properties) {
  return Type.Object(properties, { additionalProperties: false });
}

/** What every list takes; `filters` besides. */
export function ListParameters<Properties extends TProperties>(filters: Properties) {
  const page = { limit: Type.Optional(Digits), starting_after: Type.Optional(Text), expand: Expand };
  return Parameters({ ...page, created: Type.Optional(CreatedRange), ...filters });
}

const CreatedRange = Parameters({
  gt: Type.Optional(Digits),
  gte: Type.Optional(Digits),
  lt: Type.Optional(Digits),
  lte: Type.Optional(Digits),
});

/**
 * Reads a form or a query with names such as `line_items[0][quantity]`.
 *
 * @throws StripeError 400 that names the first fault.
 */
export function readParameters<Schema extends TSchema>(schema: Schema, text: string): Static<Schema> {
  const parameters: unknown = parse(text, { depth: 8, arrayLimit: 100, parameterLimit: 1000 });
  if (Value.Check(schema, parameters)) return parameters;
  const faults = Value.Errors(schema, parameters);
  // The library says of an unknown member first that it is not `false`.
  throw refusal(faults.find(({ keyword }) => keyword === 'additionalProperties') ?? faults[0]);
}

/** Metadata as it is kept. */
export function metadataOf(given: Metadata | undefined): Metadata {
  return { ...given };
}

type Fault = ReturnType<typeof Value.Errors>[number];

function refusal(fault: Fault | undefined): StripeError {
  const path = nameOf(fault?.instancePath ?? '');
  if (fault?.keyword === 'required') {
    const param = nested(path, fault.params.requiredProperties[0]);
    return refuse({ code: 'parameter_missing', message: `Missing required param: ${param}.`, param });
  }
  if (fault?.keyword === 'additionalProperties') {
    const param = nested(path, fault.params.additionalProperties[0]);
    return refuse({ code: 'parameter_unknown', message: `Received unknown parameter: ${param}`, param });
  }
  if (fault?.keyword === 'pattern')
    return refuse({ code: 'parameter_invalid_integer', message: `Invalid integer: ${path}`, param: path });
  return refuse({ message: `Invalid ${path}: ${fault?.message ?? ''}`, param: path });
}

function refuse(fault: Pick<StripeErrorBody, 'code' | 'message' | 'param'>): StripeError {
  return new StripeError(400, { type: 'invalid_request_error', ...fault });
}

/** `/line_items/0/quantity` as `line_items[0][quantity]`. */
function nameOf(pointer: string): string {
  const [first = '', ...rest] = pointer.split('/').slice(1);
  return rest.reduce((name, part) => `${name}[${part}]`, first);
}

function nested(path: string, name = ''): string {
  return path === '' ? name : `${path}[${name}]`;
}
