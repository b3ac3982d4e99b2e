import { randomBytes, scryptSync } from 'node:crypto';

export const tiers = ['Premium', 'Standard', 'Free'] as const;
export type Tier = (typeof tiers)[number];

export interface NewClient {
  readonly clientId: string;
  readonly tier: Tier;
  readonly scopes: readonly string[];
  readonly namespace: string | undefined;
}

const SECRET_BYTES = 32;
const SALT_BYTES = 16;
const HASH_BYTES = 32;
/** OWASP's password storage cheat sheet, scrypt with 16 MiB. */
const SCRYPT = { N: 2 ** 14, r: 8, p: 5 };
const CLIENT_ID = /^[A-Za-z0-9][A-Za-z0-9._~-]{0,127}$/;

/**
 * What is wrong with a client id (crds/apiclients.yaml), as the end of a sentence; undefined:
 * nothing.
 */
export function clientIdFault(clientId: string): string | undefined {
  return CLIENT_ID.test(clientId)
    ? undefined
    : "must be 1 to 128 letters, digits, '-', '.', '_' and '~', beginning with a letter or digit";
}

/**
 * A client of the gateway as objects for `kubectl apply`: the ApiClient, and a Secret that holds
 * the scrypt hash of its secret alone.
 *
 * @returns the secret, which nothing else knows, and the objects as a Kubernetes List.
 */
export function buildClient({ clientId, tier, scopes, namespace }: NewClient): { secret: string; list: object } {
  const secret = randomBytes(SECRET_BYTES).toString('base64url');
  const name = objectNameOf(clientId);
  const metadata = namespace === undefined ? { name } : { name, namespace };
  const secretName = `${name}-api-client`;
  const items = [
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { ...metadata, name: secretName, labels: { 'rollcall.dev/api-client': 'true' } },
      type: 'Opaque',
      stringData: { secret: hashOf(secret) },
    },
    {
      apiVersion: 'rollcall.dev/v1alpha1',
      kind: 'ApiClient',
      metadata,
      spec: { clientId, tier, scopes, secretRef: { name: secretName } },
    },
  ];
  return { secret, list: { apiVersion: 'v1', kind: 'List', items } };
}

/** Client ids may have letters and signs that names of objects may not. */
function objectNameOf(clientId: string): string {
  return clientId
    .toLowerCase()
    .replaceAll(/[^a-z0-9.-]+/g, '-')
    .replaceAll(/\.+[-.]*|-+\./g, '.')
    .replaceAll(/^[-.]+|[-.]+$/g, '');
}

/** The PHC string format, which the gateway reads. */
function hashOf(secret: string): string {
  const salt = randomBytes(SALT_BYTES);
  const hash = scryptSync(secret, salt, HASH_BYTES, SCRYPT);
  return `$scrypt$ln=${Math.log2(SCRYPT.N)},r=${SCRYPT.r},p=${SCRYPT.p}$${unpadded(salt)}$${unpadded(hash)}`;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}
