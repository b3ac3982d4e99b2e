import { IDENTITY_HEADER_PREFIX } from '@rollcall/platform/http/identity.ts';

/**
 * What frameworks believe of who calls, and of another path or method than the one that was let in.
 */
const CLAIMS = new Set(['x-real-ip', 'x-rewrite-url', 'x-http-method', 'x-http-method-override', 'x-method-override']);
const CLAIM_PREFIXES = [IDENTITY_HEADER_PREFIX, 'x-forwarded-', 'x-original-'];

/**
 * Whether a header is one that services believe because only the gateway sends it.
 *
 * @param name in lower case.
 */
export function isClaim(name: string): boolean {
  if (!name.startsWith('x')) return false;
  const plain = withDashes(name);
  return CLAIMS.has(plain) || CLAIM_PREFIXES.some((prefix) => plain.startsWith(prefix));
}

/** Many servers (CGI, WSGI) do not distinguish `_` from `-`. */
export function withDashes(name: string): string {
  return name.includes('_') ? name.replaceAll('_', '-') : name;
}
