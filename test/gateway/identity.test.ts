import { scryptSync } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { rollcall } from '../client/rollcall-process.ts';
import { freeze, thaw } from '../support/freeze.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry, type TestRegistry } from '../support/registry.ts';
import type { Replica } from '../support/replica.ts';
import {
  type Backend,
  createClient,
  forgedToken,
  hs256,
  requestToken,
  secretManifest,
  startBackend,
  startGateway,
  type TestClient,
  tokenOf,
} from './gateway.ts';

const EXTERNAL = 'https://issuer.example';

let namespace: TestNamespace;
let registry: TestRegistry;
let gateway: Replica;
let issuer: Backend;
let client: TestClient;
let external: Awaited<ReturnType<typeof generateKeyPair>>;
let keySet: object[] = [];
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = stack.use(await createNamespace('identity'));
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  external = await generateKeyPair('RS256');
  keySet = [{ ...(await exportJWK(external.publicKey)), kid: 'ext-1', alg: 'RS256' }];
  issuer = stack.use(await startBackend((_, response) => void response.end(JSON.stringify({ keys: keySet }))));
  gateway = stack.use(await start());
  client = await createClient(namespace, { id: 'tests', scopes: ['a', 'b'] });
  await tokenOf(gateway, client);
});

afterAll(() => stack.disposeAsync());

function start(): Promise<Replica> {
  const issuers = [
    { issuer: EXTERNAL, audience: 'rollcall-tests', jwksUrl: `${issuer.url}/keys`, defaultTier: 'standard' },
  ];
  return startGateway({
    namespace,
    registry: registry.url,
    settings: {
      ROLLCALL_EXTERNAL_ISSUERS: JSON.stringify(issuers),
      ROLLCALL_LIMIT_ANONYMOUS: '10000',
      ROLLCALL_LIMIT_PREMIUM: '10000',
    },
  });
}

/** Whether the gateway lets a token in: the registry's list is behind it. */
async function statusWith(token: string, at = gateway): Promise<number> {
  const answer = await fetch(`${at.url}/api/v1/registry/services`, { headers: { authorization: `Bearer ${token}` } });
  await answer.arrayBuffer();
  return answer.status;
}

const claims = (more: JWTPayload = {}) => {
  const now = Math.floor(Date.now() / 1000);
  return { iss: 'rollcall', aud: 'rollcall', sub: 'tests', iat: now, exp: now + 600, ...more };
};

/** Asks for a token with a wrong secret. @returns what must be the same for all, and how long it took. */
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

function apiClient(name: string, secretName: string): object {
  return {
    apiVersion: 'rollcall.dev/v1alpha1',
    kind: 'ApiClient',
    metadata: { name },
    spec: { clientId: name === 'twin' ? 'tests' : name, secretRef: { name: secretName } },
  };
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

  test('takes id and secret in the form, too', async () => {
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

  test('answers the same, and as slowly, whether there is such a client or not', async () => {
    const runs: { known: number; unknown: number }[] = [];
    for (let round = 0; round < 7; round += 1) {
      const known = await timed('tests');
      const unknown = await timed('nobody');
      expect(unknown.same).toEqual(known.same);
      runs.push({ known: known.ms, unknown: unknown.ms });
    }
    // A hash costs tens of milliseconds: leaving it out would show in the fastest of several.
    const fastest = (of: 'known' | 'unknown') => Math.min(...runs.map((run) => run[of]));
    expect(fastest('unknown')).toBeGreaterThan(fastest('known') / 2);
    expect(fastest('known')).toBeGreaterThan(fastest('unknown') / 2);
  });

  test('a Secret may hold the scrypt hash alone', async () => {
    const salt = Buffer.from('0123456789abcdef');
    const hashed = await createClient(namespace, {
      id: 'hashed',
      stored: (secret) => {
        const hash = scryptSync(secret, salt, 32, { N: 2 ** 14, r: 8, p: 5 });
        return `$scrypt$ln=14,r=8,p=5$${unpadded(salt)}$${unpadded(hash)}`;
      },
    });
    expect(await statusWith(await tokenOf(gateway, hashed))).toBe(200);
    expect((await requestToken(gateway, { ...hashed, secret: 'wrong' })).status).toBe(401);
  });
});

test('rollcall clients create makes a client that kubectl applies', async () => {
  const made = await rollcall(['clients', 'create', 'Made_By.CLI', '--tier', 'Standard', '--scope', 'a']);
  await namespace.kubectl(['apply', '-f', '-'], { stdin: made.out });
  const [, secret = ''] = /secret: +(\S+)/.exec(made.err) ?? [];
  expect(await namespace.kubectl(['get', 'secret', 'made-by.cli-api-client', '-o', 'yaml'])).not.toContain(secret);
  expect(await statusWith(await tokenOf(gateway, { id: 'Made_By.CLI', secret }))).toBe(200);
});

describe('a token that is refused', () => {
  const now = Math.floor(Date.now() / 1000);
  test.each([
    { name: 'garbage', make: () => 'abc' },
    { name: 'three parts of garbage', make: () => 'a.b.c' },
    { name: 'alg none', make: () => forgedToken({ alg: 'none', typ: 'at+jwt' }, claims()) },
    {
      name: 'an unknown key',
      make: () => forgedToken({ alg: 'ES256', typ: 'at+jwt', kid: 'x' }, claims(), () => 'c2ln'),
    },
    {
      name: 'an unknown issuer',
      make: () => forgedToken({ alg: 'ES256' }, claims({ iss: 'https://evil.example' }), () => 'c2ln'),
    },
    { name: '100 kB', make: () => `${'a'.repeat(100_000)}.b.c` },
    { name: '12 kB', make: () => forgedToken({ alg: 'ES256', x: 'a'.repeat(9000) }, claims(), () => 'c2ln') },
  ])('$name', async ({ make }) => {
    expect([401, 431]).toContain(await statusWith(make()));
  });

  test('HS256 with the public key as the secret', async () => {
    const { keys } = (await (await fetch(`${gateway.url}/.well-known/jwks.json`)).json()) as {
      keys: { kid: string }[];
    };
    const [key] = keys;
    for (const secret of [JSON.stringify(key), Buffer.from(JSON.stringify(keys)).toString()]) {
      expect(
        await statusWith(forgedToken({ alg: 'HS256', typ: 'at+jwt', kid: key?.kid }, claims(), hs256(secret))),
      ).toBe(401);
    }
  });

  test.each([
    { name: 'expired', more: { exp: now - 60 } },
    { name: 'not yet valid', more: { nbf: now + 600 } },
    { name: 'for somebody else', more: { aud: 'other' } },
    { name: 'without expiry', more: { exp: undefined } },
    { name: 'without subject', more: { sub: undefined } },
  ])('of another issuer, $name', async ({ more }) => {
    const payload = { ...claims({ iss: EXTERNAL, aud: 'rollcall-tests' }), ...more };
    const present = Object.fromEntries(Object.entries(payload).filter(([, value]) => value !== undefined));
    const token = await new SignJWT(present)
      .setProtectedHeader({ alg: 'RS256', kid: 'ext-1' })
      .sign(external.privateKey);
    expect(await statusWith(token)).toBe(401);
  });

  test('none, two, or of another scheme', async () => {
    const url = `${gateway.url}/api/v1/registry/services`;
    const answer = await fetch(url);
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toMatch(/^Bearer/);
    expect(await answer.json()).toMatchObject({ error: { code: 'UNAUTHENTICATED' } });
    expect((await fetch(url, { headers: { authorization: 'Basic YTpi' } })).status).toBe(401);
    const good = await tokenOf(gateway, client);
    expect((await fetch(url, { headers: { authorization: `Bearer ${good}, Bearer x` } })).status).toBe(401);
    expect((await fetch(`${url}?access_token=${good}`)).status).toBe(401);
  });
});

describe('another issuer', () => {
  test('is believed by its keys, which unknown ones do not make us fetch again and again', async () => {
    const payload = claims({ iss: EXTERNAL, aud: 'rollcall-tests', sub: 'tests' });
    const sign = (kid: string, key: CryptoKey) =>
      new SignJWT(payload).setProtectedHeader({ alg: 'RS256', kid }).sign(key);
    expect(await statusWith(await sign('ext-1', external.privateKey))).toBe(200);
    // A subject of theirs is not ours of the same name.
    const asked = await fetch(`${gateway.url}/api/v1/registry/services`, {
      headers: { authorization: `Bearer ${await sign('ext-1', external.privateKey)}` },
    });
    expect(asked.headers.get('ratelimit-policy')).toContain('"standard"');
    const before = issuer.requests.length;
    for (let count = 0; count < 20; count += 1) await statusWith(await sign(`no-such-${count}`, external.privateKey));
    expect(issuer.requests.length - before).toBeLessThanOrEqual(1);
  });
});

describe('revocation', () => {
  test('a changed secret ends the tokens of the old one within a second, in all replicas', async () => {
    await using second = await start();
    const own = await createClient(namespace, { id: 'changing' });
    const token = await tokenOf(gateway, own);
    await vi.waitFor(async () => expect(await statusWith(token, second)).toBe(200), { timeout: 10_000 });
    await namespace.kubectl(['apply', '-f', '-'], {
      stdin: JSON.stringify(secretManifest('changing', 'another-secret-of-it')),
    });
    for (const at of [gateway, second]) {
      await vi.waitFor(async () => expect(await statusWith(token, at)).toBe(401), { timeout: 1000, interval: 20 });
    }
    const next = { id: 'changing', secret: 'another-secret-of-it' };
    expect(await statusWith(await tokenOf(gateway, next))).toBe(200);
    expect((await requestToken(gateway, own)).status).toBe(401);
  });

  test('a deleted client is out within a second, and its like-named successor does not inherit its tokens', async () => {
    const own = await createClient(namespace, { id: 'leaving' });
    const token = await tokenOf(gateway, own);
    expect(await statusWith(token)).toBe(200);
    await namespace.kubectl(['delete', 'apiclient', 'leaving']);
    await vi.waitFor(async () => expect(await statusWith(token)).toBe(401), { timeout: 1000, interval: 20 });
    const successor = await createClient(namespace, { id: 'leaving' });
    await tokenOf(gateway, successor);
    expect(await statusWith(token)).toBe(401);
  });
});

test('kubectl tells whether a client may ask for tokens, and why not', async () => {
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
  const reasonOf = async (name: string) =>
    namespace.kubectl(['get', 'apiclient', name, '-o', 'jsonpath={.status.conditions[?(@.type=="Ready")].reason}']);
  const expected = {
    lonely: 'SecretMissing',
    twin: 'ClientIdTaken',
    weak: 'SecretInvalid',
    hidden: 'SecretMissing',
    tests: 'Ready',
  };
  for (const [name, reason] of Object.entries(expected)) {
    await vi.waitFor(async () => expect(await reasonOf(name)).toBe(reason), { timeout: 10_000, interval: 200 });
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

test('tokens go on being checked while the API server’s objects stay as they are and the registry is away', async () => {
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
