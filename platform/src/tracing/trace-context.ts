/** The trace that a request belongs to, from the headers of W3C Trace Context. */
export interface TraceContext {
  /** Valid: version 00, ids that are not all zeros. */
  readonly traceparent: string;
  /** As it came: each vendor's own part, in one line. */
  readonly tracestate: string | undefined;
}

/** W3C Trace Context, section 3.2; ids of all zeros are invalid. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/;
const TRACE_ID_AT = 3;
const SPAN_ID_AT = 36;
const FLAGS_AT = 53;

/**
 * @returns undefined where `traceparent` is absent or not valid; `tracestate` is worth nothing then
 * (section 3.3).
 */
export function readTraceContext(
  traceparent: string | string[] | undefined,
  tracestate: string | string[] | undefined,
): TraceContext | undefined {
  if (typeof traceparent !== 'string' || !TRACEPARENT.test(traceparent)) return undefined;
  return { traceparent, tracestate: typeof tracestate === 'string' && tracestate !== '' ? tracestate : undefined };
}

/** @param traceparent a valid one. */
export function traceIdOf(traceparent: string): string {
  return traceparent.slice(TRACE_ID_AT, SPAN_ID_AT - 1);
}

/** @param traceparent a valid one. */
export function spanIdOf(traceparent: string): string {
  return traceparent.slice(SPAN_ID_AT, FLAGS_AT - 1);
}

/** All flags of a valid `traceparent`; the lowest says that the trace is recorded. */
export function traceFlagsOf(traceparent: string): number {
  return Number.parseInt(traceparent.slice(FLAGS_AT), 16);
}

/** @param isSampled whether whoever writes it records the trace. */
export function formatTraceparent(traceId: string, spanId: string, isSampled: boolean): string {
  return `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;
}
