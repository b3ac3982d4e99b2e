import { type Parsed, parseEmailAddress } from '@rollcall/platform/mail-address.ts';
import { type CountryCode, parsePhoneNumberFromString } from 'libphonenumber-js/max';

/**
 * Pure. The same for one recipient, however it is written: hardly any mail server tells capitals apart, and an opt-out
 * is to hold. A token is told from others by more.
 */
export function foldedRecipient(recipient: string): string {
  return recipient.toLowerCase();
}

export interface PhoneNumber {
  /** Of E.164: `+27821234567`. */
  readonly e164: string;
  /** Of ISO 3166-1, in capitals; absent where several countries share a range. */
  readonly country?: string;
}

/** Whole numbers with everything that people write between digits; the longest there is has 15. */
const PHONE_NUMBER = /^\+?[\d ().\-/\u00a0]{3,40}$/;
/** In some plans, as that of North America, nobody can tell. */
const MAYBE_MOBILE = ['MOBILE', 'FIXED_LINE_OR_MOBILE'];

/**
 * Reads the number of a mobile phone.
 *
 * @param region of ISO 3166-1: whose numbers are meant where none is given, as in `082 123 4567`.
 */
export function parsePhoneNumber(text: string, region: CountryCode): Parsed<PhoneNumber> {
  const fault = `must be a phone number, such as +27821234567 or one of ${region}`;
  if (!PHONE_NUMBER.test(text)) return { fault };
  const number = parsePhoneNumberFromString(text, { defaultCountry: region, extract: false });
  if (number === undefined || !number.isValid()) return { fault };
  if (!MAYBE_MOBILE.includes(number.getType() ?? '')) return { fault: 'must be the number of a mobile phone' };
  return { value: { e164: number.number, ...(number.country !== undefined && { country: number.country }) } };
}

/**
 * Pure. As messages have a recipient that is looked for, however it is written.
 *
 * @param region as of {@link parsePhoneNumber}.
 */
export function soughtRecipient(text: string, region: CountryCode): string {
  const read = text.includes('@') ? parseEmailAddress(text) : parsePhoneNumber(text, region);
  if ('fault' in read) return text;
  return typeof read.value === 'string' ? read.value : read.value.e164;
}

/** Whose push service a device listens to. */
export const pushPlatforms = ['fcm', 'apns', 'webpush'] as const;
export type PushPlatform = (typeof pushPlatforms)[number];

/** Where a push message goes. */
export type PushTarget =
  | { readonly platform: 'fcm' | 'apns'; readonly token: string }
  | ({ readonly platform: 'webpush' } & WebPushSubscription);

/** What a browser's `PushSubscription` holds (W3C Push API); keys in base64url. */
interface WebPushSubscription {
  readonly endpoint: string;
  readonly p256dh: string;
  readonly auth: string;
}

const TOKENS = {
  fcm: /^[\w:.-]{20,4096}$/,
  /** In hexadecimal digits. Apple says not to rely on the 32 bytes that tokens have today. */
  apns: /^(?:[\da-f]{2}){32,100}$/,
};
const LONGEST_SUBSCRIPTION = 4096;

/**
 * Reads the token of a device.
 *
 * @param text of FCM and APNs the token; of a browser its PushSubscription as JSON.
 */
export function parsePushTarget(text: string, platform: PushPlatform): Parsed<PushTarget> {
  if (platform === 'webpush') {
    const subscription = parseSubscription(text);
    return subscription === undefined
      ? { fault: 'must be a PushSubscription as JSON: an https endpoint, and the keys p256dh and auth' }
      : { value: { platform, ...subscription } };
  }
  const token = platform === 'apns' ? text.toLowerCase() : text;
  return TOKENS[platform].test(token) ? { value: { platform, token } } : { fault: `must be a token of ${platform}` };
}

function parseSubscription(text: string): WebPushSubscription | undefined {
  if (text.length > LONGEST_SUBSCRIPTION) return undefined;
  const { endpoint, keys } = fieldsOf(parseJson(text));
  const { p256dh, auth } = fieldsOf(keys);
  if (typeof endpoint !== 'string' || typeof p256dh !== 'string' || typeof auth !== 'string') return undefined;
  const url = URL.parse(endpoint);
  if (url === null || url.protocol !== 'https:' || url.username !== '' || url.password !== '') return undefined;
  const point = bytesOf(p256dh);
  // An uncompressed point of P-256, and the 16 bytes of RFC 8291, section 3.2.
  if (point?.length !== 65 || point[0] !== 4 || bytesOf(auth)?.length !== 16) return undefined;
  return { endpoint: url.href, p256dh, auth };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? Object.fromEntries(Object.entries(value)) : {};
}

function bytesOf(base64url: string): Uint8Array | undefined {
  return /^[\w-]+$/.test(base64url) ? Buffer.from(base64url, 'base64url') : undefined;
}
