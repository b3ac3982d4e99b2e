import type { FastifyRequest } from 'fastify';

/** The bytes that came; none where there was no body. */
export function bytesOf({ body }: Pick<FastifyRequest, 'body'>): Buffer {
  return Buffer.isBuffer(body) ? body : Buffer.alloc(0);
}

/**
 * The fields of a form (application/x-www-form-urlencoded), in the order that came; undefined where
 * the bytes are no UTF-8.
 */
export function formOf(body: Buffer): URLSearchParams | undefined {
  const text = textOf(body);
  return text === undefined ? undefined : new URLSearchParams(text);
}

/** A JSON value; undefined where the bytes are none. */
export function jsonOf(body: Buffer): unknown {
  const text = textOf(body);
  if (text === undefined) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A body as people read it, and rules match it: that of a form without its escapes. */
export function readable(body: Buffer | string, contentType: string | undefined): string {
  const text = typeof body === 'string' ? body : body.toString('utf8');
  if (contentType?.startsWith('application/x-www-form-urlencoded') !== true) return text;
  return [...new URLSearchParams(text)].map(([name, value]) => `${name}=${value}`).join('&');
}

function textOf(body: Buffer): string | undefined {
  try {
    return new TextDecoder('utf8', { fatal: true, ignoreBOM: true }).decode(body);
  } catch {
    return undefined;
  }
}
