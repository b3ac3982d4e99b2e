import type { IncomingHttpHeaders } from 'node:http';
import { readTraceContext, type TraceContext } from '@rollcall/platform/tracing/trace-context.ts';

/** @returns the caller's trace context; undefined where it has none that is valid. */
export function givenTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  return readTraceContext(headers['traceparent'], headers['tracestate']);
}
