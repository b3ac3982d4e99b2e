import { createHash } from 'node:crypto';

/** A name and its value, as they were posted. */
export type Field = readonly [name: string, value: string];

/** Fields of the form in the order in which they are signed (payfast-php-sdk 1.1.6, lib/Auth.php). */
const SIGNING_ORDER = [
  'merchant_id',
  'merchant_key',
  'return_url',
  'cancel_url',
  'notify_url',
  'fica_idnumber',
  'notify_method',
  'name_first',
  'name_last',
  'email_address',
  'cell_number',
  'm_payment_id',
  'amount',
  'item_name',
  'item_description',
  'custom_int1',
  'custom_int2',
  'custom_int3',
  'custom_int4',
  'custom_int5',
  'custom_str1',
  'custom_str2',
  'custom_str3',
  'custom_str4',
  'custom_str5',
  'email_confirmation',
  'confirmation_address',
  'currency',
  'payment_method',
  'subscription_type',
  'billing_date',
  'recurring_amount',
  'frequency',
  'cycles',
  'subscription_notify_email',
  'subscription_notify_webhook',
  'subscription_notify_buyer',
];

/** Fields that are posted and not signed (the SDK; WooCommerce's plugin). */
const UNSIGNED = ['setup', 'source', 'signature'];

/** All that a form may have. */
export const FORM_FIELDS: ReadonlySet<string> = new Set([...SIGNING_ORDER, ...UNSIGNED]);

/**
 * PHP's `urlencode`: letters, digits, `-`, `_` and `.` stay, a space is `+`, and every other byte
 * is `%XX` in upper case.
 */
export function urlencode(text: string): string {
  return encodeURIComponent(text)
    .replace(/[!'()*~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll('%20', '+');
}

/** Fields as PayFast writes and signs them. */
export function encodeFields(fields: readonly Field[]): string {
  return fields.map(([name, value]) => `${name}=${urlencode(value)}`).join('&');
}

/** The signature of a notification: of all its fields as they stand, blank ones too. */
export function signFields(fields: readonly Field[], passphrase: string | undefined): string {
  const signed = passphrase === undefined ? fields : [...fields, ['passphrase', passphrase.trim()] as const];
  return md5(encodeFields(signed));
}

/**
 * The signatures that a form may have. Whether PayFast signs a value of `0` is not documented, and
 * its two libraries differ: both are accepted.
 */
export function formSignatures(fields: readonly Field[], passphrase: string | undefined): readonly string[] {
  const values = new Map(fields);
  const signed = SIGNING_ORDER.map((name) => [name, values.get(name)?.trim() ?? ''] as const).filter(
    ([, value]) => value !== '',
  );
  return [signed, signed.filter(([, value]) => value !== '0')].map((some) => signFields(some, passphrase));
}

/**
 * The signature of a call of the API: headers, query without `testing`, body and passphrase, sorted
 * by name, without empty ones.
 */
export function signCall(fields: readonly Field[], passphrase: string): string {
  const all: readonly Field[] = [...fields, ['passphrase', passphrase]];
  const signed = all.filter(([name, value]) => name !== 'testing' && value !== '');
  return md5(encodeFields(signed.toSorted(([a], [b]) => (a < b ? -1 : 1))));
}

function md5(text: string): string {
  return createHash('md5').update(text).digest('hex');
}
