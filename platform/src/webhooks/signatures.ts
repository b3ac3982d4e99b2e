import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { Webhook } from 'standardwebhooks';

const STANDARD_PREFIX = 'whsec_';
/** Shorter ones are no keys of Standard Webhooks but words that happen to be base64. */
const STANDARD_KEY_MIN_BYTES = 24;

/** What a signature covers, part after part. */
export type Signed = string | Buffer | readonly (string | Buffer)[];

/** A call of the registry's webhooks as its signature covers it. */
export interface SignedCall {
  /** Unix seconds, as they stand in the header. */
  readonly timestamp: string;
  /** Canonical path of the operation, such as `/api/v1/webhooks/deploy`. */
  readonly path: string;
  readonly body: string | Buffer;
}

/** Hexadecimal HMAC-SHA256 of the bytes, after `sha256=`. */
export function sign(secret: string, signed: Signed): string {
  return `sha256=${macOf(secret, signed).toString('hex')}`;
}

/**
 * What is signed where a timestamp is sent: `<timestamp>.<path>.<body>`. No path holds `{`, so no
 * two calls are alike.
 */
export function callParts({ timestamp, path, body }: SignedCall): Signed {
  return [`${timestamp}.${path}.`, body];
}

/**
 * Whether one of the signatures in the header, separated by spaces, is that of exactly these bytes,
 * with or without `sha256=` before it. Several are sent while secrets are rotated. Constant in
 * time.
 */
export function isSignedWith(secret: string, signed: Signed, header: string): boolean {
  const expected = macOf(secret, signed);
  return anyEquals(expected, header, (signature) => {
    const hex = /^(?:sha256=)?([0-9a-f]{64})$/i.exec(signature)?.[1];
    return hex === undefined ? undefined : Buffer.from(hex, 'hex');
  });
}

/** What Standard Webhooks signs: the headers `webhook-id` and `webhook-timestamp`, and the body. */
export interface StandardMessage {
  readonly id: string;
  /** Unix seconds, as they stand in the header. */
  readonly timestamp: string;
  readonly body: string | Buffer;
}

/**
 * The header `webhook-signature` of Standard Webhooks; two, by a space, where the receiver may read
 * the secret as either of two keys.
 */
export function signStandard(secret: string, message: StandardMessage): string {
  return standardSignatures(secret, message).join(' ');
}

/**
 * Whether one of the header's signatures is that of the message, by one of the secret's keys.
 * Constant in time. How old the message may be is for the caller to judge.
 */
export function isStandardSignedWith(secret: string, message: StandardMessage, header: string): boolean {
  const matches = standardSignatures(secret, message).map((expected) =>
    anyEquals(Buffer.from(expected), header, (signature) => Buffer.from(signature)),
  );
  return matches.includes(true);
}

function standardSignatures(secret: string, { id, timestamp, body }: StandardMessage): string[] {
  const at = new Date(Number(timestamp) * 1000);
  return standardKeys(secret).map((key) => new Webhook(key, { format: 'raw' }).sign(id, at, body));
}

/**
 * The keys that a secret stands for in Standard Webhooks: what is base64 after `whsec_`; the bytes
 * of the text for any other, and before them what it is in base64, where it is long enough to be
 * meant so.
 */
function standardKeys(secret: string): Buffer[] {
  const prefixed = secret.startsWith(STANDARD_PREFIX);
  const text = prefixed ? secret.slice(STANDARD_PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (!isBase64 || key.length < (prefixed ? 1 : STANDARD_KEY_MIN_BYTES)) return [Buffer.from(secret)];
  return prefixed ? [key] : [key, Buffer.from(secret)];
}

/** Whether both are the same secret, in a time that shows neither its content nor its length. */
export function isSameSecret(secret: string, given: string): boolean {
  return timingSafeEqual(digestOf(secret), digestOf(given));
}

/** HMAC-SHA256 of the parts, one after another. */
function macOf(key: string, signed: Signed): Buffer {
  const mac = createHmac('sha256', key);
  for (const part of typeof signed === 'string' || Buffer.isBuffer(signed) ? [signed] : signed) mac.update(part);
  return mac.digest();
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

/** Every one of them is compared, whichever is right. */
function anyEquals(expected: Buffer, header: string, parse: (signature: string) => Buffer | undefined): boolean {
  let found = false;
  for (const signature of header.trim().split(/\s+/)) {
    const bytes = parse(signature);
    found = (bytes?.length === expected.length && timingSafeEqual(expected, bytes)) || found;
  }
  return found;
}
