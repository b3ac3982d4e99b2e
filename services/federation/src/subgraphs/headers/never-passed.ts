import { IDENTITY_HEADER_PREFIX } from '@rollcall/platform/http/identity.ts';

/** Of the connection (RFC 9110, section 7.6.1), of the body, and what says who calls, to either side. */
const NEVER = new Set([
  'authorization',
  'connection',
  'cookie',
  'cookie2',
  'expect',
  'host',
  'http2-settings',
  'keep-alive',
  'set-cookie',
  'set-cookie2',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);
const NEVER_BEGINS = [IDENTITY_HEADER_PREFIX, 'content-', 'proxy-', 'sec-'];

/** What federation says itself, what changes how an answer comes, and other paths and methods than those asked for. */
const NEVER_ASKED = new Set([
  'accept',
  'accept-charset',
  'accept-encoding',
  'range',
  'x-http-method',
  'x-http-method-override',
  'x-method-override',
  'x-rewrite-url',
]);
const NEVER_ASKED_BEGINS = ['if-', 'x-original-'];
/** They go with every call, and do not part calls that are equal. */
export const TRACE: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'x-request-id']);

/** What is true of one answer and not of what several become, and what is for the gateway to say. */
const NEVER_ANSWERED = new Set([
  'accept-ranges',
  'age',
  'alt-svc',
  'clear-site-data',
  'date',
  'etag',
  'expires',
  'last-modified',
  'location',
  'refresh',
  'retry-after',
  'strict-transport-security',
  'vary',
  'www-authenticate',
  'x-frame-options',
  'x-sendfile',
]);
/** Proxies on the way to the client do what `x-accel-` says. */
const NEVER_ANSWERED_BEGINS = ['access-control-', 'ratelimit', 'x-accel-', 'x-ratelimit-'];

/** Pure. Whether no service gets it by a rule, whatever the rule says. @param name in lower case. */
export function isNeverAsked(name: string): boolean {
  return isNever(name) || NEVER_ASKED.has(name) || TRACE.has(name) || begins(name, NEVER_ASKED_BEGINS);
}

/** Pure. Whether no client gets it of a service, whatever a rule says. @param name in lower case. */
export function isNeverAnswered(name: string): boolean {
  return isNever(name) || NEVER_ANSWERED.has(name) || TRACE.has(name) || begins(name, NEVER_ANSWERED_BEGINS);
}

/** Many servers (CGI, WSGI) do not distinguish `_` from `-`: with one it may be another name there. */
function isNever(name: string): boolean {
  return name.includes('_') || NEVER.has(name) || begins(name, NEVER_BEGINS);
}

function begins(name: string, prefixes: readonly string[]): boolean {
  return prefixes.some((prefix) => name.startsWith(prefix));
}
