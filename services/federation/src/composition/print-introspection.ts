import { buildClientSchema, type IntrospectionQuery, printSchema } from 'graphql/index.js';

/**
 * Pure. The SDL of a schema without Federation, as the answer to the introspection query has it.
 *
 * @param answer JSON. @throws Error where it is no such answer.
 */
export function printIntrospection(answer: string): string {
  const { data }: { readonly data?: IntrospectionQuery | null } = JSON.parse(answer);
  if (data === undefined || data === null) throw new Error('The answer has no data');
  return printSchema(buildClientSchema(data));
}
