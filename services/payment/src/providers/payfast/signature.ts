import { createHash, timingSafeEqual } from 'node:crypto';

/** A field of a form or a header, in its order. */
export type Field = readonly [name: string, value: string];

/** PHP's `urlencode`: only `A-Za-z0-9-_.` stay, a space becomes `+`, hexadecimal is upper-case. */
export function phpUrlEncode(text: string): string {
  return encodeURIComponent(text.toWellFormed())
    .replaceAll(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

/** Pure. `name=value&…`, values encoded, in the order given. */
export function encodeFields(fields: readonly Field[]): string {
  return fields.map(([name, value]) => `${name}=${phpUrlEncode(value)}`).join('&');
}

/**
 * Pure. The fields of a checkout as they are posted: trimmed, and those that are empty left out.
 * PayFast's own libraries differ in whether an empty one is signed; so none is sent.
 */
export function presentFields(fields: readonly Field[]): Field[] {
  return fields.map(([name, value]) => [name, value.trim()] as const).filter(([, value]) => value !== '');
}

/**
 * The signature of a form, or of a notification's body: hexadecimal MD5 of the encoded fields in
 * their order, with the passphrase at the end (PayFast, "Custom integration", step 2).
 */
export function signatureOfEncoded(encoded: string, passphrase: string): string {
  return md5(`${encoded}&passphrase=${phpUrlEncode(passphrase.trim())}`);
}

/**
 * The signature of a call to the API: hexadecimal MD5 of headers, query, body and passphrase,
 * sorted by name, without those that are empty (PayFast, API, "Signature generation").
 */
export function apiSignature(fields: readonly Field[], passphrase: string): string {
  const all = presentFields([...fields, ['passphrase', passphrase]]);
  return md5(encodeFields(all.toSorted(([one], [other]) => (one < other ? -1 : 1))));
}

/** Constant in time. */
export function isSameSignature(expected: string, given: string): boolean {
  const [one, other] = [Buffer.from(expected), Buffer.from(given)];
  return one.length === other.length && timingSafeEqual(one, other);
}

// The provider's protocol has MD5, and nothing else.
function md5(text: string): string {
  return createHash('md5').update(text, 'utf8').digest('hex');
}
