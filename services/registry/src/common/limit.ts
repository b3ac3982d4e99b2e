import { RegistryError } from './errors.ts';

const LIMIT_MAX = 1000;

/**
 * How many entries a query asks for at most.
 *
 * @param text as it stands in the query.
 * @returns undefined when absent.
 * @throws RegistryError INVALID_REQUEST for anything but an integer from 1 to 1000.
 */
export function parseLimit(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const limit = /^[1-9]\d{0,3}$/.test(text) ? Number(text) : 0;
  if (limit >= 1 && limit <= LIMIT_MAX) return limit;
  throw new RegistryError('INVALID_REQUEST', `limit must be an integer from 1 to ${LIMIT_MAX}`);
}
