import { IDENTITY_TOKEN_TYPE, identityAudience } from '@rollcall/platform/http/identity.ts';
import { decodeJwt, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createAccessTokens } from '../identity/access-tokens.ts';
import type { KnownClient } from '../identity/api-clients.ts';
import { createAuthenticator, TOKEN_MAX_LENGTH } from '../identity/authenticator.ts';
import { createBackendIdentity } from '../identity/backend-identity.ts';
import { keepSecret } from '../identity/client-secret.ts';
import { createIdentityExchange } from '../identity/identity-exchange.ts';
import { exchangeToken } from './token-exchange.ts';

const NOW = 1_800_000_000;
const clock = { now: () => new Date(NOW * 1000), monotonicMs: () => 0 };
const JWT = 'urn:ietf:params:oauth:token-type:jwt';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const client = { clientId: 'federation', scopes: ['identities:exchange'] };

function shop(): KnownClient {
  const secret = keepSecret(Buffer.from('the secret of the shop'), Buffer.alloc(32));
  if (secret === undefined) throw new Error('The secret is too short');
  return { clientId: 'shop', tier: 'free', scopes: ['a', 'b'], secret, generation: '1' };
}

let keys: Awaited<ReturnType<typeof generateKeyPair>>;
let accessToken: string;
let clients: Map<string, KnownClient>;
let isComplete: boolean;
let ask: (form?: Record<string, string>, by?: typeof client) => Promise<object>;

beforeAll(async () => {
  keys = await generateKeyPair('ES256');
});

beforeEach(async () => {
  clients = new Map([['shop', shop()]]);
  isComplete = true;
  const store = {
    signing: () => ({ kid: 'one', key: keys.privateKey }),
    verifying: async (kid: string) => (kid === 'one' ? keys.publicKey : undefined),
    isKnown: (kid: string) => kid === 'one',
  };
  const common = { keys: store, issuer: 'rollcall', clock };
  const own = createAccessTokens({
    ...common,
    clients: { find: (id) => clients.get(id) },
    audience: 'rollcall',
    lifetimeSeconds: 3600,
    toleranceSeconds: 5,
  });
  const capacity = { tokens: 10, characters: 100_000 };
  const exchange = createIdentityExchange({
    ...common,
    clients: { find: (id) => clients.get(id) },
    authenticator: createAuthenticator({ own, external: new Map(), clock, capacity }),
    backend: createBackendIdentity(common),
  });
  accessToken = (await own.issue(shop(), ['a'])).token;
  const registered = new Map([
    ['payment', {}],
    ['registry', {}],
  ]);
  const targets = { findRegistered: (service: string) => registered.get(service), isComplete: () => isComplete };
  const good = { subject_token: await identity(), subject_token_type: JWT, audience: 'payment' };
  ask = (form = {}, by = client) => exchangeToken({ exchange, targets }, by, new URLSearchParams({ ...good, ...form }));
});

/** What the gateway shows federation, but for what is said. */
function identity(more: Readonly<Record<string, unknown>> = {}, header: object = {}): Promise<string> {
  const claims = { iss: 'rollcall', sub: 'shop', tier: 'free', scope: 'a b', iat: NOW - 20, exp: NOW + 40 };
  return new SignJWT({ ...claims, aud: identityAudience('federation'), ...more })
    .setProtectedHeader({ alg: 'ES256', typ: IDENTITY_TOKEN_TYPE, kid: 'one', ...header })
    .sign(keys.privateKey);
}

async function claimsOf(answer: Promise<object>): Promise<JWTPayload> {
  return decodeJwt(((await answer) as { access_token: string }).access_token);
}

test('what was shown to a client becomes an identity at another service, which ends as early', async () => {
  const answer = ask();
  expect(await answer).toEqual({
    access_token: expect.any(String),
    issued_token_type: JWT,
    token_type: 'N_A',
    expires_in: 40,
  });
  expect(await claimsOf(answer)).toEqual({
    iss: 'rollcall',
    aud: 'rollcall:service:payment',
    sub: 'shop',
    tier: 'free',
    scope: 'a b',
    iat: NOW,
    exp: NOW + 40,
    act: { sub: 'federation' },
  });
});

test('an identity that lasts as long as a token ends with the secret of its client', async () => {
  const { generation } = shop();
  const subject_token = await identity({ rollcall_generation: generation });
  expect(await claimsOf(ask({ subject_token }))).toMatchObject({ sub: 'shop', exp: NOW + 40 });
  clients.set('shop', { ...shop(), generation: 'another' });
  await expect(ask({ subject_token })).rejects.toThrow('It has been revoked');
  clients.delete('shop');
  await expect(ask({ subject_token })).rejects.toThrow('It has been revoked');
  expect(await claimsOf(ask())).toMatchObject({ sub: 'shop' });
});

test('who acted before is named, too', async () => {
  const subject_token = await identity({ act: { sub: 'web' } });
  expect(await claimsOf(ask({ subject_token }))).toMatchObject({ act: { sub: 'federation', act: { sub: 'web' } } });
});

test('an access token becomes an identity of a minute', async () => {
  const form = { subject_token: accessToken, subject_token_type: ACCESS_TOKEN };
  expect(await claimsOf(ask(form))).toMatchObject({
    sub: 'shop',
    scope: 'a',
    exp: NOW + 60,
    act: { sub: 'federation' },
  });
  clients.clear();
  await expect(ask(form)).rejects.toMatchObject({ error: 'invalid_request', message: /revoked/ });
});

test('an access token is no identity, and the other way round', async () => {
  await expect(ask({ subject_token: accessToken })).rejects.toMatchObject({ error: 'invalid_request' });
  await expect(ask({ subject_token_type: ACCESS_TOKEN })).rejects.toMatchObject({ error: 'invalid_request' });
});

test.each<[what: string, claims: Readonly<Record<string, unknown>>, header?: object]>([
  ['was shown to another service', { aud: identityAudience('payment') }],
  ['has ended', { exp: NOW - 1 }],
  ['is of another gateway', { iss: 'other' }],
  ['names nobody', { sub: undefined }],
  ['has an unknown tier', { tier: 'gold' }],
  ['is of another type', {}, { typ: 'at+jwt' }],
  ['is signed with an unknown key', {}, { kid: 'two' }],
  ['is too long', { scope: 'a'.repeat(8192) }],
])('an identity is refused that %s', async (_what, claims, header) => {
  const refused = ask({ subject_token: await identity(claims, header) });
  await expect(refused).rejects.toMatchObject({ status: 400, error: 'invalid_request', message: /subject_token/ });
});

test('an identity is refused that one more who acts would make too long', async () => {
  const room = TOKEN_MAX_LENGTH - (await identity({ scope: '' })).length;
  const subject_token = await identity({ scope: 'a'.repeat(Math.floor((room * 3) / 4)) });
  expect(subject_token.length).toBeLessThanOrEqual(TOKEN_MAX_LENGTH);
  await expect(ask({ subject_token })).rejects.toMatchObject({ error: 'invalid_request', message: /too long/ });
});

test.each<[form: Record<string, string>, error: string]>([
  [{ subject_token: 'no token' }, 'invalid_request'],
  [{ subject_token_type: 'urn:ietf:params:oauth:token-type:saml2' }, 'invalid_request'],
  [{ requested_token_type: ACCESS_TOKEN }, 'invalid_request'],
  [{ actor_token: 'x' }, 'invalid_request'],
  [{ scope: 'a' }, 'invalid_scope'],
  [{ audience: 'nobody' }, 'invalid_target'],
  [{ audience: 'registry' }, 'invalid_target'],
])('%o is refused as %s', async (form, error) => {
  await expect(ask(form)).rejects.toMatchObject({ status: 400, error });
});

test('a client needs the scope', async () => {
  await expect(ask({}, { ...client, scopes: ['a'] })).rejects.toMatchObject({ error: 'unauthorized_client' });
  expect(await ask({}, { ...client, scopes: ['*'] })).toMatchObject({ token_type: 'N_A' });
});

test('before the registrations are known nobody says that there is no such service', async () => {
  isComplete = false;
  await expect(ask({ audience: 'nobody' })).rejects.toMatchObject({ code: 'DISCOVERY_UNAVAILABLE' });
});
