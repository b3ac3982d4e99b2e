import { isSameSecret } from '@rollcall/platform/webhooks/signatures.ts';

/** Whether a header `Authorization` has this name and password (RFC 7617). */
export function isBasic(header: string | undefined, name: string, password: string): boolean {
  const encoded = /^Basic +([A-Za-z0-9+/]+={0,2})$/i.exec(header ?? '')?.[1];
  return encoded !== undefined && isSameSecret(`${name}:${password}`, Buffer.from(encoded, 'base64').toString('utf8'));
}
