import { randomBytes } from 'node:crypto';
import type { Clock } from '@rollcall/platform/clock.ts';
import { errorMessage } from '@rollcall/platform/errors.ts';
import { type Secret, secretKind } from '@rollcall/platform/kube/builtin-kinds.ts';
import type { KubeConnection } from '@rollcall/platform/kube/connection.ts';
import { isAlreadyExists, isConflict, isForbidden } from '@rollcall/platform/kube/errors.ts';
import { type ResourceClient, resourceClient } from '@rollcall/platform/kube/resource-client.ts';
import type { Actor } from '@rollcall/platform/process/lifecycle.ts';
import type { Logger } from '@rollcall/platform/process/log.ts';
import { type CryptoKey, exportJWK, generateKeyPair, importJWK, type JWK } from 'jose';
import { type Static, Type } from 'typebox';
import { Value } from 'typebox/value';
import { planRotation, type RotationPolicy, type SigningKey } from './signing-keys.ts';

export const SIGNING_ALGORITHM = 'ES256';
const SECRET_KEY = 'keys.json';
/** After an unknown key was asked for: the next read of the Secret for one waits so long. */
const REFRESH_COOL_DOWN_MS = 5000;
const ATTEMPTS = 10;
const FINGERPRINT_KEY_BYTES = 32;

const storedSchema = Type.Object({
  fingerprintKey: Type.String({ minLength: 16 }),
  keys: Type.Array(
    Type.Object({
      kid: Type.String({ minLength: 1 }),
      createdAtMs: Type.Number(),
      privateJwk: Type.Object({
        kty: Type.Literal('EC'),
        crv: Type.String(),
        x: Type.String(),
        y: Type.String(),
        d: Type.String(),
      }),
    }),
  ),
});
type Stored = Static<typeof storedSchema>;

export interface KeyStoreDeps {
  readonly connection: KubeConnection;
  readonly namespace: string;
  /**
   * Of the Secret that all replicas share. It is made when it is absent, where the process may make
   * Secrets.
   */
  readonly secretName: string;
  readonly policy: RotationPolicy;
  /** How often the Secret is read. */
  readonly refreshMs: number;
  readonly clock: Clock;
  readonly log: Logger;
}

/** The keys that all replicas of the gateway sign with, kept in one Secret. */
export interface KeyStore {
  readonly actor: Actor;
  /** @throws when the actor has not started. */
  signing(): { readonly kid: string; readonly key: CryptoKey };
  /**
   * @returns the public key, after a read of the Secret where it is not known; undefined: there is
   * none.
   */
  verifying(kid: string): Promise<CryptoKey | undefined>;
  /** Whether what was signed with that key still counts. A read of memory. */
  isKnown(kid: string): boolean;
  /** What `/.well-known/jwks.json` publishes: public keys only (RFC 7517). */
  published(): { readonly keys: readonly JWK[] };
  /**
   * Keyed hashes of secrets are made with it: the same in all replicas, of no use to who reads a
   * token.
   */
  fingerprintKey(): Buffer;
}

interface Loaded {
  readonly fingerprintKey: Buffer;
  readonly signing: { readonly kid: string; readonly key: CryptoKey };
  readonly verifying: ReadonlyMap<string, CryptoKey>;
  readonly published: readonly JWK[];
}

/**
 * Each replica reads the Secret once a minute. The one that finds that a key is due writes it, with
 * the version it has read as precondition: of several, one wins, and the others read what it wrote.
 */
export function createKeyStore(deps: KeyStoreDeps): KeyStore {
  const { clock, log } = deps;
  let stored: Stored | undefined;
  let loaded: Loaded | undefined;
  let lastReadMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  function refresh(): Promise<void> {
    looking ??= readOnce().finally(() => {
      looking = undefined;
    });
    return looking;
  }

  async function readOnce(): Promise<void> {
    try {
      stored = await readAndRotate(deps);
      lastReadMs = clock.monotonicMs();
    } finally {
      // Which key signs changes with time: a replica that cannot read must not go on with one that
      // the others have dropped.
      if (stored !== undefined) loaded = await load(stored, clock.now().getTime(), deps.policy);
    }
  }

  function current(): Loaded {
    if (loaded === undefined) throw new Error('The signing keys have not been read');
    return loaded;
  }

  return {
    actor: {
      name: 'signing keys',
      async start() {
        await refresh();
        timer = setInterval(() => {
          refresh().catch((err: unknown) => log.warn({ message: errorMessage(err) }, 'signing keys not read'));
        }, deps.refreshMs);
      },
      stop: async () => clearInterval(timer),
    },
    signing: () => current().signing,
    async verifying(kid) {
      const known = current().verifying.get(kid);
      if (known !== undefined || clock.monotonicMs() - lastReadMs < REFRESH_COOL_DOWN_MS) return known;
      lastReadMs = clock.monotonicMs();
      await refresh().catch((err: unknown) => log.warn({ message: errorMessage(err) }, 'signing keys not read'));
      return current().verifying.get(kid);
    },
    isKnown: (kid) => current().verifying.has(kid),
    published: () => ({ keys: current().published }),
    fingerprintKey: () => current().fingerprintKey,
  };
}

async function readAndRotate(deps: KeyStoreDeps): Promise<Stored> {
  const secrets = resourceClient(deps.connection, secretKind, deps.namespace);
  for (let attempt = 1; ; attempt += 1) {
    const secret = await secrets.find(deps.secretName);
    const stored = secret === undefined ? undefined : parse(secret);
    const plan = planRotation(stored?.keys ?? [], deps.clock.now().getTime(), deps.policy);
    const unchanged = !plan.needsNew && plan.kept.length === stored?.keys.length;
    if (stored !== undefined && unchanged) return stored;
    const added = plan.needsNew ? [await newKey(deps.clock.now().getTime())] : [];
    const next = {
      fingerprintKey: stored?.fingerprintKey ?? randomBytes(FINGERPRINT_KEY_BYTES).toString('base64url'),
      keys: [...plan.kept, ...added],
    };
    const data = { [SECRET_KEY]: Buffer.from(JSON.stringify(next)).toString('base64') };
    try {
      const { resourceVersion, uid } = secret?.metadata ?? {};
      if (resourceVersion === undefined) {
        await make(secrets, deps.secretName, data);
      } else {
        await secrets.patch(deps.secretName, { data }, { resourceVersion, ...(uid === undefined ? {} : { uid }) });
      }
      for (const { kid } of added) deps.log.info({ kid }, 'signing key made');
    } catch (err) {
      // Another replica was first: what it wrote is as good.
      if (attempt >= ATTEMPTS || !(isConflict(err) || isAlreadyExists(err))) throw err;
    }
  }
}

/**
 * @throws Error saying what to do where the process may not: the right to make Secrets cannot be
 * limited to one name.
 */
async function make(secrets: ResourceClient<Secret>, name: string, data: NonNullable<Secret['data']>): Promise<void> {
  try {
    await secrets.create({ apiVersion: 'v1', kind: 'Secret', metadata: { name }, type: 'Opaque', data });
  } catch (err) {
    if (!isForbidden(err)) throw err;
    throw new Error(`There is no Secret ${name}, and this process may not make one: \`helm upgrade\` does`, {
      cause: err,
    });
  }
}

/**
 * A Secret that is there and holds no keys yet, as a chart or a person may have made it, is filled.
 */
function parse({ metadata, data = {} }: Secret): Stored | undefined {
  const encoded = data[SECRET_KEY];
  if (encoded === undefined) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(encoded, 'base64').toString('utf8'));
  } catch {
    value = undefined;
  }
  // Its text is not logged: it may be keys that somebody has mistyped.
  if (!Value.Check(storedSchema, value))
    throw new Error(`${SECRET_KEY} of Secret ${metadata.name} is not what it should be`);
  return value;
}

async function newKey(createdAtMs: number): Promise<Stored['keys'][number]> {
  const { privateKey } = await generateKeyPair(SIGNING_ALGORITHM, { extractable: true });
  const { crv = '', x = '', y = '', d = '' } = await exportJWK(privateKey);
  const kid = randomBytes(12).toString('base64url');
  return { kid, createdAtMs, privateJwk: { kty: 'EC', crv, x, y, d } };
}

async function load(stored: Stored, nowMs: number, policy: RotationPolicy): Promise<Loaded> {
  const { signing, kept } = planRotation(stored.keys, nowMs, policy);
  if (signing === undefined) throw new Error('There is no signing key');
  const published = kept.map(publicJwk);
  return {
    fingerprintKey: Buffer.from(stored.fingerprintKey, 'base64url'),
    signing: { kid: signing.kid, key: await imported(signing.privateJwk) },
    verifying: new Map(await Promise.all(published.map(async (jwk) => [jwk.kid, await imported(jwk)] as const))),
    published,
  };
}

function publicJwk({ kid, privateJwk }: SigningKey): JWK & { readonly kid: string } {
  const { crv = '', x = '', y = '' } = privateJwk;
  return { kid, kty: 'EC', crv, x, y, alg: SIGNING_ALGORITHM, use: 'sig' };
}

async function imported(jwk: JWK): Promise<CryptoKey> {
  const key = await importJWK(jwk, SIGNING_ALGORITHM);
  if (key instanceof Uint8Array) throw new Error('A signing key is symmetric');
  return key;
}
