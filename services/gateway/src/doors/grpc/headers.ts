import { readTraceContext, type TraceContext } from '@rollcall/platform/tracing/trace-context.ts';
import { isClaim } from '../claims.ts';
import { HOP_BY_HOP } from '../hop-by-hop.ts';
import type { Trailers } from './refusal.ts';

/**
 * Options for node:http2: metadata arrive as they were sent, or the gateway refuses them. By itself
 * Node drops a field without a word where it is repeated, or has white space at an end.
 */
export const lenientFields = { strictSingleValueFields: false, strictFieldWhitespaceValidation: false };

/** The parsed head of a call. */
export interface CallHead {
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  readonly authorization: string | undefined;
  readonly timeout: string | undefined;
  /** The registration that the caller wants, whatever the path says. */
  readonly override: string | undefined;
  /** The caller's `x-request-id`. */
  readonly requestId: string | undefined;
  /** What proxies before this one say of where the call came from. */
  readonly forwardedFor: string | undefined;
  /** The caller's trace; undefined where it names none that is valid. */
  readonly trace: TraceContext | undefined;
  readonly userAgent: string | undefined;
  /** What goes on to the backend as it came: names and values in turn. */
  readonly forwarded: readonly string[];
  /** A header that the gateway reads came several times. */
  readonly repeated: string | undefined;
}

/** Of these several make one value; two of `traceparent` so make none that is valid. */
const JOINED: ReadonlySet<string> = new Set(['traceparent', 'tracestate', 'x-forwarded-for']);

/**
 * Headers that the gateway reads, and does not pass on: it makes its own where the backend needs
 * them. The token is meant for the gateway alone; a backend that had it could act as the caller
 * everywhere else.
 */
const READ: ReadonlySet<string> = new Set([
  ':method',
  ':path',
  'authorization',
  'grpc-timeout',
  'rollcall-service',
  'x-request-id',
  ...JOINED,
]);

/**
 * Of one hop only (RFC 9113, section 8.2.2), or claims that only a proxy in front of a backend can
 * make.
 */
const DROPPED: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  ':authority',
  ':scheme',
  ':protocol',
  'forwarded',
  'host',
  'priority',
]);

/**
 * Of an answer: frames delimit it; one that says another would be a fault of the caller's
 * connection, and not of the service's.
 */
const DROPPED_OF_ANSWERS: ReadonlySet<string> = new Set([...DROPPED, 'content-length']);

/** @param raw names in lower case, as HTTP/2 has them, and values in turn. */
export function readCallHead(raw: readonly string[]): CallHead {
  const read = new Map<string, string>();
  const forwarded: string[] = [];
  let repeated: string | undefined;
  let contentType = '';
  let userAgent: string | undefined;
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    if (READ.has(name)) {
      const before = read.get(name);
      if (before !== undefined && !JOINED.has(name)) repeated = name;
      // White space around a value is no part of it, as in REST.
      const text = value.trim();
      read.set(name, before === undefined ? text : `${before}, ${text}`);
    } else if (!DROPPED.has(name) && !isClaim(name)) {
      if (name === 'content-type') contentType = value;
      if (name === 'user-agent') userAgent = value;
      forwarded.push(name, value);
    }
  }
  return {
    method: read.get(':method') ?? '',
    path: read.get(':path') ?? '',
    contentType,
    authorization: read.get('authorization'),
    timeout: read.get('grpc-timeout'),
    override: read.get('rollcall-service'),
    requestId: read.get('x-request-id'),
    forwardedFor: read.get('x-forwarded-for'),
    trace: readTraceContext(read.get('traceparent'), read.get('tracestate')),
    userAgent,
    forwarded,
    repeated,
  };
}

/** Whether the content type is that of gRPC itself; gRPC-Web is something else. */
export function isGrpc(contentType: string): boolean {
  return /^application\/grpc(?:[+;]|$)/.test(contentType);
}

/** The head of a backend's answer as the caller gets it. @param added by the gateway; it wins. */
export function responseHead(raw: readonly string[], added: Readonly<Record<string, string>>): string[] {
  const head: string[] = [':status', '200'];
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    if (name !== ':status' && !DROPPED_OF_ANSWERS.has(name) && !Object.hasOwn(added, name))
      head.push(name, raw[index + 1] ?? '');
  }
  for (const name in added) head.push(name, added[name] ?? '');
  return head;
}

/**
 * Trailers as they came, but for what is of one hop only. Repeated ones stay apart: not every
 * reader of binary metadata accepts a list.
 */
export function readTrailers(raw: readonly string[]): Trailers {
  const trailers: Trailers = Object.create(null);
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const name = raw[index] ?? '';
    const value = raw[index + 1] ?? '';
    // Node refuses to send it on, by an exception.
    if (DROPPED_OF_ANSWERS.has(name)) continue;
    const known = trailers[name];
    if (known === undefined) trailers[name] = value;
    else trailers[name] = [...(typeof known === 'string' ? [known] : known), value];
  }
  return trailers;
}
