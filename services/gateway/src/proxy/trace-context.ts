import { randomFillSync } from 'node:crypto';

/** W3C Trace Context, section 3.2; ids of all zeros are invalid. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
/** Of an id that callers may choose for their requests. */
const REQUEST_ID = /^[A-Za-z0-9._~:/+=-]{1,128}$/;
const POOL_BYTES = 4096;
const TRACE_BYTES = 16;
const SPAN_BYTES = 8;

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** @returns the caller's trace context; where it has none that is valid, a new one that is not sampled. */
export function traceparentOf(given: string | string[] | undefined): string {
  if (typeof given === 'string' && TRACEPARENT.test(given)) return given;
  return `00-${randomHex(TRACE_BYTES)}-${randomHex(SPAN_BYTES)}-00`;
}

/** @returns the caller's id of the request, or a new one. */
export function requestIdOf(given: string | string[] | undefined): string {
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomHex(TRACE_BYTES);
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
