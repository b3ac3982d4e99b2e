import { GatewayError } from '../../errors.ts';

/** What RFC 3986 allows in a path: unreserved, sub-delims, ':', '@', '/', and percent-encodings. */
const PLAIN = /^\/(?:[A-Za-z0-9\-._~!$&'()*+,;=:@/]|%[0-9A-Fa-f]{2})*$/;
/**
 * Encoded slash, backslash or NUL: what some servers read as the character itself, and others not.
 */
const AMBIGUOUS = /%(?:2f|5c|00)/i;
/**
 * Some servers (Tomcat) cut the parameters of a segment before they compare it: `..;x` is one, too.
 */
const DOT_SEGMENT = /(?:^|\/)(?:\.|%2e){1,2}(?:[/;]|%3b|$)/i;

/**
 * Splits a request target (RFC 9112, section 3.2) into path and query. A path that a backend could
 * read differently from the gateway, and so get around a rule for it, is refused and not repaired.
 *
 * @returns `query` with its question mark, or empty.
 * @throws GatewayError INVALID_PATH.
 */
export function splitTarget(target: string): { readonly path: string; readonly query: string } {
  const at = target.indexOf('?');
  const path = at === -1 ? target : target.slice(0, at);
  const fault = pathFault(path);
  if (fault !== undefined) throw new GatewayError('INVALID_PATH', { message: `The path ${fault}` });
  return { path, query: at === -1 ? '' : target.slice(at) };
}

/** What keeps a path from being in its plain form, as the end of a sentence; undefined: nothing. */
export function pathFault(path: string): string | undefined {
  if (!PLAIN.test(path)) return 'has characters that must be percent-encoded';
  if (path.includes('//')) return 'has empty segments';
  if (DOT_SEGMENT.test(path)) return 'has the segments . or ..';
  if (AMBIGUOUS.test(path)) return 'has an encoded slash, backslash or NUL';
  return undefined;
}
