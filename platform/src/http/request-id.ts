import { randomFillSync } from 'node:crypto';

/** The header of a request and of its answer that names both. */
export const REQUEST_ID_HEADER = 'x-request-id';

/** Of an id that callers may choose for their requests: it goes into logs, and to other services. */
const REQUEST_ID = /^[A-Za-z0-9._~:/+=-]{1,128}$/;
const POOL_BYTES = 4096;
const ID_BYTES = 16;

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** @returns the caller's id of the request; a new one where it has none, or one that may not be. */
export function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomHex(ID_BYTES);
}

/** Random bytes are made in bulk: one call for each id would cost several microseconds. */
function randomHex(bytes: number): string {
  if (used + bytes > POOL_BYTES) {
    randomFillSync(pool);
    used = 0;
  }
  used += bytes;
  return pool.toString('hex', used - bytes, used);
}
