import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** Hexadecimal HMAC-SHA256 of the body's bytes, after `sha256=` (DESIGN section 6). */
export function sign(secret: string, body: string | Buffer): string {
  return `sha256=${createHmac('sha256', secret).update(body).digest('hex')}`;
}

/** Whether the header is the signature of exactly these bytes, with or without `sha256=` before it. Constant in time. */
export function isSignedWith(secret: string, body: Buffer, header: string): boolean {
  const hex = /^(?:sha256=)?([0-9a-f]{64})$/i.exec(header.trim())?.[1];
  if (hex === undefined) return false;
  const expected = createHmac('sha256', secret).update(body).digest();
  return timingSafeEqual(expected, Buffer.from(hex, 'hex'));
}

/** Whether both are the same secret, in a time that tells neither its content nor its length. */
export function isSameSecret(secret: string, given: string): boolean {
  return timingSafeEqual(digest(secret), digest(given));
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}
