import { createHmac, type ScryptOptions, scrypt, timingSafeEqual } from 'node:crypto';

const HASH_BYTES = 32;
const SALT_BYTES = 16;
/** As the CLI makes them: OWASP's password storage cheat sheet, scrypt with 16 MiB. */
const LN = 14;
const BLOCK_SIZE = 8;
const PARALLELISM = 5;
const MAX_LN = 17;
export const SECRET_MIN_LENGTH = 16;
const MAX_MEMORY = 256 * 1024 * 1024;

/** The PHC string format of a scrypt hash: `$scrypt$ln=14,r=8,p=5$<salt>$<hash>`, base64 without padding. */
const PHC = /^\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})$/;

interface ScryptHash {
  readonly options: ScryptOptions;
  readonly salt: Buffer;
  readonly hash: Buffer;
}

/**
 * What the gateway keeps of a client's secret: its scrypt hash, where the Secret holds that, else a keyed hash of the secret
 * itself. The text of neither can be told from it.
 */
export type KeptSecret =
  | { readonly type: 'scrypt'; readonly hash: ScryptHash; readonly fingerprint: string }
  | { readonly type: 'keyed'; readonly fingerprint: string };

/**
 * @returns undefined for a secret that is too short to be one, and for what begins like a scrypt hash and is none, or costs
 *   more to check than may be asked.
 */
export function keepSecret(value: Buffer, fingerprintKey: Buffer): KeptSecret | undefined {
  const fingerprint = fingerprintOf(value, fingerprintKey);
  const text = value.toString('utf8').trim();
  if (!text.startsWith('$scrypt$')) return text.length < SECRET_MIN_LENGTH ? undefined : { type: 'keyed', fingerprint };
  const hash = parseHash(text);
  return hash && { type: 'scrypt', hash, fingerprint };
}

/**
 * Whether a client has presented its secret. Takes as long whether there is such a client or not, and whatever is kept of its
 * secret: one scrypt hash is computed in each case.
 */
export async function verifySecret(
  presented: string,
  kept: KeptSecret | undefined,
  fingerprintKey: Buffer,
): Promise<boolean> {
  const wanted = kept?.type === 'scrypt' ? kept.hash : DUMMY;
  const derived = await derive(presented, wanted);
  const keyed = Buffer.from(fingerprintOf(Buffer.from(presented), fingerprintKey));
  const matchesHash = timingSafeEqual(derived, wanted.hash);
  const matchesKeyed = timingSafeEqual(keyed, Buffer.from(kept?.fingerprint ?? fingerprintOf(UNKNOWN, fingerprintKey)));
  if (kept === undefined) return false;
  return kept.type === 'scrypt' ? matchesHash : matchesKeyed;
}

/** Trailing white space counts not: a file that a Secret was made from often ends with a line break. */
function fingerprintOf(value: Buffer, key: Buffer): string {
  return createHmac('sha256', key).update(value.toString('utf8').trim()).digest('base64url');
}

function parseHash(text: string): ScryptHash | undefined {
  const [, ln = '', r = '', p = '', salt = '', hash = ''] = PHC.exec(text) ?? [];
  const [logCost, blockSize, parallelism] = [Number(ln), Number(r), Number(p)];
  if (logCost < 1 || logCost > MAX_LN || blockSize < 1 || parallelism < 1) return undefined;
  const options = scryptOptions(logCost, blockSize, parallelism);
  // No hash may make a replica stand still.
  if (2 ** logCost * blockSize * parallelism > 2 ** (MAX_LN + 3)) return undefined;
  return { options, salt: Buffer.from(salt, 'base64'), hash: Buffer.from(hash, 'base64') };
}

function scryptOptions(ln: number, r: number, p: number): ScryptOptions {
  return { N: 2 ** ln, r, p, maxmem: MAX_MEMORY };
}

function derive(secret: string, { options, salt, hash }: ScryptHash): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    scrypt(secret, salt, hash.length, options, (err, derived) => (err === null ? resolve(derived) : reject(err)));
  });
}

const DUMMY: ScryptHash = {
  options: scryptOptions(LN, BLOCK_SIZE, PARALLELISM),
  salt: Buffer.alloc(SALT_BYTES),
  hash: Buffer.alloc(HASH_BYTES),
};
const UNKNOWN = Buffer.alloc(0);
