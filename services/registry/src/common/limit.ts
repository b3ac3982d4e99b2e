import { RegistryError } from './errors.ts';

const LIMIT_MAX = 1000;
const LIMIT_DEFAULT = 100;
/** {@link parseLimit} as JSON Schema has it. */
export const limitRules = { pattern: '^(?:[1-9][0-9]{0,2}|1000)$' };
const LIMIT = new RegExp(limitRules.pattern);

/**
 * How many entries a query asks for at most.
 *
 * @param text as it stands in the query.
 * @param absent where it says nothing.
 * @throws RegistryError INVALID_REQUEST for anything but an integer from 1 to 1000.
 */
export function parseLimit(text: string | undefined, absent = LIMIT_DEFAULT): number {
  if (text === undefined) return absent;
  if (LIMIT.test(text)) return Number(text);
  throw new RegistryError('INVALID_REQUEST', `limit must be an integer from 1 to ${LIMIT_MAX}`);
}
