import { GatewayError } from '../errors.ts';

/**
 * @param field Authorization; that it comes once only is checked before.
 * @returns the access token; undefined: there is no such field.
 * @throws GatewayError UNAUTHENTICATED for another scheme.
 */
export function bearerToken(field: string | undefined): string | undefined {
  if (field === undefined) return undefined;
  const [, token] = /^Bearer +([^\s,]+)$/i.exec(field) ?? [];
  if (token === undefined) throw unauthenticated();
  return token;
}

export function unauthenticated(): GatewayError {
  return new GatewayError('UNAUTHENTICATED', { headers: { 'www-authenticate': 'Bearer realm="rollcall"' } });
}
