import { randomBytes, scryptSync } from 'node:crypto';
import { expect, test } from 'vitest';
import { createSecretChecks, keepSecret } from './client-secret.ts';

const KEY = Buffer.from('fingerprint key');
const SECRET = 'a-good-enough-secret';

interface Shape {
  readonly ln?: number;
  readonly r?: number;
  readonly p?: number;
  readonly saltBytes?: number;
  readonly hashBytes?: number;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

/** The hash of the secret as the CLI makes it. */
function hashed(): string {
  const salt = randomBytes(16);
  const hash = scryptSync(SECRET, salt, 32, { N: 2 ** 14, r: 8, p: 5 });
  return `$scrypt$ln=14,r=8,p=5$${unpadded(salt)}$${unpadded(hash)}`;
}

/** A hash by its looks. */
function hashLike({ ln = 14, r = 8, p = 5, saltBytes = 16, hashBytes = 32 }: Shape): string {
  return `$scrypt$ln=${ln},r=${r},p=${p}$${unpadded(randomBytes(saltBytes))}$${unpadded(randomBytes(hashBytes))}`;
}

test.each([
  { name: 'the secret itself', stored: SECRET },
  { name: 'the secret and a line break', stored: `${SECRET}\n` },
  { name: 'its hash', stored: hashed() },
  { name: 'its hash and a line break', stored: `${hashed()}\n` },
])('where $name is stored, the secret is right and another is wrong', async ({ stored }) => {
  const kept = keepSecret(Buffer.from(stored), KEY);
  expect(kept).toBeDefined();
  expect(JSON.stringify(kept)).not.toContain(SECRET);
  expect(await createSecretChecks().verify(SECRET, kept, KEY)).toBe(true);
  expect(await createSecretChecks().verify('another-good-secret!', kept, KEY)).toBe(false);
  expect(await createSecretChecks().verify(stored.trim(), kept, KEY)).toBe(stored.trim() === SECRET);
});

test('is known without a hash where the secret itself is stored, and of a hash once it was found right', async () => {
  const checks = createSecretChecks();
  const keyed = keepSecret(Buffer.from(SECRET), KEY);
  expect(checks.isKnown(SECRET, keyed, KEY)).toBe(true);
  expect(checks.isKnown('another-good-secret!', keyed, KEY)).toBe(false);
  const kept = keepSecret(Buffer.from(hashed()), KEY);
  expect(checks.isKnown(SECRET, kept, KEY)).toBe(false);
  await checks.verify('another-good-secret!', kept, KEY);
  expect(checks.isKnown('another-good-secret!', kept, KEY)).toBe(false);
  await checks.verify(SECRET, kept, KEY);
  expect(checks.isKnown(SECRET, kept, KEY)).toBe(true);
  // The Secret has changed since.
  expect(checks.isKnown(SECRET, keepSecret(Buffer.from(hashed()), KEY), KEY)).toBe(false);
  expect(checks.isKnown('', undefined, KEY)).toBe(false);
});

test('no secret is right for a client that does not exist', async () => {
  for (const secret of ['', SECRET, '-'.repeat(43)])
    expect(await createSecretChecks().verify(secret, undefined, KEY)).toBe(false);
});

test.each<{ name: string; shape: Shape }>([
  { name: 'cheaper by its memory', shape: { ln: 13 } },
  { name: 'cheaper by its passes', shape: { p: 4 } },
  { name: 'dearer by its blocks', shape: { r: 9 } },
  { name: 'dearer by its passes', shape: { p: 6 } },
  { name: 'one with less salt', shape: { saltBytes: 15 } },
  { name: 'one with more salt', shape: { saltBytes: 32 } },
  { name: 'a short one', shape: { hashBytes: 16 } },
  { name: 'a long one', shape: { hashBytes: 64 } },
])('a hash that takes as long as no other is not taken: $name', ({ shape }) => {
  expect(keepSecret(Buffer.from(hashLike({})), KEY)).toBeDefined();
  expect(keepSecret(Buffer.from(hashLike(shape)), KEY)).toBeUndefined();
});

test.each(['$scrypt$', '$scrypt$ln=14,r=8,p=5$$', `$scrypt$ln=14,r=8,p=5$${'A'.repeat(22)}$${'!'.repeat(43)}`])(
  'what begins like a hash and is none is no secret either: %s',
  (stored) => {
    expect(keepSecret(Buffer.from(stored.padEnd(40, '$')), KEY)).toBeUndefined();
  },
);
