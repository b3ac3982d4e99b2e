import type { IncomingHttpHeaders } from 'node:http';
import { IDENTITY_HEADER_PREFIX } from '@rollcall/platform/http/identity.ts';

/** Whatever the caller shows. */
const ALWAYS = ['accept-language', 'traceparent', 'tracestate', 'x-request-id'];

/**
 * Pure. The header fields of a request that calls of subgraphs get.
 *
 * @param isKnown whether what the caller shows holds: nobody gets an identity from here that was not checked.
 */
export function passedHeaders(headers: IncomingHttpHeaders, isKnown: boolean): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isOfCaller = name === 'authorization' || name.startsWith(IDENTITY_HEADER_PREFIX);
    if (typeof value === 'string' && (ALWAYS.includes(name) || (isKnown && isOfCaller))) passed[name] = value;
  }
  return passed;
}
