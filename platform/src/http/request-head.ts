import type { IncomingMessage } from 'node:http';
import { isIPv6 } from 'node:net';

type RequestHead = Pick<IncomingMessage, 'rawHeaders' | 'httpVersionMajor' | 'httpVersionMinor'>;

/**
 * Fields that say what a request is, whose it is or what it wants, and have one value. Of two, Node
 * keeps the first; a proxy in between may have decided by the other.
 */
const SINGLE_FIELDS: ReadonlySet<string> = new Set([
  'host',
  'authorization',
  'proxy-authorization',
  'content-type',
  'content-length',
  'content-range',
  'range',
  'if-range',
  'if-modified-since',
  'if-unmodified-since',
  'max-forwards',
  'origin',
  'last-event-id',
]);

/** `uri-host [ ":" port ]` (RFC 9110, section 7.2), an address of IPv6 in brackets. */
const AUTHORITY = /^(?:\[([0-9A-Fa-f:.]+)\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})*)(?::(\d*))?$/;
const MAX_PORT = 65_535;
/**
 * What a request target may be made of (RFC 3986); characters beyond it are to be percent-encoded.
 */
const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
const MALFORMED_ENCODING = /%(?![0-9A-Fa-f]{2})/g;

/**
 * What is wrong with the header fields of a request, whatever it asks for (RFC 9110, section 5.3;
 * RFC 9112, section 3.2), as a sentence; undefined: nothing.
 */
export function headerFault({ rawHeaders, httpVersionMajor, httpVersionMinor }: RequestHead): string | undefined {
  const seen: string[] = [];
  let host: string | undefined;
  for (let index = 0; index < rawHeaders.length; index += 2) {
    const name = (rawHeaders[index] ?? '').toLowerCase();
    if (!SINGLE_FIELDS.has(name)) continue;
    if (seen.includes(name)) return `The header field ${name} may be given only once`;
    seen.push(name);
    if (name === 'host') host = rawHeaders[index + 1] ?? '';
  }
  if (host === undefined) {
    const isNeeded = httpVersionMajor === 1 && httpVersionMinor === 1;
    return isNeeded ? 'A request of HTTP/1.1 must have the header field host' : undefined;
  }
  return isAuthority(host.trim())
    ? undefined
    : 'The header field host must be a host name or address, and a port if any';
}

function isAuthority(text: string): boolean {
  const [matched, ipv6, port = ''] = AUTHORITY.exec(text) ?? [];
  return matched !== undefined && (ipv6 === undefined || isIPv6(ipv6)) && Number(port) <= MAX_PORT;
}

/**
 * Whether a path or a form is as RFC 3986 has it and every percent-encoding in it is a part of a
 * character of UTF-8.
 */
export function isDecodable(text: string): boolean {
  if (!VISIBLE_ASCII.test(text)) return false;
  if (!text.includes('%')) return true;
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * As {@link isDecodable}. A percent sign that begins no encoding stands for itself, as browsers
 * have it (WHATWG URL).
 */
export function isDecodableQuery(query: string): boolean {
  return isDecodable(query.replaceAll(MALFORMED_ENCODING, '%25'));
}
