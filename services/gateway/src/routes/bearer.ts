import type { FastifyRequest } from 'fastify';
import { GatewayError } from '../errors.ts';

/**
 * @returns the access token; undefined: the request has no Authorization header.
 * @throws GatewayError UNAUTHENTICATED for two of them, or one of another scheme.
 */
export function bearerOf({ headers, raw }: Pick<FastifyRequest, 'headers' | 'raw'>): string | undefined {
  const { authorization } = headers;
  if (authorization === undefined) return undefined;
  // Node keeps the first of several; a proxy before us may have looked at the last.
  const given = raw.rawHeaders.filter((name, index) => index % 2 === 0 && name.toLowerCase() === 'authorization');
  const [, token] = /^Bearer +([^\s,]+)$/i.exec(authorization) ?? [];
  if (token === undefined || given.length > 1) throw unauthenticated();
  return token;
}

export function unauthenticated(): GatewayError {
  return new GatewayError('UNAUTHENTICATED', { headers: { 'www-authenticate': 'Bearer realm="rollcall"' } });
}
