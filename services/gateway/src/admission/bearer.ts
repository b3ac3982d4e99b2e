import type { IncomingMessage } from 'node:http';
import { hasScope } from '@rollcall/platform/http/scopes.ts';
import { GatewayError } from '../errors.ts';
import { type Caller } from './caller.ts';

/**
 * @returns the access token; undefined: the request has no Authorization header.
 * @throws GatewayError UNAUTHENTICATED for two of them, or one of another scheme.
 */
export function bearerOf({ headers, rawHeaders }: Pick<IncomingMessage, 'headers' | 'rawHeaders'>): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  // Node keeps the first of several; a proxy in front may have used the last.
  const given = rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization');
  const [, token] = /^Bearer +([^\s,]+)$/i.exec(authorization) ?? [];
  if (token === undefined || given.length > 1) throw unauthenticated();
  return token;
}

export function unauthenticated(): GatewayError {
  return new GatewayError('UNAUTHENTICATED', { headers: { 'www-authenticate': 'Bearer realm="rollcall"' } });
}

/**
 * Where anybody may come without a token, what needs a scope still needs one.
 *
 * @throws GatewayError UNAUTHENTICATED, INSUFFICIENT_SCOPE.
 */
export function requireScopes(scopes: readonly string[], caller: Caller | undefined): void {
  if (scopes.length === 0) return;
  if (caller === undefined) throw unauthenticated();
  const missing = scopes.filter((scope) => !hasScope(caller, scope));
  if (missing.length === 0) return;
  throw new GatewayError('INSUFFICIENT_SCOPE', {
    message: `The token lacks the scope ${missing.join(', ')}`,
    headers: { 'www-authenticate': `Bearer error="insufficient_scope", scope="${scopes.join(' ')}"` },
    details: { missing },
  });
}
