import type { ApiClient } from '@rollcall/crds/types.gen.ts';
import { expect, test } from 'vitest';
import { judge } from './api-clients.ts';
import { keepSecret } from './client-secret.ts';

const KEY = Buffer.from('fingerprint key');

function clientOf(uid = 'u1'): ApiClient {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ApiClient',
    metadata: { name: 'shop', uid },
    spec: { clientId: 'shop', tier: 'Standard', scopes: ['a'], secretRef: { name: 'keys', key: 'shop' } },
  };
}

function secretOf(values: Readonly<Record<string, string>>) {
  const kept = new Map(Object.entries(values).map(([key, value]) => [key, keepSecret(Buffer.from(value), KEY)]));
  return { apiVersion: 'v1' as const, kind: 'Secret' as const, metadata: { name: 'keys' }, kept };
}

test.each([
  {
    name: 'another has its id',
    secret: secretOf({ shop: 'a-good-enough-secret' }),
    isInUse: true,
    reason: 'ClientIdTaken',
  },
  { name: 'there is no Secret', secret: undefined, isInUse: false, reason: 'SecretMissing' },
  { name: 'the Secret lacks the key', secret: secretOf({ other: 'x' }), isInUse: false, reason: 'SecretKeyMissing' },
  { name: 'the secret is short', secret: secretOf({ shop: 'short' }), isInUse: false, reason: 'SecretInvalid' },
  { name: 'the secret is blank', secret: secretOf({ shop: ' '.repeat(40) }), isInUse: false, reason: 'SecretInvalid' },
  {
    name: 'the hash is none',
    secret: secretOf({ shop: '$scrypt$ln=14,r=8$x$y' }),
    isInUse: false,
    reason: 'SecretInvalid',
  },
  {
    name: 'the hash takes longer than others',
    secret: secretOf({ shop: `$scrypt$ln=17,r=99,p=99$${'A'.repeat(22)}$${'A'.repeat(43)}` }),
    isInUse: false,
    reason: 'SecretInvalid',
  },
  {
    name: 'the hash takes less long than others',
    secret: secretOf({ shop: `$scrypt$ln=14,r=8,p=1$${'A'.repeat(22)}$${'A'.repeat(43)}` }),
    isInUse: false,
    reason: 'SecretInvalid',
  },
])('a client may not ask for tokens when $name', ({ secret, isInUse, reason }) => {
  expect(judge(clientOf(), { secret, isInUse })).toMatchObject({ verdict: { status: 'False', reason } });
});

test('a client that may has another generation with another secret or another object', () => {
  const generations = [
    judge(clientOf(), { secret: secretOf({ shop: 'a-good-enough-secret' }), isInUse: false }),
    judge(clientOf(), { secret: secretOf({ shop: 'a-good-enough-secret\n' }), isInUse: false }),
    judge(clientOf(), { secret: secretOf({ shop: 'another-good-secret!' }), isInUse: false }),
    judge(clientOf('u2'), { secret: secretOf({ shop: 'a-good-enough-secret' }), isInUse: false }),
  ].map((judged) => ('client' in judged ? judged.client.generation : undefined));
  expect(generations[1]).toBe(generations[0]);
  expect(new Set(generations).size).toBe(3);
  expect(JSON.stringify(generations)).not.toContain('secret');
});

test('a client whose hash is not isInUse is told what would be', () => {
  const secret = secretOf({ shop: '$scrypt$ln=12,r=8,p=1$x$y' });
  const { verdict } = judge(clientOf(), { secret, isInUse: false }) as { verdict: { message: string } };
  expect(verdict.message).toContain('`rollcall clients create` makes it, $scrypt$ln=14,r=8,p=5$<salt');
});
