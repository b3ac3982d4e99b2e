import { randomFillSync } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { readTraceContext, type TraceContext } from '@rollcall/platform/tracing/trace-context.ts';

/** Of an id that callers may choose for their requests. */
const REQUEST_ID = /^[A-Za-z0-9._~:/+=-]{1,128}$/;
const POOL_BYTES = 4096;
const ID_BYTES = 16;

const pool = Buffer.alloc(POOL_BYTES);
let used = POOL_BYTES;

/** @returns the caller's trace context; undefined where it has none that is valid. */
export function givenTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  return readTraceContext(headers['traceparent'], headers['tracestate']);
}

/** @returns the caller's id of the request, or a new one. */
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
