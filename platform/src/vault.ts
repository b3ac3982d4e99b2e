import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { Type } from 'typebox';
import { Value } from 'typebox/value';
import { parse } from 'yaml';

const ALGORITHM = 'aes-256-gcm';
const KEY_BYTES = 32;
/** What NIST SP 800-38D, section 8.2 recommends; drawn at random, a key may seal 2^32 texts. */
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** One key of a vault. */
export interface VaultKey {
  /** Stands in front of all that it seals: 1 to 64 letters, digits, `.`, `_` and `-`. */
  readonly id: string;
  /** 32 bytes. */
  readonly key: Uint8Array;
}

/** Seals what is kept in a database, so that who reads the database alone cannot read it. */
export interface Vault {
  /** What all begins with that is sealed now: the newest key. */
  readonly head: Buffer;
  /**
   * @param context what the sealed bytes belong to, such as `message <id>`: elsewhere they cannot be
   * opened.
   * @returns the key's id, a nonce, the sealed bytes and a tag.
   */
  seal(plain: string | Uint8Array, context: string): Buffer;
  /** @throws VaultError where the context or a byte is another, or the key is not known. */
  open(sealed: Uint8Array, context: string): Buffer;
}

/** Finds rows by a text that they do not hold in plain. */
export interface BlindIndex {
  /** What to keep in the row. */
  of(text: string): Buffer;
  /** What rows may have that were kept with any of the keys; for `= ANY($1)`. */
  candidates(text: string): readonly Buffer[];
}

/** Sealed bytes that cannot be opened. The message holds nothing of them but the id of their key. */
export class VaultError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'VaultError';
  }
}

/**
 * AES-256-GCM (NIST SP 800-38D) with the context as additional data. The first key seals; all of
 * them open.
 *
 * @param keys the newest first; at least one.
 */
export function createVault(keys: readonly VaultKey[]): Vault {
  const [newest] = keys;
  if (newest === undefined) throw new Error('A vault needs a key');
  const byId = new Map(keys.map(({ id, key }) => [id, key]));
  const head = Buffer.concat([Buffer.of(newest.id.length), Buffer.from(newest.id, 'latin1')]);
  return {
    head,
    seal(plain, context) {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(ALGORITHM, newest.key, nonce);
      cipher.setAAD(additionalData(head, context));
      const sealed = cipher.update(typeof plain === 'string' ? Buffer.from(plain) : plain);
      return Buffer.concat([head, nonce, sealed, cipher.final(), cipher.getAuthTag()]);
    },
    open(sealed, context) {
      const { head, id, nonce, body, tag } = partsOf(sealed);
      const key = byId.get(id);
      if (key === undefined) throw new VaultError(`No key has the id ${JSON.stringify(id)}`);
      const decipher = createDecipheriv(ALGORITHM, key, nonce, { authTagLength: TAG_BYTES });
      decipher.setAAD(additionalData(head, context));
      decipher.setAuthTag(tag);
      const plain = decipher.update(body);
      try {
        return Buffer.concat([plain, decipher.final()]);
      } catch (cause) {
        throw new VaultError('The sealed bytes were changed, or belong to something else', { cause });
      }
    },
  };
}

/** The head counts, too: another key's id in front fails by more than the key. */
function additionalData(head: Uint8Array, context: string): Buffer {
  return Buffer.concat([head, Buffer.from(context)]);
}

function partsOf(bytes: Uint8Array) {
  const sealed = Buffer.from(bytes);
  const idEnd = 1 + (sealed[0] ?? 0);
  const bodyStart = idEnd + NONCE_BYTES;
  const bodyEnd = sealed.length - TAG_BYTES;
  if (bodyEnd < bodyStart) throw new VaultError('The sealed bytes are too few');
  return {
    head: sealed.subarray(0, idEnd),
    id: sealed.toString('latin1', 1, idEnd),
    nonce: sealed.subarray(idEnd, bodyStart),
    body: sealed.subarray(bodyStart, bodyEnd),
    tag: sealed.subarray(bodyEnd),
  };
}

/**
 * HMAC-SHA256 with keys of its own, derived from those of the vault (HKDF, RFC 5869): equal texts
 * have equal indexes, and nobody without a key can try texts out.
 *
 * @param keys as of the vault.
 * @param purpose such as `recipient`: the same text has another index for another purpose.
 */
export function createBlindIndex(keys: readonly VaultKey[], purpose: string): BlindIndex {
  const derived = keys.map(({ key }) =>
    Buffer.from(hkdfSync('sha256', key, '', `rollcall blind index ${purpose}`, KEY_BYTES)),
  );
  const [newest] = derived;
  if (newest === undefined) throw new Error('A blind index needs a key');
  return {
    of: (text) => indexWith(newest, text),
    candidates: (text) => derived.map((key) => indexWith(key, text)),
  };
}

function indexWith(key: Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

const keysSchema = Type.Object(
  {
    keys: Type.Array(
      Type.Object(
        { id: Type.String({ pattern: '^[A-Za-z0-9._-]{1,64}$' }), key: Type.String() },
        { additionalProperties: false },
      ),
      { minItems: 1, maxItems: 100 },
    ),
  },
  { additionalProperties: false },
);

/**
 * Reads `keys: [{id, key}]`, the newest first, each key 32 bytes in base64.
 *
 * @throws Error naming the fault, and nothing of a key.
 */
export function parseVaultKeys(text: string): readonly VaultKey[] {
  const value = parsed(text);
  if (!Value.Check(keysSchema, value)) {
    const faults = Value.Errors(keysSchema, value).map(
      ({ instancePath, message }) => `${instancePath || '/'} ${message}`,
    );
    throw new Error(`The keys of the vault are not valid: ${faults.join('; ')}`);
  }
  const ids = value.keys.map(({ id }) => id);
  const twice = ids.find((id, index) => ids.indexOf(id) !== index);
  if (twice !== undefined) throw new Error(`The keys of the vault are not valid: two have the id ${twice}`);
  return value.keys.map(({ id, key }) => ({ id, key: keyBytes(id, key) }));
}

/** YAML's own errors show the line that is wrong, which may have a key. */
function parsed(text: string): unknown {
  try {
    return parse(text);
  } catch {
    throw new Error('The keys of the vault are not valid: the file is not YAML');
  }
}

function keyBytes(id: string, text: string): Buffer {
  const key = Buffer.from(text, 'base64');
  if (key.length === KEY_BYTES && key.toString('base64') === text) return key;
  throw new Error(`The keys of the vault are not valid: the key ${id} is not ${KEY_BYTES} bytes in base64`);
}

/** Of a file that a Secret brings. @throws as {@link parseVaultKeys}, or where it cannot be read. */
export async function readVaultKeys(file: string): Promise<readonly VaultKey[]> {
  return parseVaultKeys(await readFile(file, 'utf8'));
}
