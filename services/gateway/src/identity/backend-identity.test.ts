import { decodeJwt, generateKeyPair } from 'jose';
import { beforeEach, expect, test } from 'vitest';
import type { Caller } from '../admission/caller.ts';
import { type BackendIdentity, createBackendIdentity } from './backend-identity.ts';

const caller: Caller = { subject: 'shop', tier: 'free', scopes: new Set(['a']), expiresAtMs: Number.POSITIVE_INFINITY };
let nowMs: number;
let identity: BackendIdentity;

beforeEach(async () => {
  nowMs = 1000;
  const clock = { now: () => new Date(1_800_000_000_000 + nowMs), monotonicMs: () => nowMs };
  const { privateKey: key } = await generateKeyPair('ES256');
  identity = createBackendIdentity({ keys: { signing: () => ({ kid: 'one', key }) }, issuer: 'rollcall', clock });
});

async function tokenFor(service: string, of = caller): Promise<string> {
  const headers = await identity.headersFor(of, service);
  return headers[headers.indexOf('x-rollcall-identity') + 1] ?? '';
}

test('an identity serves one caller at one service', async () => {
  const mine = await tokenFor('a');
  expect(await tokenFor('a')).toBe(mine);
  expect(await tokenFor('b')).not.toBe(mine);
  expect(await tokenFor('a', { ...caller })).not.toBe(mine);
});

test('it is reused for 30 seconds', async () => {
  const first = await tokenFor('a');
  nowMs += 14_999;
  expect(await tokenFor('a')).toBe(first);
  nowMs += 15_001;
  expect(await tokenFor('a')).not.toBe(first);
});

test('it is not reused for longer because it was used late', async () => {
  const first = await tokenFor('a');
  nowMs += 29_900;
  expect(await tokenFor('a')).toBe(first);
  nowMs += 101;
  expect(await tokenFor('a')).not.toBe(first);
});

test.each([
  ['as long as its token', 7_200_000, 7200],
  ['for a day at most', Number.POSITIVE_INFINITY, 86_400],
])('what lasts is known %s', async (_, lastsMs, seconds) => {
  const headers = await identity.lastingHeadersFor({ ...caller, expiresAtMs: 1_800_000_001_000 + lastsMs }, 'a');
  const { exp = 0, iat = 0, aud } = decodeJwt(headers[headers.indexOf('x-rollcall-identity') + 1] ?? '');
  expect([exp - iat, aud]).toEqual([seconds, 'rollcall:service:a']);
});

test('what lasts names the secret of the client, with which it ends, and what is short does not', async () => {
  const of = { ...caller, expiresAtMs: 1_800_000_100_000, generation: '7' };
  const headers = await identity.lastingHeadersFor(of, 'a');
  expect(decodeJwt(headers[headers.indexOf('x-rollcall-identity') + 1] ?? '')['rollcall_generation']).toBe('7');
  expect(decodeJwt(await tokenFor('a', of))).not.toHaveProperty('rollcall_generation');
});
