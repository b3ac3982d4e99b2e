import type { IncomingHttpHeaders } from 'node:http';

const PASSED = ['accept-language', 'traceparent', 'tracestate', 'x-request-id'];

/** Pure. The header fields of a request that calls of subgraphs get, whoever calls. */
export function passedHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const name of PASSED) {
    const value = headers[name];
    if (typeof value === 'string') passed[name] = value;
  }
  return passed;
}
