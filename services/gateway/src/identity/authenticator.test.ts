import { generateKeyPair, SignJWT } from 'jose';
import { beforeAll, expect, test } from 'vitest';
import { createAccessTokens } from './access-tokens.ts';
import type { KnownClient } from './api-clients.ts';
import { createAuthenticator, type TokenCapacity } from './authenticator.ts';
import { keepSecret } from './client-secret.ts';
import type { TokenCheck } from './external-issuers.ts';

const LIFETIME_SECONDS = 600;
const TOLERANCE_SECONDS = 5;
const START_SECONDS = 1_800_000_000;

let pair: Awaited<ReturnType<typeof generateKeyPair>>;

beforeAll(async () => {
  pair = await generateKeyPair('ES256');
});

function clientOf(more: Partial<KnownClient> = {}): KnownClient {
  const secret = keepSecret(Buffer.from('a-good-enough-secret'), Buffer.from('fingerprint key'));
  if (secret === undefined) throw new Error('The secret is none');
  return { clientId: 'shop', tier: 'standard', scopes: ['a', 'b'], secret, generation: 'one', ...more };
}

/** A gateway's identity in which the time and the clients are the test's. */
function startIdentity({ tokens: most = 100, characters = 1_000_000 }: Partial<TokenCapacity> = {}) {
  const state = { atSeconds: START_SECONDS, client: clientOf() as KnownClient | undefined, checks: 0, kid: 'one' };
  const clock = { now: () => new Date(state.atSeconds * 1000), monotonicMs: () => state.atSeconds * 1000 };
  const tokens = createAccessTokens({
    keys: {
      signing: () => ({ kid: 'one', key: pair.privateKey }),
      verifying: async (kid) => {
        state.checks += 1;
        return kid === state.kid ? pair.publicKey : undefined;
      },
      isKnown: (kid) => kid === state.kid,
    },
    clients: { find: (id) => (id === state.client?.clientId ? state.client : undefined) },
    clock,
    issuer: 'rollcall',
    audience: 'callers',
    lifetimeSeconds: LIFETIME_SECONDS,
    toleranceSeconds: TOLERANCE_SECONDS,
  });
  const authenticator = createAuthenticator({
    own: tokens,
    external: new Map(),
    clock,
    capacity: { tokens: most, characters },
  });
  return {
    state,
    stillHolds: (token: string) => authenticator.stillHolds(token),
    issue: async (scopes = ['a']) => (await tokens.issue(state.client ?? clientOf(), scopes)).token,
    authenticate: async (token: string) => authenticator.authenticate(token),
  };
}

interface Changes {
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly header?: Readonly<Record<string, unknown>>;
  readonly key?: CryptoKey;
}

/** Signs as the gateway does, but for what is changed. A claim that is undefined is left out. */
function signed({ claims = {}, header = {}, key = pair.privateKey }: Changes = {}): Promise<string> {
  const now = START_SECONDS;
  const usual = { iss: 'rollcall', aud: 'callers', sub: 'shop', iat: now, exp: now + 60, tier: 'free', scope: 'a' };
  const all = Object.entries({ ...usual, rollcall_generation: 'one', ...claims });
  return new SignJWT(Object.fromEntries(all.filter(([, value]) => value !== undefined)))
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt', kid: 'one', ...header })
    .sign(key);
}

test('a token that the gateway issued counts as what it says', async () => {
  const { issue, authenticate } = startIdentity();
  expect(await authenticate(await issue(['a', 'b']))).toEqual({
    subject: 'shop',
    tier: 'standard',
    scopes: new Set(['a', 'b']),
    expiresAtMs: (START_SECONDS + LIFETIME_SECONDS + TOLERANCE_SECONDS) * 1000,
    generation: 'one',
  });
});

test.each<{ name: string; changes: Changes; why: string }>([
  { name: 'without subject', changes: { claims: { sub: undefined } }, why: 'Its sub is not acceptable' },
  { name: 'without expiry', changes: { claims: { exp: undefined } }, why: 'Its exp is not acceptable' },
  { name: 'without time of issue', changes: { claims: { iat: undefined } }, why: 'Its iat is not acceptable' },
  { name: 'for another audience', changes: { claims: { aud: 'others' } }, why: 'Its aud is not acceptable' },
  { name: 'for no audience', changes: { claims: { aud: undefined } }, why: 'Its aud is not acceptable' },
  { name: 'of another issuer', changes: { claims: { iss: 'https://else.example' } }, why: 'Its iss is not acceptable' },
  { name: 'of no issuer', changes: { claims: { iss: undefined } }, why: 'Its iss is not acceptable' },
  { name: 'of another type', changes: { header: { typ: 'rollcall-identity+jwt' } }, why: 'Its typ is not acceptable' },
  { name: 'of no type', changes: { header: { typ: undefined } }, why: 'Its typ is not acceptable' },
  {
    name: 'with another key id',
    changes: { header: { kid: 'two' } },
    why: 'It was signed with a key that is not known',
  },
  {
    name: 'with no key id',
    changes: { header: { kid: undefined } },
    why: 'It was signed with a key that is not known',
  },
  { name: 'of a tier that there is not', changes: { claims: { tier: 'gold' } }, why: 'Its tier is not acceptable' },
  { name: 'of a client that there is not', changes: { claims: { sub: 'other' } }, why: 'It has been revoked' },
  { name: 'of another secret', changes: { claims: { rollcall_generation: 'two' } }, why: 'It has been revoked' },
  {
    name: 'of nobody, bound to nothing',
    changes: { claims: { sub: 'other', rollcall_generation: undefined } },
    why: 'It has been revoked',
  },
])('a token that is signed well is refused $name', async ({ changes, why }) => {
  const { authenticate } = startIdentity();
  await authenticate(await signed());
  const refused = authenticate(await signed(changes));
  await expect(refused).rejects.toMatchObject({ code: 'INVALID_TOKEN', message: expect.stringContaining(`${why}.`) });
});

const LATEST = 8.64e12;

test.each(['exp', 'nbf', 'iat'])('a token is refused whose %s no Date can hold', async (claim) => {
  const { authenticate } = startIdentity();
  for (const seconds of [LATEST, 9e15, 1e300]) {
    const refused = authenticate(await signed({ claims: { [claim]: seconds } }));
    await expect(refused).rejects.toThrow(`Its ${claim} is not acceptable`);
  }
});

test('a token may last as long as a Date can say when it ends', async () => {
  const { authenticate } = startIdentity();
  const { expiresAtMs } = await authenticate(await signed({ claims: { exp: LATEST - 86_400 } }));
  expect(new Date(expiresAtMs).toISOString()).toMatch(/^\+275760-09-12/);
});

test('a token that another key has signed under the id of ours is refused', async () => {
  const { authenticate } = startIdentity();
  const { privateKey } = await generateKeyPair('ES256');
  await expect(authenticate(await signed({ key: privateKey }))).rejects.toThrow('Its signature does not fit');
});

test.each([
  { name: 'in the last second of its life', claims: { exp: START_SECONDS + 1 } },
  { name: 'in the last second that clocks may differ by', claims: { exp: START_SECONDS - 4 } },
  { name: 'as long before it is valid as clocks may differ', claims: { nbf: START_SECONDS + 5 } },
])('a token is taken $name', async ({ claims }) => {
  const { authenticate } = startIdentity();
  expect(await authenticate(await signed({ claims }))).toMatchObject({ subject: 'shop' });
});

test.each([
  {
    name: 'once its end is as long ago as clocks may differ',
    claims: { exp: START_SECONDS - 5 },
    why: 'It has expired',
  },
  {
    name: 'a second earlier than clocks may differ',
    claims: { nbf: START_SECONDS + 6 },
    why: 'Its nbf is not acceptable',
  },
])('a token is refused $name', async ({ claims, why }) => {
  const { authenticate } = startIdentity();
  await expect(authenticate(await signed({ claims }))).rejects.toThrow(why);
});

test('a token that is remembered ends when it would if it were not', async () => {
  const { state, authenticate, stillHolds } = startIdentity();
  const token = await signed({ claims: { exp: START_SECONDS + 60 } });
  await authenticate(token);
  state.atSeconds += 60 + TOLERANCE_SECONDS - 0.001;
  await authenticate(token);
  expect([state.checks, stillHolds(token)]).toEqual([1, true]);
  state.atSeconds += 0.001;
  expect(stillHolds(token)).toBe(false);
  await expect(authenticate(token)).rejects.toThrow('It has expired');
});

test('a token that is remembered is void once its client is another or gone', async () => {
  for (const next of [undefined, clientOf({ generation: 'two' })]) {
    const { state, issue, authenticate, stillHolds } = startIdentity();
    const token = await issue();
    await authenticate(token);
    state.client = next;
    expect(stillHolds(token)).toBe(false);
    await expect(authenticate(token)).rejects.toThrow('It has been revoked');
  }
});

test('the tier of a token is the one that it was issued with, remembered or not', async () => {
  const [first, second] = [startIdentity(), startIdentity()];
  const token = await first.issue();
  expect(await first.authenticate(token)).toMatchObject({ tier: 'standard' });
  for (const { state } of [first, second]) state.client = clientOf({ tier: 'premium' });
  for (const { authenticate } of [first, second]) {
    expect(await authenticate(token)).toMatchObject({ tier: 'standard' });
    expect(await authenticate(await first.issue())).toMatchObject({ tier: 'premium' });
  }
});

test('a token that is remembered is not verified again', async () => {
  const { state, issue, authenticate } = startIdentity();
  const token = await issue();
  const caller = await authenticate(token);
  for (let count = 0; count < 5; count += 1) expect(await authenticate(token)).toBe(caller);
  expect(state.checks).toBe(1);
});

test('of more tokens than are remembered the oldest is forgotten, holds on and is verified anew', async () => {
  const { state, issue, authenticate, stillHolds } = startIdentity({ tokens: 3 });
  const tokens = await Promise.all(Array.from({ length: 4 }, () => issue()));
  const [first = '', ...others] = tokens;
  for (const token of tokens) await authenticate(token);
  expect(state.checks).toBe(4);
  for (const token of others) await authenticate(token);
  expect(state.checks).toBe(4);
  expect(stillHolds(first)).toBe(true);
  await authenticate(first);
  expect(state.checks).toBe(5);
  // The first has pushed out the one that was the oldest by then.
  await authenticate(others[0] ?? '');
  expect(state.checks).toBe(6);
});

test('of tokens that are together longer than what is remembered the oldest are forgotten, too', async () => {
  const { state, authenticate } = startIdentity({ characters: 10_000 });
  const long = await Promise.all(['a', 'b', 'c'].map((jti) => signed({ claims: { jti, padding: 'a'.repeat(2500) } })));
  for (const token of long) await authenticate(token);
  expect(state.checks).toBe(3);
  await authenticate(long[2] ?? '');
  await authenticate(long[1] ?? '');
  expect(state.checks).toBe(3);
  await authenticate(long[0] ?? '');
  expect(state.checks).toBe(4);
});

test('a token whose key is withdrawn is void at once, remembered or not', async () => {
  const { state, issue, authenticate, stillHolds } = startIdentity({ tokens: 1 });
  const [forgotten, remembered] = [await issue(), await issue()];
  await authenticate(forgotten);
  await authenticate(remembered);
  expect([stillHolds(forgotten), stillHolds(remembered)]).toEqual([true, true]);
  state.kid = 'two';
  expect([stillHolds(forgotten), stillHolds(remembered)]).toEqual([false, false]);
  await expect(authenticate(remembered)).rejects.toThrow('not known');
});

test('what is no scope is none (RFC 6749, section 3.3)', async () => {
  const { authenticate } = startIdentity();
  for (const scope of ['a:read \u2713 b"c x\ny * \0 \t', ['a:read', 'b c', 'x\ny', '*', '']]) {
    const { scopes } = await authenticate(await signed({ claims: { scope } }));
    expect([...scopes]).toEqual(['a:read', '*']);
  }
});

test('a token that is forgotten and void does not hold', async () => {
  const { state, issue, authenticate, stillHolds } = startIdentity({ tokens: 1 });
  const token = await issue();
  await authenticate(token);
  await authenticate(await issue());
  state.client = clientOf({ generation: 'two' });
  expect(stillHolds(token)).toBe(false);
});

test('what is refused takes nobody’s place', async () => {
  const { state, issue, authenticate } = startIdentity({ tokens: 1 });
  const token = await issue();
  await authenticate(token);
  for (const claims of [{ exp: START_SECONDS - 60 }, { aud: 'others' }]) {
    await expect(authenticate(await signed({ claims }))).rejects.toThrow('not valid');
  }
  const { checks } = state;
  await authenticate(token);
  expect(state.checks).toBe(checks);
});

test('a token of more than 8192 characters is refused, however well it is signed', async () => {
  const { authenticate } = startIdentity();
  const long = await signed({ claims: { padding: 'a'.repeat(5800) } });
  const longer = await signed({ claims: { padding: 'a'.repeat(5900) } });
  expect([long.length > 8000, long.length <= 8192, longer.length > 8192]).toEqual([true, true, true]);
  await authenticate(long);
  await expect(authenticate(longer)).rejects.toThrow('It is too long');
});

test('a token that is stale is checked again before it lets anybody in; what is open goes on', async () => {
  let nowMs = 0;
  let isGood = true;
  let checks = 0;
  const clock = { now: () => new Date(START_SECONDS * 1000 + nowMs), monotonicMs: () => nowMs };
  const caller = { subject: 'them#a', tier: 'free', scopes: new Set<string>(), expiresAtMs: Infinity } as const;
  const theirs: TokenCheck = async () => {
    checks += 1;
    if (!isGood) throw new Error('not known');
    return { caller, holds: () => true, staleAtMs: nowMs + 600_000 };
  };
  const own = { issuer: 'rollcall', check: theirs, holds: () => false, issue: () => Promise.reject(new Error('none')) };
  const capacity = { tokens: 10, characters: 100_000 };
  const authenticator = createAuthenticator({ own, external: new Map([['them', theirs]]), clock, capacity });
  const token = await signed({ claims: { iss: 'them', exp: START_SECONDS + 3600 } });
  await authenticator.authenticate(token);
  nowMs = 599_999;
  await authenticator.authenticate(token);
  expect(checks).toBe(1);
  nowMs = 600_000;
  await authenticator.authenticate(token);
  expect(checks).toBe(2);
  isGood = false;
  nowMs = 1_200_000;
  await expect(authenticator.authenticate(token)).rejects.toThrow('not known');
  expect(authenticator.stillHolds(token)).toBe(true);
});
