import { setTimeout as sleep } from 'node:timers/promises';
import { errors, exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { systemClock } from '../clock.ts';
import { createKeySet } from './key-sets.ts';

const url = new URL('http://issuer.example/keys');
let pair: Awaited<ReturnType<typeof generateKeyPair>>;

beforeAll(async () => {
  pair = await generateKeyPair('ES256');
});

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 });
  return () => vi.useRealTimers();
});

/** An issuer whose key set is, or is not, to be had, at a time of the test's. */
function startIssuer(persistsMs = 0) {
  const issuer = { answer: async () => new Response('away', { status: 502 }), fetches: 0 };
  const fetch = () => {
    issuer.fetches += 1;
    return issuer.answer();
  };
  const clock = { ...systemClock, monotonicMs: () => Date.now() };
  const keySet = createKeySet(url, { clock, fetch, persistsMs });
  const verify = async (kid = 'one') => {
    const token = await new SignJWT({ sub: 'tests' }).setProtectedHeader({ alg: 'ES256', kid }).sign(pair.privateKey);
    return (await jwtVerify(token, keySet)).payload.sub;
  };
  return { issuer, verify };
}

async function published(): Promise<Response> {
  return Response.json({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }] });
}

/** Not the token's, for which verifying throws a JOSEError. */
async function expectUnavailable(verifying: Promise<unknown>): Promise<void> {
  const error = await verifying.catch((thrown: unknown) => thrown);
  expect(error).not.toBeInstanceOf(errors.JOSEError);
  expect(error).toMatchObject({ message: 'The key set cannot be had', cause: expect.any(Error) });
}

test.each<[string, () => Promise<Response>]>([
  ['is away', () => Promise.reject(new TypeError('fetch failed'))],
  ['answers with an error', async () => new Response('away', { status: 502 })],
  ['sends elsewhere', async () => Response.redirect('http://127.0.0.1/keys')],
  ['answers with nonsense', async () => new Response('<html>')],
  ['answers with something else', async () => Response.json({ key: [] })],
  [
    'takes too long',
    () => Promise.reject(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
  ],
])('an issuer that %s is asked again after a second, not for each token', async (_what, answer) => {
  const { issuer, verify } = startIssuer();
  issuer.answer = answer;
  for (let count = 0; count < 10; count += 1) await expectUnavailable(verify());
  expect(issuer.fetches).toBe(1);
  vi.setSystemTime(999);
  issuer.answer = published;
  await expectUnavailable(verify());
  vi.setSystemTime(1000);
  expect(await verify()).toBe('tests');
  expect(issuer.fetches).toBe(2);
});

test('tokens of known keys hold while a fetch for an unknown one fails', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  expect(await verify()).toBe('tests');
  vi.setSystemTime(60_000);
  issuer.answer = () => Promise.reject(new TypeError('fetch failed'));
  for (let count = 0; count < 10; count += 1) {
    await expectUnavailable(verify('unknown'));
    expect(await verify()).toBe('tests');
  }
  expect(issuer.fetches).toBe(2);
});

test('keys are fetched once for all that ask at a time, for an unknown one after half a minute, and again after ten minutes', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = () => sleep(50).then(published);
  expect(await Promise.all([verify(), verify(), verify()])).toEqual(['tests', 'tests', 'tests']);
  expect(issuer.fetches).toBe(1);
  vi.setSystemTime(29_999);
  await expect(verify('unknown')).rejects.toThrow('no applicable key found');
  expect(issuer.fetches).toBe(1);
  vi.setSystemTime(30_000);
  await expect(verify('unknown')).rejects.toThrow('no applicable key found');
  await verify();
  expect(issuer.fetches).toBe(2);
  vi.setSystemTime(629_999);
  await verify();
  expect(issuer.fetches).toBe(2);
  vi.setSystemTime(630_000);
  await verify();
  expect(issuer.fetches).toBe(3);
});

test('a key that the issuer has since published is found', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  await verify();
  const added = { ...(await exportJWK(pair.publicKey)), kid: 'two', alg: 'ES256' };
  issuer.answer = async () => Response.json({ keys: [added] });
  vi.setSystemTime(30_000);
  expect(await verify('two')).toBe('tests');
  await expect(verify('one')).rejects.toThrow('no applicable key found');
});

test.each<[string, () => Promise<Response>]>([
  ['refuses connections', () => Promise.reject(new TypeError('fetch failed'))],
  ['answers 503', async () => new Response('starting', { status: 503 })],
])('nobody hears of an issuer that %s for a moment', async (_what, answer) => {
  const { issuer, verify } = startIssuer(10_000);
  issuer.answer = async () => {
    if (issuer.fetches === 3) issuer.answer = published;
    return answer();
  };
  expect(await Promise.all([verify(), verify(), verify()])).toEqual(['tests', 'tests', 'tests']);
  expect(issuer.fetches).toBe(4);
});

test('keys that were had count for an hour while the issuer is away, and no other does', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  expect(await verify()).toBe('tests');
  issuer.answer = () => Promise.reject(new TypeError('fetch failed'));
  vi.setSystemTime(3_600_000);
  expect(await verify()).toBe('tests');
  await expectUnavailable(verify('unknown'));
  vi.setSystemTime(3_602_000);
  await expectUnavailable(verify());
});

test('while the issuer is away, nobody whose key was had waits for it, and it is asked all the same', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  await verify();
  vi.setSystemTime(600_001);
  issuer.answer = () => Promise.reject(new TypeError('fetch failed'));
  expect(await verify()).toBe('tests');
  vi.setSystemTime(602_000);
  const held = Promise.withResolvers<Response>();
  issuer.answer = () => held.promise;
  for (let count = 0; count < 10; count += 1) expect(await verify()).toBe('tests');
  expect(issuer.fetches).toBe(3);
  held.resolve(Response.json({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'two', alg: 'ES256' }] }));
  await vi.waitFor(() => expect(verify('one')).rejects.toThrow('no applicable key found'), { timeout: 30_000 });
  expect(await verify('two')).toBe('tests');
});

test('what is answered in place of keys does not make those that were had count for longer', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  await verify();
  issuer.answer = async () => new Response('<html>', { status: 200 });
  for (const ms of [1_800_000, 3_600_000]) {
    vi.setSystemTime(ms);
    expect(await verify()).toBe('tests');
    await vi.waitFor(() => expect(issuer.fetches).toBe(ms / 1_800_000 + 1), { timeout: 30_000 });
  }
  vi.setSystemTime(3_602_000);
  await expectUnavailable(verify());
});
