import type { FastifyRequest } from 'fastify';
import type { FastifySchemaValidationError } from 'fastify/types/schema.js';
import { WORDS } from './patterns.ts';

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

/** Without words of the schema's own: people do not read patterns. */
const OTHER_FORM = 'must have the form that the documentation names';

/**
 * What is wrong with a part of a request, in one sentence, and which values there may be where those
 * can be counted.
 *
 * @param schema in which the faults were found.
 */
export function describeSchemaFaults(
  faults: readonly FastifySchemaValidationError[],
  part: string,
  schema: unknown,
): string {
  const root = parts.find((each) => each.part === part)?.name ?? part;
  const told = fieldsOf(faults, root, schema).map(({ path, message }) => `${path} ${message}`);
  return told.length === 0 ? `${root} is not valid` : told.join(', ');
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
    const schema = request.routeOptions.schema?.[part];
    const faults = faultsIn(validate(value ?? null));
    return fieldsOf(faults, name, schema);
  });
}

/**
 * The fields that faults of TypeBox are about.
 *
 * @param root what their paths begin with.
 * @param schema in which they were found.
 */
export function fieldsOf(
  faults: readonly FastifySchemaValidationError[],
  root: string,
  schema: unknown,
): readonly FieldFault[] {
  return faults.filter((fault) => isNews(fault, faults)).flatMap((fault) => fieldsOfOne(fault, root, schema));
}

/**
 * Whether others do not say it. Of several schemas each has its say: the one whose type the value has says
 * more, and that it might be null is of no use.
 */
function isNews(fault: FastifySchemaValidationError, all: readonly FastifySchemaValidationError[]): boolean {
  const { keyword, instancePath } = fault;
  if (!isOfType(fault) && keyword !== 'anyOf') return true;
  const within = all.filter((other) => `${other.instancePath}/`.startsWith(`${instancePath}/`));
  if (within.some((other) => other.instancePath !== instancePath || saysMore(other))) return false;
  return isOfType(fault) && !isOfNull(fault) ? true : !within.some((other) => isOfType(other) && !isOfNull(other));
}

function isOfType({ keyword }: FastifySchemaValidationError): boolean {
  return keyword === 'type';
}

function isOfNull(fault: FastifySchemaValidationError): boolean {
  return isOfType(fault) && fault.params['type'] === 'null';
}

function saysMore(fault: FastifySchemaValidationError): boolean {
  return !isOfType(fault) && fault.keyword !== 'anyOf';
}

/** @param result of a validator of TypeBox. */
function faultsIn(result: unknown): readonly FastifySchemaValidationError[] {
  if (typeof result !== 'object' || result === null || !('error' in result)) return [];
  return Array.isArray(result.error) ? result.error : [];
}

function fieldsOfOne(fault: FastifySchemaValidationError, root: string, schema: unknown): readonly FieldFault[] {
  const { keyword, instancePath, params } = fault;
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
      return [{ path: at, message: messageOf(fault, schema) }];
  }
}

function messageOf(fault: FastifySchemaValidationError, schema: unknown): string {
  const { keyword, message = 'is not valid' } = fault;
  return keyword === 'pattern' ? wordsOf(fault, schema) : `${message}${allowedBy(fault)}`;
}

/** @returns those that the schema has for its pattern. */
function wordsOf({ schemaPath }: FastifySchemaValidationError, schema: unknown): string {
  const found = schemaPath.split('/').slice(1).reduce(memberOf, schema);
  const words = memberOf(found, WORDS);
  return typeof words === 'string' ? words : OTHER_FORM;
}

function memberOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
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
