import type { FastifySchemaValidationError } from 'fastify/types/schema.js';

/**
 * What is wrong with a part of a request, as Fastify says it, and which values there may be where
 * those can be counted.
 */
export function describeSchemaFaults(faults: readonly FastifySchemaValidationError[], part: string): Error {
  return new Error(
    faults.map((fault) => `${part}${fault.instancePath} ${fault.message ?? ''}${allowedBy(fault)}`).join(', '),
  );
}

function allowedBy({ params }: FastifySchemaValidationError): string {
  const { allowedValues, allowedValue } = params;
  const values: readonly unknown[] = Array.isArray(allowedValues) ? allowedValues : [allowedValue];
  const names = values.filter((value) => typeof value === 'string').map((value) => `'${value}'`);
  return names.length === 0 ? '' : `: ${names.join(', ')}`;
}
