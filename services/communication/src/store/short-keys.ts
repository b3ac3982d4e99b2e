import { createHash } from 'node:crypto';

/** Keys of providers are shorter; no index of PostgreSQL takes more than some 2700 bytes. */
const LONGEST_KEY = 200;

/** Pure. A key of a provider as it is stored and looked for: one that is longer is known by its hash. */
export function shortKey(key: string): string {
  return key.length <= LONGEST_KEY ? key : `sha256:${createHash('sha256').update(key).digest('hex')}`;
}
