import { createHmac, timingSafeEqual } from 'node:crypto';
import { createScrypt, HASH_BYTES } from './scrypt-thread.ts';

const SALT_BYTES = 16;
export const SECRET_MIN_LENGTH = 16;

/**
 * The PHC string format of a scrypt hash, base64 without padding, with the cost and the lengths
 * that the CLI's hashes have. Others are refused: a hash that is checked in another time would show
 * that its client exists.
 */
const PHC = /^\$scrypt\$ln=14,r=8,p=5\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;
/** What `PHC` accepts, for people. */
export const SCRYPT_FORMAT = '$scrypt$ln=14,r=8,p=5$<salt of 16 bytes>$<hash of 32 bytes>';

interface ScryptHash {
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/**
 * What the gateway keeps of a client's secret: its scrypt hash, where the Secret holds that, else a
 * keyed hash of the secret itself. Neither text can be derived from it.
 */
export type KeptSecret =
  | { readonly type: 'scrypt'; readonly hash: ScryptHash; readonly fingerprint: string }
  | { readonly type: 'keyed'; readonly fingerprint: string };

/**
 * @returns undefined for a secret that is too short to be one, and for what begins like a scrypt
 * hash and is none that is accepted.
 */
export function keepSecret(value: Buffer, fingerprintKey: Buffer): KeptSecret | undefined {
  const fingerprint = fingerprintOf(value, fingerprintKey);
  const text = value.toString('utf8').trim();
  if (!text.startsWith('$scrypt$')) return text.length < SECRET_MIN_LENGTH ? undefined : { type: 'keyed', fingerprint };
  const hash = parseHash(text);
  return hash && { type: 'scrypt', hash, fingerprint };
}

/** Checks the secrets that clients present. */
export interface SecretChecks {
  /**
   * Whether it is the client's secret, where that is known without a scrypt hash: the Secret holds
   * the secret itself, or it was checked before. False says nothing.
   */
  isKnown(presented: string, kept: KeptSecret | undefined, fingerprintKey: Buffer): boolean;
  /**
   * Whether it is the client's secret. Lasts as long whether there is such a client or not, and
   * whatever is kept of its secret: one scrypt hash of the same cost is computed in each case.
   */
  verify(presented: string, kept: KeptSecret | undefined, fingerprintKey: Buffer): Promise<boolean>;
}

export function createSecretChecks(): SecretChecks {
  /** Of scrypt hashes: the fingerprint of the secret that was found to be theirs. */
  const confirmed = new WeakMap<KeptSecret, string>();
  const scrypt = createScrypt();
  return {
    isKnown(presented, kept, fingerprintKey) {
      const wanted = kept?.type === 'keyed' ? kept.fingerprint : kept && confirmed.get(kept);
      return isEqual(fingerprintOf(Buffer.from(presented), fingerprintKey), wanted ?? NO_FINGERPRINT);
    },
    async verify(presented, kept, fingerprintKey) {
      const wanted = kept?.type === 'scrypt' ? kept.hash : DUMMY;
      const derived = await scrypt(presented, wanted.salt);
      const fingerprint = fingerprintOf(Buffer.from(presented), fingerprintKey);
      const matchesHash = timingSafeEqual(derived, wanted.hash);
      const matchesKeyed = isEqual(fingerprint, kept?.fingerprint ?? NO_FINGERPRINT);
      if (kept === undefined) return false;
      if (kept.type === 'keyed') return matchesKeyed;
      if (matchesHash) confirmed.set(kept, fingerprint);
      return matchesHash;
    },
  };
}

function isEqual(one: string, other: string): boolean {
  return timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/**
 * Trailing white space counts not: a file that a Secret was made from often ends with a line break.
 */
function fingerprintOf(value: Buffer, key: Buffer): string {
  return createHmac('sha256', key).update(value.toString('utf8').trim()).digest('base64url');
}

function parseHash(text: string): ScryptHash | undefined {
  const [, salt, hash] = PHC.exec(text) ?? [];
  if (salt === undefined || hash === undefined) return undefined;
  return { salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
}

const DUMMY: ScryptHash = { salt: Buffer.alloc(SALT_BYTES), hash: Buffer.alloc(HASH_BYTES) };
/** As long as a fingerprint is, and none. */
const NO_FINGERPRINT = '-'.repeat(43);
