import type { IncomingHttpHeaders } from 'node:http';
import { readTraceContext, type TraceContext, traceIdOf } from '@rollcall/platform/tracing/trace-context.ts';

/** @returns the caller's trace context; undefined where it has none that is valid. */
export function givenTraceContext(headers: IncomingHttpHeaders): TraceContext | undefined {
  return readTraceContext(headers['traceparent'], headers['tracestate']);
}

/** @returns for the log: the trace that a request is traced in, or else the one that its caller names. */
export function traceIdFor(span: { readonly traceId: string } | undefined, given: TraceContext | undefined) {
  return span?.traceId ?? (given === undefined ? undefined : traceIdOf(given.traceparent));
}
