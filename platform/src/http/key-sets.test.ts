import { setTimeout as sleep } from 'node:timers/promises';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import { beforeAll, expect, test } from 'vitest';
import { systemClock } from '../clock.ts';
import { createKeySet, type KeySetFetch } from './key-sets.ts';

const url = new URL('http://issuer.example/keys');
let pair: Awaited<ReturnType<typeof generateKeyPair>>;

beforeAll(async () => {
  pair = await generateKeyPair('ES256');
});

/** An issuer whose key set is, or is not, to be had, at a time of the test's. */
function startIssuer() {
  const issuer = { answer: async () => new Response('away', { status: 502 }), nowMs: 0, fetches: 0 };
  const fetch: KeySetFetch = () => {
    issuer.fetches += 1;
    return issuer.answer();
  };
  const keySet = createKeySet(url, { clock: { ...systemClock, monotonicMs: () => issuer.nowMs }, fetch });
  const verify = async (kid = 'one') => {
    const token = await new SignJWT({ sub: 'tests' }).setProtectedHeader({ alg: 'ES256', kid }).sign(pair.privateKey);
    return (await jwtVerify(token, keySet)).payload.sub;
  };
  return { issuer, verify };
}

async function published(): Promise<Response> {
  return Response.json({ keys: [{ ...(await exportJWK(pair.publicKey)), kid: 'one', alg: 'ES256' }] });
}

test.each<[string, () => Promise<Response>, string]>([
  ['is away', () => Promise.reject(new TypeError('fetch failed')), 'fetch failed'],
  ['answers with an error', async () => new Response('away', { status: 502 }), 'The key set was answered with 502'],
  ['answers with nonsense', async () => new Response('<html>'), 'not valid JSON'],
  ['answers with something else', async () => Response.json({ key: [] }), 'The key set is none'],
  [
    'takes too long',
    () => Promise.reject(new DOMException('The operation was aborted due to timeout', 'TimeoutError')),
    'aborted due to timeout',
  ],
])('an issuer that %s is asked again after five seconds, not for each token', async (_what, answer, message) => {
  const { issuer, verify } = startIssuer();
  issuer.answer = answer;
  for (let count = 0; count < 10; count += 1) await expect(verify()).rejects.toThrow(message);
  expect(issuer.fetches).toBe(1);
  issuer.nowMs = 4999;
  issuer.answer = published;
  await expect(verify()).rejects.toThrow(message);
  issuer.nowMs = 5000;
  expect(await verify()).toBe('tests');
  expect(issuer.fetches).toBe(2);
});

test('tokens of known keys hold while a fetch for an unknown one fails', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  expect(await verify()).toBe('tests');
  issuer.nowMs = 60_000;
  issuer.answer = () => Promise.reject(new TypeError('fetch failed'));
  for (let count = 0; count < 10; count += 1) {
    await expect(verify('unknown')).rejects.toThrow('fetch failed');
    expect(await verify()).toBe('tests');
  }
  expect(issuer.fetches).toBe(2);
});

test('keys are fetched once for all that ask at a time, for an unknown one after half a minute, and again after ten minutes', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = () => sleep(50).then(published);
  expect(await Promise.all([verify(), verify(), verify()])).toEqual(['tests', 'tests', 'tests']);
  expect(issuer.fetches).toBe(1);
  issuer.nowMs = 29_999;
  await expect(verify('unknown')).rejects.toThrow('no applicable key found');
  expect(issuer.fetches).toBe(1);
  issuer.nowMs = 30_000;
  await expect(verify('unknown')).rejects.toThrow('no applicable key found');
  await verify();
  expect(issuer.fetches).toBe(2);
  issuer.nowMs = 629_999;
  await verify();
  expect(issuer.fetches).toBe(2);
  issuer.nowMs = 630_000;
  await verify();
  expect(issuer.fetches).toBe(3);
});

test('a key that the issuer has since published is found', async () => {
  const { issuer, verify } = startIssuer();
  issuer.answer = published;
  await verify();
  const added = { ...(await exportJWK(pair.publicKey)), kid: 'two', alg: 'ES256' };
  issuer.answer = async () => Response.json({ keys: [added] });
  issuer.nowMs = 30_000;
  expect(await verify('two')).toBe('tests');
  await expect(verify('one')).rejects.toThrow('no applicable key found');
});
