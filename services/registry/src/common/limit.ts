import { RegistryError } from './errors.ts';

const LIMIT_MAX = 1000;
const LIMIT_DEFAULT = 100;
/** {@link parseLimit} as JSON Schema has it. */
export const limitRules = { pattern: '^(?:[1-9][0-9]{0,2}|1000)$' };
const LIMIT = new RegExp(limitRules.pattern);

const CURSOR_MAX_LENGTH = 1400;
/** Of a cursor: a name in base64url. */
export const cursorRules = { pattern: '^[A-Za-z0-9_-]+$', maxLength: CURSOR_MAX_LENGTH };
const CURSOR = new RegExp(cursorRules.pattern);

/**
 * @returns the last name of the page before.
 * @throws RegistryError INVALID_REQUEST for what is no cursor.
 */
export function parseCursor(text: string): string {
  if (text.length <= CURSOR_MAX_LENGTH && CURSOR.test(text)) return Buffer.from(text, 'base64url').toString();
  throw new RegistryError('INVALID_REQUEST', 'cursor must be the next_cursor of the page before');
}

/** @returns what {@link parseCursor} reads. */
export function cursorAfter(serviceName: string): string {
  return Buffer.from(serviceName).toString('base64url');
}

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
