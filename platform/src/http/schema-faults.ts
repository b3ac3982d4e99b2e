import type { FastifyRequest } from 'fastify';
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';

/** One thing that is wrong with a request. */
export interface FieldFault {
  /** The part of the request, then a JSON pointer (RFC 6901) in it, such as `body/items/0/amount`. */
  readonly path: string;
  readonly message: string;
}

/** So many faults of a part are found; who makes more will find the others later. */
export const MOST_FAULTS = 100;
/** Of what a caller has sent, in an answer. */
const LONGEST_NAME = 64;

/** As Fastify calls the parts of a request, and as faults do. */
const parts = [
  { part: 'params', name: 'path' },
  { part: 'querystring', name: 'query' },
  { part: 'headers', name: 'headers' },
  { part: 'body', name: 'body' },
] as const;

/**
 * What is wrong with a part of a request, as Fastify says it, and which values there may be where
 * those can be counted.
 */
export function describeSchemaFaults(faults: readonly FastifySchemaValidationError[], part: string): Error {
  return new Error(
    faults.map((fault) => `${part}${fault.instancePath} ${fault.message ?? ''}${allowedBy(fault)}`).join(', '),
  );
}

/**
 * Everything that is wrong with a request by the schemas of its route. Fastify stops at the first
 * part with a fault: the others are looked at here, so that who calls hears of all at once.
 */
export function fieldFaults(request: FastifyRequest): readonly FieldFault[] {
  return parts.flatMap(({ part, name }) => {
    const validate: unknown = request.getValidationFunction(part);
    if (typeof validate !== 'function') return [];
    const value: unknown = part === 'querystring' ? request.query : request[part];
    return faultsIn(validate(value ?? null)).flatMap((fault) => fieldsOf(fault, name));
  });
}

/** @param result of a validator of TypeBox. */
function faultsIn(result: unknown): readonly FastifySchemaValidationError[] {
  if (typeof result !== 'object' || result === null || !('error' in result)) return [];
  return Array.isArray(result.error) ? result.error : [];
}

/**
 * The fields that a fault of TypeBox is about.
 *
 * @param root what their paths begin with.
 */
export function fieldsOf(fault: FastifySchemaValidationError, root: string): readonly FieldFault[] {
  const { keyword, instancePath, params, message = 'is not valid' } = fault;
  const at = `${root}${instancePath}`;
  const below = (names: unknown, what: string) =>
    Array.isArray(names) ? names.map((name) => ({ path: `${at}/${pointerOf(name)}`, message: what })) : [];
  switch (keyword) {
    case 'required':
      return below(params['requiredProperties'], 'is required');
    case 'additionalProperties':
      return below(params['additionalProperties'], 'is not known');
    case 'boolean':
      // Says again of each member that is not known that no schema allows it.
      return [];
    default:
      return [{ path: at, message: `${message}${allowedBy(fault)}` }];
  }
}

function pointerOf(name: unknown): string {
  return String(name).slice(0, LONGEST_NAME).replaceAll('~', '~0').replaceAll('/', '~1');
}

function allowedBy({ params }: FastifySchemaValidationError): string {
  const { allowedValues, allowedValue } = params;
  const values: readonly unknown[] = Array.isArray(allowedValues) ? allowedValues : [allowedValue];
  const names = values.filter((value) => typeof value === 'string').map((value) => `'${value}'`);
  return names.length === 0 ? '' : `: ${names.join(', ')}`;
}
