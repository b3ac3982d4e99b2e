import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

const STANDARD_PREFIX = 'whsec_';
/** Shorter ones are no keys of Standard Webhooks but words that happen to be base64. */
const STANDARD_KEY_MIN_BYTES = 24;

/** Hexadecimal HMAC-SHA256 of the body's bytes, after `sha256=` (DESIGN section 6). */
export function sign(secret: string, body: string | Buffer): string {
  return `sha256=${macOf(secret, [body]).toString('hex')}`;
}

/**
 * Whether one of the signatures in the header, separated by spaces, is that of exactly these bytes, with or without `sha256=`
 * before it. Several are sent while secrets are rotated. Constant in time.
 */
export function isSignedWith(secret: string, body: Buffer, header: string): boolean {
  const expected = macOf(secret, [body]);
  const given = header.trim().split(/\s+/);
  return anyEquals(expected, given, (signature) => {
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
 * The header `webhook-signature` of Standard Webhooks: `v1,` and the base64 of the HMAC-SHA256 of `id.timestamp.body`; two of
 * them, separated by a space, where the receiver may take the secret for either of two keys.
 */
export function signStandard(secret: string, message: StandardMessage): string {
  return standardKeys(secret)
    .map((key) => `v1,${macOf(key, standardParts(message)).toString('base64')}`)
    .join(' ');
}

/** Whether one of the header's `v1` signatures is that of the message, by one of the secret's keys. Constant in time. */
export function isStandardSignedWith(secret: string, message: StandardMessage, header: string): boolean {
  const given = header.trim().split(/\s+/);
  let found = false;
  for (const key of standardKeys(secret)) {
    const expected = macOf(key, standardParts(message));
    const matches = anyEquals(expected, given, (signature) => {
      const base64 = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(signature)?.[1];
      return base64 === undefined ? undefined : Buffer.from(base64, 'base64');
    });
    found = matches || found;
  }
  return found;
}

/**
 * The keys that a secret stands for in Standard Webhooks: what is base64 after `whsec_`; the bytes of the text for any other,
 * and before them what it is in base64, where it is long enough to be meant so.
 */
function standardKeys(secret: string): (string | Buffer)[] {
  const prefixed = secret.startsWith(STANDARD_PREFIX);
  const text = prefixed ? secret.slice(STANDARD_PREFIX.length) : secret;
  const key = Buffer.from(text, 'base64');
  const isBase64 = key.toString('base64').replace(/=+$/, '') === text.replace(/=+$/, '');
  if (!isBase64 || key.length < (prefixed ? 1 : STANDARD_KEY_MIN_BYTES)) return [secret];
  return prefixed ? [key] : [key, secret];
}

/** Whether both are the same secret, in a time that tells neither its content nor its length. */
export function isSameSecret(secret: string, given: string): boolean {
  return timingSafeEqual(digestOf(secret), digestOf(given));
}

/** HMAC-SHA256 of the parts, one after another. */
function macOf(key: string | Buffer, parts: readonly (string | Buffer)[]): Buffer {
  const mac = createHmac('sha256', key);
  for (const part of parts) mac.update(part);
  return mac.digest();
}

function digestOf(text: string): Buffer {
  return createHash('sha256').update(text).digest();
}

function standardParts({ id, timestamp, body }: StandardMessage): (string | Buffer)[] {
  return [`${id}.${timestamp}.`, body];
}

function anyEquals(
  expected: Buffer,
  given: readonly string[],
  parse: (signature: string) => Buffer | undefined,
): boolean {
  let found = false;
  for (const signature of given) {
    const bytes = parse(signature);
    found = (bytes !== undefined && timingSafeEqual(expected, bytes)) || found;
  }
  return found;
}
