import { scryptSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { decodeJwt, exportJWK, exportSPKI, generateKeyPair, importJWK, type JWK, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { rollcall } from '../client/rollcall-process.ts';
import { freeze, thaw } from '../support/freeze.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistryProcess } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import {
  type Backend,
  createClient,
  forgedToken,
  hs256,
  requestToken,
  secretManifest,
  startBackend,
  startGatewayProcess,
  type TestClient,
  tokenOf,
} from './gateway.ts';

const EXTERNAL = 'https://issuer.example';
/** Nothing listens where its keys should be. */
const SILENT = 'https://silent.example';
/** What it publishes is no key set. */
const BABBLING = 'https://babbling.example';

let namespace: TestNamespace;
let registry: Replica;
let gateway: Replica;
let issuer: Backend;
let client: TestClient;
let hashed: TestClient;
/** The key that the gateway signs with, and what it says of the client. */
let own: { readonly kid: string; readonly key: CryptoKey; readonly jwk: JWK; readonly claims: JWTPayload };
let external: Awaited<ReturnType<typeof generateKeyPair>>;
let keySet: object[] = [];
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('identity');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistryProcess({ namespace: namespace.name, databaseUrl: database.url }));
  external = await generateKeyPair('RS256');
  keySet = [{ ...(await exportJWK(external.publicKey)), kid: 'ext-1', alg: 'RS256' }];
  issuer = stack.use(
    await startBackend(
      ({ url }, response) => void response.end(JSON.stringify(url === '/keys' ? { keys: keySet } : {})),
    ),
  );
  gateway = stack.use(await start());
  client = await createClient(namespace, { id: 'tests', scopes: ['a', 'b'] });
  hashed = await createClient(namespace, { id: 'hashed', stored: hashOf });
  own = await readOwn(await tokenOf(gateway, client));
  await tokenOf(gateway, hashed);
});

afterAll(() => stack.disposeAsync());

/** A process of its own: how long it takes to answer is measured. */
function start(): Promise<Replica> {
  const issuers = [
    { issuer: EXTERNAL, audience: 'rollcall-tests', jwksUrl: `${issuer.url}/keys`, defaultTier: 'standard' },
    { issuer: SILENT, audience: 'rollcall-tests', jwksUrl: 'http://127.0.0.1:9/keys', defaultTier: 'standard' },
    { issuer: BABBLING, audience: 'rollcall-tests', jwksUrl: `${issuer.url}/babble`, defaultTier: 'standard' },
  ];
  return startGatewayProcess({
    namespace,
    registry: registry.url,
    settings: {
      ROLLCALL_EXTERNAL_ISSUERS: JSON.stringify(issuers),
      ROLLCALL_LIMIT_ANONYMOUS: '10000',
      ROLLCALL_LIMIT_PREMIUM: '10000',
    },
  });
}

/** Reads the keys where the gateway keeps them. @param token one of its own. */
async function readOwn(token: string): Promise<typeof own> {
  const encoded = await namespace.kubectl([
    'get',
    'secret',
    'rollcall-gateway-keys',
    '-o',
    'jsonpath={.data.keys\\.json}',
  ]);
  const { keys } = JSON.parse(Buffer.from(encoded, 'base64').toString()) as {
    keys: { kid: string; privateJwk: JWK }[];
  };
  const [{ kid, privateJwk } = { kid: '', privateJwk: {} }] = keys;
  const key = await importJWK(privateJwk, 'ES256');
  if (key instanceof Uint8Array) throw new Error('The key is symmetric');
  return { kid, key, jwk: privateJwk, claims: decodeJwt(token) };
}

/** Asks for what the gateway lets any good token have: the registry's list is behind it. */
function ask(token: string, at = gateway): Promise<Response> {
  return fetch(`${at.url}/api/v1/registry/health`, { headers: { authorization: `Bearer ${token}` } });
}

async function statusWith(token: string, at = gateway): Promise<number> {
  const answer = await ask(token, at);
  await answer.arrayBuffer();
  return answer.status;
}

/** By which tier's limits a token is counted. */
async function policyOf(token: string): Promise<string | null> {
  return (await ask(token)).headers.get('ratelimit-policy');
}

/** Why a token is refused. */
async function refusalOf(token: string): Promise<{ status: number; message: string | undefined }> {
  const answer = await ask(token);
  const body = (await answer.json()) as { error?: { message: string } };
  return { status: answer.status, message: body.error?.message };
}

function refused(why: string): object {
  return { status: 401, message: `The bearer token is not valid. ${why}. Get a new one.` };
}

const nowSeconds = () => Math.floor(Date.now() / 1000);

/** What a good token of the gateway says, and more. A claim that is undefined is left out. */
function ownClaims(more: Readonly<Record<string, unknown>> = {}): JWTPayload {
  const all = { ...own.claims, iat: nowSeconds(), exp: nowSeconds() + 600, ...more };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

const ownHeader = (more: object = {}) => ({ alg: 'ES256', typ: 'at+jwt', kid: own.kid, ...more });

/** Signed with the gateway's own key. */
function ownToken(more: Readonly<Record<string, unknown>> = {}, header: object = {}): Promise<string> {
  return new SignJWT(ownClaims(more)).setProtectedHeader(ownHeader(header)).sign(own.key);
}

function externalClaims(more: Readonly<Record<string, unknown>> = {}): JWTPayload {
  const all = {
    iss: EXTERNAL,
    aud: 'rollcall-tests',
    sub: 'tests',
    iat: nowSeconds(),
    exp: nowSeconds() + 600,
    ...more,
  };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined));
}

/** Signed with the key of the other issuer. */
function externalToken(more: Readonly<Record<string, unknown>> = {}, kid = 'ext-1'): Promise<string> {
  return new SignJWT(externalClaims(more)).setProtectedHeader({ alg: 'RS256', kid }).sign(external.privateKey);
}

/**
 * Asks for a token with a wrong secret.
 *
 * @returns what must be the same for all, and how long it took.
 */
async function timed(id: string) {
  const startedAt = performance.now();
  const answer = await requestToken(gateway, { id, secret: 'not-the-secret-of-any' });
  const { status, headers } = answer;
  const same = { status, body: await answer.text(), authenticate: headers.get('www-authenticate') };
  return { same, ms: performance.now() - startedAt };
}

function unpadded(bytes: Buffer): string {
  return bytes.toString('base64').replaceAll('=', '');
}

/** As the command line makes it, by default. */
function hashOf(secret: string, { ln = 14, p = 5 } = {}): string {
  const salt = Buffer.from('0123456789abcdef');
  const hash = scryptSync(secret, salt, 32, { N: 2 ** ln, r: 8, p });
  return `$scrypt$ln=${ln},r=8,p=${p}$${unpadded(salt)}$${unpadded(hash)}`;
}

function apiClient(name: string, secretName: string): object {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ApiClient',
    metadata: { name },
    spec: { clientId: name === 'twin' ? 'tests' : name, secretRef: { name: secretName } },
  };
}

async function readinessOf(name: string): Promise<string> {
  return namespace.kubectl(['get', 'apiclient', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")]}']);
}

async function published(at: Replica): Promise<{ readonly keys: readonly object[] }> {
  return (await fetch(`${at.url}/.well-known/jwks.json`)).json() as Promise<{ keys: object[] }>;
}

describe('the token endpoint', () => {
  test('issues what RFC 6749 and RFC 9068 say', async () => {
    const answer = await requestToken(gateway, client, { scope: 'b' });
    expect(answer.status).toBe(200);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    const body = (await answer.json()) as { access_token: string };
    expect(body).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 3600, scope: 'b' });
    const [header, payload] = body.access_token.split('.', 2).map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(header ?? '')).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: expect.any(String) });
    expect(JSON.parse(payload ?? '')).toMatchObject({ sub: 'tests', client_id: 'tests', tier: 'premium', scope: 'b' });
    expect(payload).not.toContain(client.secret);
    expect(await statusWith(body.access_token)).toBe(200);
  });

  test('accepts id and secret in the form, too', async () => {
    const answer = await fetch(`${gateway.url}/api/v1/auth/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: client.id,
        client_secret: client.secret,
      }),
    });
    expect(await answer.json()).toMatchObject({ token_type: 'Bearer', scope: 'a b' });
  });

  test.each([
    { name: 'a wrong secret', id: 'tests', secret: 'wrong', form: {}, status: 401, error: 'invalid_client' },
    { name: 'an unknown client', id: 'nobody', secret: 'wrong', form: {}, status: 401, error: 'invalid_client' },
    { name: 'a scope it lacks', id: 'tests', form: { scope: 'a admin' }, status: 400, error: 'invalid_scope' },
    {
      name: 'another grant',
      id: 'tests',
      form: { grant_type: 'password' },
      status: 400,
      error: 'unsupported_grant_type',
    },
  ])('refuses $name', async ({ id, secret = client.secret, form, status, error }) => {
    const answer = await requestToken(gateway, { id, secret }, form);
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({ status, body: { error } });
  });

  test('a client that may do everything may ask for less', async () => {
    const everything = await createClient(namespace, { id: 'everything', scopes: ['*'] });
    await tokenOf(gateway, everything);
    const answer = await requestToken(gateway, everything, { scope: 'jobs:read' });
    expect(await answer.json()).toMatchObject({ token_type: 'Bearer', scope: 'jobs:read' });
  });

  test('issues no token that is too long to be accepted', async () => {
    const verbose = await createClient(namespace, { id: 'verbose', scopes: ['*'] });
    await tokenOf(gateway, verbose);
    const long = await requestToken(gateway, verbose, { scope: 'a'.repeat(5500) });
    const { access_token } = (await long.json()) as { access_token: string };
    expect(await statusWith(access_token)).toBe(200);
    const longer = await requestToken(gateway, verbose, { scope: 'a'.repeat(7000) });
    expect({ status: longer.status, body: await longer.json() }).toMatchObject({
      status: 400,
      body: { error: 'invalid_scope' },
    });
  });

  test('answers the same, and as slowly, whether there is such a client or not, and whatever is stored of its secret', async () => {
    const ids = ['tests', 'hashed', 'cheap', 'nobody'];
    await namespace.kubectl(['apply', '-f', '-'], {
      stdin: [apiClient('cheap', 'cheap'), secretManifest('cheap', hashOf('not-the-secret', { ln: 12, p: 1 }))]
        .map((each) => JSON.stringify(each))
        .join('\n---\n'),
    });
    await vi.waitFor(async () => expect(await readinessOf('cheap')).toContain('SecretInvalid'), { timeout: 10_000 });
    const fastest = new Map<string, number>();
    const answers: object[] = [];
    for (let round = 0; round < 7; round += 1) {
      for (const id of ids) {
        const { same, ms } = await timed(id);
        answers.push(same);
        fastest.set(id, Math.min(ms, fastest.get(id) ?? ms));
      }
    }
    expect(answers).toEqual(answers.map(() => answers[0]));
    // A hash costs tens of milliseconds: leaving it out, or a cheaper one, would show in the
    // fastest of several.
    const times = [...fastest.values()];
    expect(Math.min(...times)).toBeGreaterThan(Math.max(...times) / 2);
  });

  test('a Secret may hold the scrypt hash alone', async () => {
    expect(await statusWith(await tokenOf(gateway, hashed))).toBe(200);
    expect((await requestToken(gateway, { ...hashed, secret: 'wrong' })).status).toBe(401);
  });

  test('another tier of the client is that of new tokens', async () => {
    const rising = await createClient(namespace, { id: 'rising', tier: 'Free' });
    const [seen, unseen] = [await tokenOf(gateway, rising), await tokenOf(gateway, rising)];
    expect(await policyOf(seen)).toContain('"free"');
    await namespace.kubectl(['patch', 'apiclient', 'rising', '--type=merge', '--patch={"spec":{"tier":"Premium"}}']);
    const risen = await vi.waitFor(
      async () => {
        const token = await tokenOf(gateway, rising);
        expect(decodeJwt(token)).toMatchObject({ tier: 'premium' });
        return token;
      },
      { timeout: 10_000, interval: 200 },
    );
    expect(await policyOf(risen)).toContain('"premium"');
    for (const token of [seen, unseen]) expect(await policyOf(token)).toContain('"free"');
  });
});

test('rollcall clients create makes a client that kubectl applies', async () => {
  const made = await rollcall(['clients', 'create', 'Made_By.CLI', '--tier', 'Standard', '--scope', 'a']);
  await namespace.kubectl(['apply', '-f', '-'], { stdin: made.out });
  const [, secret = ''] = /secret: +(\S+)/.exec(made.err) ?? [];
  expect(await namespace.kubectl(['get', 'secret', 'made-by.cli-api-client', '-o', 'yaml'])).not.toContain(secret);
  expect(await statusWith(await tokenOf(gateway, { id: 'Made_By.CLI', secret }))).toBe(200);
});

test('what the tests sign is a good token, but for what they change', async () => {
  expect([await statusWith(await ownToken()), await statusWith(await externalToken())]).toEqual([200, 200]);
});

test('a token is good until its end and as long as clocks may differ, used before or not', async () => {
  const exp = nowSeconds();
  const [used, unused] = [await ownToken({ exp }), await ownToken({ exp, jti: 'unused' })];
  expect([await statusWith(used), await statusWith(used)]).toEqual([200, 200]);
  // Clocks may differ by five seconds; a timer may be a little early.
  await sleep((exp + 5) * 1000 - Date.now() + 50);
  for (const token of [used, unused]) expect(await refusalOf(token)).toEqual(refused('It has expired'));
  expect(await statusWith(await ownToken({ nbf: nowSeconds() + 4 }))).toBe(200);
});

describe('a token that is refused', () => {
  const now = nowSeconds();

  test.each<{ name: string; make: () => string | Promise<string>; why: string }>([
    { name: 'garbage', make: () => 'abc', why: 'It is no JSON Web Token' },
    { name: 'three parts of garbage', make: () => 'a.b.c', why: 'It is no JSON Web Token' },
    {
      name: 'alg none',
      make: () => forgedToken(ownHeader({ alg: 'none' }), ownClaims()),
      why: 'Its algorithm is not acceptable',
    },
    {
      name: 'alg none, of another issuer',
      make: () => forgedToken({ alg: 'none', kid: 'ext-1' }, externalClaims()),
      why: 'Its algorithm is not acceptable',
    },
    {
      name: 'alg none with a signature',
      make: async () => forgedToken(ownHeader({ alg: 'none' }), ownClaims(), () => 'c2ln'),
      why: 'Its algorithm is not acceptable',
    },
    {
      name: 'other claims than were signed',
      make: async () => {
        const [header, , signature] = (await ownToken()).split('.');
        const claims = Buffer.from(JSON.stringify(ownClaims({ scope: '*' }))).toString('base64url');
        return [header, claims, signature].join('.');
      },
      why: 'Its signature does not fit',
    },
    {
      name: 'the id of our key, and another key',
      make: async () => {
        const { privateKey } = await generateKeyPair('ES256');
        return new SignJWT(ownClaims()).setProtectedHeader(ownHeader()).sign(privateKey);
      },
      why: 'Its signature does not fit',
    },
    {
      name: 'our key, and an id that is not known',
      make: () => ownToken({}, { kid: 'unheard-of' }),
      why: 'It was signed with a key that is not known',
    },
    {
      name: 'our key, and no id',
      make: () => ownToken({}, { kid: undefined }),
      why: 'It was signed with a key that is not known',
    },
    {
      name: 'the key of another issuer in our name',
      make: () => externalToken({ ...ownClaims() }),
      why: 'It was signed with a key that is not known',
    },
    {
      name: 'our key in the name of another issuer',
      make: () => new SignJWT(externalClaims()).setProtectedHeader(ownHeader()).sign(own.key),
      why: 'It was signed with a key that is not known',
    },
    {
      name: 'an issuer that is not known',
      make: () => ownToken({ iss: 'https://evil.example' }),
      why: 'Its iss is not acceptable',
    },
    {
      name: 'the type of what services are shown',
      make: () => ownToken({}, { typ: 'rollcall-identity+jwt' }),
      why: 'Its typ is not acceptable',
    },
    { name: '12 kB, signed well', make: () => ownToken({ padding: 'a'.repeat(9000) }), why: 'It is too long' },
  ])('$name', async ({ make, why }) => {
    expect(await refusalOf(await make())).toEqual(refused(why));
  });

  test('100 kB, signed well', async () => {
    expect(await statusWith(await ownToken({ padding: 'a'.repeat(75_000) }))).toBe(431);
  });

  test('HS256 with the public key as the secret', async () => {
    const { d: _private, ...publicJwk } = own.jwk;
    const key = await importJWK(publicJwk, 'ES256', { extractable: true });
    const { keys } = await published(gateway);
    const pem = await exportSPKI(key as CryptoKey);
    const secrets = [JSON.stringify(keys[0]), JSON.stringify(keys), JSON.stringify(publicJwk), pem, pem.trim()];
    for (const secret of secrets) {
      const token = forgedToken(ownHeader({ alg: 'HS256' }), ownClaims(), hs256(secret));
      expect(await refusalOf(token)).toEqual(refused('Its algorithm is not acceptable'));
    }
    const theirs = await exportSPKI(external.publicKey);
    const token = forgedToken({ alg: 'HS256', kid: 'ext-1' }, externalClaims(), hs256(theirs));
    expect(await refusalOf(token)).toEqual(refused('Its algorithm is not acceptable'));
  });

  test.each([
    { name: 'expired', more: { exp: now - 60 }, why: 'It has expired' },
    { name: 'not yet valid', more: { nbf: now + 600 }, why: 'Its nbf is not acceptable' },
    { name: 'for somebody else', more: { aud: 'other' }, why: 'Its aud is not acceptable' },
    { name: 'without audience', more: { aud: undefined }, why: 'Its aud is not acceptable' },
    { name: 'without expiry', more: { exp: undefined }, why: 'Its exp is not acceptable' },
    { name: 'without subject', more: { sub: undefined }, why: 'Its sub is not acceptable' },
    { name: 'with an expiry in words', more: { exp: 'tomorrow' }, why: 'Its exp is not acceptable' },
    { name: 'with a start in a list', more: { nbf: [now] }, why: 'Its nbf is not acceptable' },
    { name: 'with an issue time in words', more: { iat: 'now' }, why: 'Its iat is not acceptable' },
    { name: 'with an expiry beyond all dates', more: { exp: 9e15 }, why: 'Its exp is not acceptable' },
    { name: 'with an audience that is a number', more: { aud: 5 }, why: 'Its aud is not acceptable' },
    { name: 'with a scope that is a number', more: { scope: 5 }, why: 'Its scope is not acceptable' },
    { name: 'with scopes that are no texts', more: { scope: ['a', {}] }, why: 'Its scope is not acceptable' },
  ])('of ours and of another issuer, $name', async ({ more, why }) => {
    expect(await refusalOf(await ownToken(more))).toEqual(refused(why));
    expect(await refusalOf(await externalToken(more))).toEqual(refused(why));
  });

  test('none, two, or of another scheme', async () => {
    const url = `${gateway.url}/api/v1/registry/health`;
    const answer = await fetch(url);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    // It is counted, for the address, and says so.
    expect(answer.headers.get('x-ratelimit-limit')).toMatch(/^\d+$/);
    expect(await answer.json()).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
    expect((await fetch(url, { headers: { authorization: 'Basic YTpi' } })).status).toBe(401);
    const good = await tokenOf(gateway, client);
    expect((await fetch(url, { headers: { authorization: `Bearer ${good}, Bearer x` } })).status).toBe(401);
    expect((await fetch(`${url}?access_token=${good}`)).status).toBe(401);
  });
});

describe('another issuer', () => {
  test('may say what no header can hold, and breaks nothing by it', async () => {
    expect(await statusWith(await externalToken({ sub: 'J\u00f6rg \u2713', scope: '\u2713 a' }))).toBe(200);
    expect(await refusalOf(await externalToken({ sub: 'half \ud800' }))).toEqual(refused('Its sub is not acceptable'));
  });

  test.each([5, true, null, [], {}, ''])('cannot have %j for its subject', async (sub) => {
    expect(await refusalOf(await externalToken({ sub }))).toEqual(refused('Its sub is not acceptable'));
  });

  test('may list scopes, and call them scp', async () => {
    for (const claims of [{ scope: ['a', 'b'] }, { scp: ['a'] }, { scp: 'a b' }]) {
      expect(await statusWith(await externalToken(claims))).toBe(200);
    }
  });

  test('is believed by its keys, which unknown ones do not make us fetch again and again', async () => {
    expect(await statusWith(await externalToken())).toBe(200);
    // A subject of theirs is not ours of the same name.
    expect(await policyOf(await externalToken())).toContain('"standard"');
    const before = issuer.requests.length;
    for (let count = 0; count < 20; count += 1) {
      const token = await externalToken({}, `no-such-${count}`);
      expect(await refusalOf(token)).toEqual(refused('It was signed with a key that is not known'));
    }
    expect(issuer.requests.length - before).toBeLessThanOrEqual(1);
  });
});

test.each([SILENT, BABBLING])(
  'that the keys of %s cannot be had is no fault of its tokens, nor of ours',
  async (iss) => {
    const answer = await ask(await externalToken({ iss }));
    expect({ status: answer.status, body: await answer.json() }).toMatchObject({
      status: 503,
      body: { error: { code: 'IDENTITY_UNAVAILABLE' } },
    });
    expect([await statusWith(await ownToken()), await statusWith(await externalToken())]).toEqual([200, 200]);
  },
);

describe('revocation', () => {
  test('a changed secret ends the tokens of the old one within a second, in all replicas', async () => {
    await using second = await start();
    const changing = await createClient(namespace, { id: 'changing' });
    const token = await tokenOf(gateway, changing);
    await vi.waitFor(async () => expect(await statusWith(token, second)).toBe(200), { timeout: 10_000 });
    await namespace.kubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify(secretManifest('changing', 'another-secret-of-it')),
    });
    for (const at of [gateway, second]) {
      await vi.waitFor(async () => expect(await statusWith(token, at)).toBe(401), { timeout: 30_000, interval: 20 });
    }
    const next = { id: 'changing', secret: 'another-secret-of-it' };
    expect(await statusWith(await tokenOf(gateway, next))).toBe(200);
    expect((await requestToken(gateway, changing)).status).toBe(401);
  });

  test('a deleted client is out within a second, and its like-named successor does not inherit its tokens', async () => {
    const token = await tokenOf(gateway, await createClient(namespace, { id: 'leaving' }));
    expect(await statusWith(token)).toBe(200);
    await namespace.kubectl(['delete', 'apiclient', 'leaving']);
    await vi.waitFor(async () => expect(await statusWith(token)).toBe(401), { timeout: 30_000, interval: 20 });
    const successor = await createClient(namespace, { id: 'leaving' });
    await tokenOf(gateway, successor);
    expect(await statusWith(token)).toBe(401);
  });
});

test('kubectl shows whether a client may ask for tokens, and why not', async () => {
  const objects = [
    apiClient('lonely', 'nowhere'),
    apiClient('twin', 'tests'),
    apiClient('weak', 'weak'),
    secretManifest('weak', 'short'),
    {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'unlabelled' },
      stringData: { secret: 'a-secret-without-label' },
    },
    apiClient('hidden', 'unlabelled'),
  ];
  await namespace.kubectl(['apply', '-f', '-'], { stdin: objects.map((each) => JSON.stringify(each)).join('\n---\n') });
  const expected = {
    lonely: 'SecretMissing',
    twin: 'ClientIdTaken',
    weak: 'SecretInvalid',
    hidden: 'SecretMissing',
    tests: 'Ready',
  };
  for (const [name, reason] of Object.entries(expected)) {
    await vi.waitFor(async () => expect(await readinessOf(name)).toContain(`"${reason}"`), {
      timeout: 10_000,
      interval: 200,
    });
  }
  const listed = await namespace.kubectl(['get', 'apiclients']);
  expect(listed).toMatch(/^tests +tests +Premium +\["a","b"\] +True/m);
});

test('all replicas sign with the same keys, of which nothing private is published', async () => {
  await using second = await start();
  const ours = await published(gateway);
  expect(await published(second)).toEqual(ours);
  expect(Object.keys(ours.keys[0] ?? {}).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
  expect(await statusWith(await tokenOf(second, client), gateway)).toBe(200);
});

test('tokens go on being checked while the API server’s objects stay as they are and the registry is unavailable', async () => {
  const token = await tokenOf(gateway, client);
  await freeze(registry.process.pid);
  try {
    await sleep(500);
    const answer = await fetch(`${gateway.url}/api/metrics`, { headers: { authorization: `Bearer ${token}` } });
    expect(answer.status).toBe(403);
  } finally {
    thaw(registry.process.pid);
  }
});
