import type { IncomingMessage } from 'node:http';

/**
 * A host of RFC 3986 with or without a port, and whatever follows. User information is no part of
 * it.
 */
const ABSOLUTE = /^https?:\/\/((?:\[[0-9a-f:.]+\]|[\w.~!$&'()*+,;=%-]+)(?::\d{0,5})?)([/?].*)?$/i;

/**
 * Turns the absolute form of a request target into that of the origin, as every server must (RFC
 * 9112, section 3.2.2); its authority replaces the Host field. Every other form stays as it is.
 *
 * @returns the target.
 */
export function toOriginForm(request: Pick<IncomingMessage, 'url' | 'headers'>): string {
  const { url = '' } = request;
  if (url.startsWith('/')) return url;
  const [, authority, rest = '/'] = ABSOLUTE.exec(url) ?? [];
  if (authority === undefined) return url;
  request.url = rest.startsWith('/') ? rest : `/${rest}`;
  request.headers.host = authority;
  return request.url;
}

/** What is wrong with a request target that is none of a path; undefined: nothing. */
export function targetFault(target: string): string | undefined {
  if (target.startsWith('/')) return undefined;
  const shown =
    target === '*' ? 'The request target * asks for no path' : 'The request target is neither a path nor a URL';
  return `${shown}: name a path that begins with /, or a URL http://host/path`;
}
