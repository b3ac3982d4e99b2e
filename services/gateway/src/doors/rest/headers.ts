import { identityHeaders } from '@rollcall/platform/http/identity.ts';
import type { RequestOrigin } from '@rollcall/platform/http/request-spans.ts';
import type { TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import { isClaim, withDashes } from '../claims.ts';
import { HOP_BY_HOP } from '../hop-by-hop.ts';
import type { ForwardedOrigin } from '../request-origin.ts';

/** Names and values in turn, as they are on the wire. */
export type RawHeaders = readonly string[];

/**
 * Not passed on to a service, besides claims: what this gateway makes anew; `expect`, which it has
 * answered; and `authorization`, because with a caller's access token every registered service
 * could act as the caller.
 */
const OWN = new Set(['host', 'expect', 'authorization', 'forwarded', 'x-request-id', 'traceparent', 'tracestate']);

/** What the gateway says of a request besides its own headers. */
export interface ForwardedRequest extends ForwardedOrigin {
  readonly requestId: string;
  /** By whose name the request was let in. */
  readonly service: string;
  /** Of who calls; empty: nobody had to say. */
  readonly identity: RawHeaders;
}

/**
 * The headers of a request as a service gets them.
 *
 * @param trace the service's part in it begins below; undefined: the service may begin one, as it
 * sees fit.
 */
export function requestHeaders(
  raw: RawHeaders,
  forwarded: ForwardedRequest,
  trace: TraceContext | undefined,
): string[] {
  const named = namedInConnection(raw);
  const headers: string[] = [];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name = '', value = ''] = [raw[index], raw[index + 1]];
    const lower = name.toLowerCase();
    if (HOP_BY_HOP.has(lower) || isOwn(lower)) continue;
    if (named?.has(lower) === true) continue;
    headers.push(lower, value);
  }
  const { clientAddress, forwardedFor, protocol, host, requestId, service, identity } = forwarded;
  headers.push('x-forwarded-for', forwardedFor, 'x-forwarded-proto', protocol, 'x-real-ip', clientAddress);
  if (host !== '') headers.push('x-forwarded-host', host);
  headers.push('forwarded', forwardedElement({ clientAddress, protocol, host }));
  headers.push('x-request-id', requestId, identityHeaders.service, encodeURIComponent(service), ...identity);
  if (saysTrailers(raw)) headers.push('te', 'trailers');
  if (trace !== undefined) headers.push('traceparent', trace.traceparent);
  if (trace?.tracestate !== undefined) headers.push('tracestate', trace.tracestate);
  return headers;
}

function isOwn(lower: string): boolean {
  return OWN.has(withDashes(lower)) || isClaim(lower);
}

function saysTrailers(raw: RawHeaders): boolean {
  return raw.some((value, index) => raw[index - 1]?.toLowerCase() === 'te' && index % 2 === 1 && TRAILERS.test(value));
}

/** Whether a caller has said that it reads trailers (RFC 9110, section 10.1.4). */
export function acceptsTrailers(te: string | readonly string[] = ''): boolean {
  return TRAILERS.test(te.toString());
}

/** How an answer is read and who may read it is said before its body (RFC 9110, section 6.5.1). */
const NEVER_TRAILERS =
  /^(?:content-|cache-|access-control-|set-cookie|age|date|expires|host|location|retry-after|vary|www-auth)/;

/**
 * An answer's trailers as the caller gets them.
 *
 * @param added headers of the gateway's own, which no trailer may change.
 */
export function responseTrailers(
  upstream: Readonly<Record<string, string | readonly string[] | undefined>>,
  added: Readonly<Record<string, unknown>>,
): [string, string][] {
  return Object.entries(upstream).flatMap(([name, value]) => {
    const isLeftOut = HOP_BY_HOP.has(name) || name in added || NEVER_TRAILERS.test(name);
    return value === undefined || isLeftOut ? [] : [value].flat().map((each): [string, string] => [name, each]);
  });
}

const TRAILERS = /(?:^|,)\s*trailers\s*(?:,|$)/i;
const NO_CONTENT = 204;
/** Its body has no bytes, and says so (RFC 9110, section 15.3.6). */
export const RESET_CONTENT = 205;
/** Lists to which both may add. */
const JOINED = new Set(['vary', 'access-control-expose-headers']);
/** Lists of limits (draft-ietf-httpapi-ratelimit-headers): a service may have others than the gateway. */
const LIMITS = new Set(['ratelimit', 'ratelimit-policy']);
const ONE_LIMIT = 'x-ratelimit-';
const TOO_MANY_REQUESTS = 429;

/**
 * An answer's headers as the caller gets them, for `writeHead`. Which pages may read it is for one
 * to say: where the gateway does, for which it adds `vary`, the service does not, but for which of
 * its own headers they may see. Where a service refuses by a limit of its own, that is the one told.
 */
export function responseHeaders(
  status: number,
  upstream: Readonly<Record<string, string | readonly string[] | undefined>>,
  added: Readonly<Record<string, number | string | readonly string[] | undefined>>,
): (string | string[])[] {
  const connection = upstream['connection'];
  const named = connection === undefined ? undefined : namesIn([connection].flat().join(','));
  const headers: (string | string[])[] = [];
  const saysWhoReads = 'vary' in added;
  for (const name in upstream) {
    const value = upstream[name];
    if (value === undefined || HOP_BY_HOP.has(name) || named?.has(name) === true) continue;
    if (name === 'content-length' && !mayHaveLength(status, upstream)) continue;
    const isReplaced = name in added || (saysWhoReads && name.startsWith('access-control-'));
    if (isReplaced && !isBeside(status, name) && !(saysWhoReads && JOINED.has(name))) continue;
    headers.push(name, typeof value === 'string' ? value : [...value]);
  }
  for (const name in added) {
    const value = added[name];
    if (value === undefined || (isOfLimitReached(status, name) && name in upstream)) continue;
    headers.push(name, typeof value === 'object' ? [...value] : String(value));
  }
  if (status === RESET_CONTENT) headers.push('content-length', '0');
  return headers;
}

function isBeside(status: number, name: string): boolean {
  return LIMITS.has(name) || isOfLimitReached(status, name);
}

/** Of `X-RateLimit-*`, which have one limit: the service's, where that is the one that is used up. */
function isOfLimitReached(status: number, name: string): boolean {
  return status === TOO_MANY_REQUESTS && name.startsWith(ONE_LIMIT);
}

/**
 * Whether an answer may say how long its body is: not where it must have none (RFC 9110, section
 * 8.6), nor where its coding says otherwise (RFC 9112, section 6.3). To HEAD, and with 304, it is
 * the length that another answer would have.
 */
function mayHaveLength(status: number, upstream: Readonly<Record<string, unknown>>): boolean {
  return status !== NO_CONTENT && status !== RESET_CONTENT && !('transfer-encoding' in upstream);
}

function namedInConnection(raw: RawHeaders): ReadonlySet<string> | undefined {
  let names: Set<string> | undefined;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name = '', value = ''] = [raw[index], raw[index + 1]];
    if (name.length !== 'connection'.length || name.toLowerCase() !== 'connection') continue;
    if (value === 'keep-alive' || value === 'close') continue;
    names ??= new Set();
    for (const each of namesIn(value)) names.add(each);
  }
  return names;
}

function namesIn(value: string): ReadonlySet<string> {
  return new Set(value.split(',').map((name) => name.trim().toLowerCase()));
}

/** RFC 7239: an IPv6 address is bracketed, and what is no token is quoted. */
function forwardedElement({ clientAddress, protocol, host }: RequestOrigin) {
  const node = clientAddress.includes(':') ? `"[${clientAddress}]"` : clientAddress;
  const quotedHost = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/.test(host) ? host : `"${host.replaceAll(/["\\]/g, '')}"`;
  return host === '' ? `for=${node};proto=${protocol}` : `for=${node};host=${quotedHost};proto=${protocol}`;
}
