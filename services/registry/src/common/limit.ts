import { RegistryError } from './errors.ts';

const LIMIT_MAX = 1000;
/** {@link parseLimit} as JSON Schema has it. */
export const limitRules = { pattern: '^(?:[1-9][0-9]{0,2}|1000)$' };
const LIMIT = new RegExp(limitRules.pattern);

/**
 * How many entries a query asks for at most.
 *
 * @param text as it stands in the query.
 * @returns undefined when absent.
 * @throws RegistryError INVALID_REQUEST for anything but an integer from 1 to 1000.
 */
export function parseLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (LIMIT.test(text)) return Number(text);
  throw new RegistryError('INVALID_REQUEST', `limit must be an integer from 1 to ${LIMIT_MAX}`);
}
