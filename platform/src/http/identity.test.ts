import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT } from 'jose';
import { afterAll, expect, test } from 'vitest';
import { createGatewayKeys } from './gateway-keys.ts';
import { createIdentityReader, IDENTITY_TOKEN_TYPE, identityAudience, identityHeaders } from './identity.ts';

const pair = await generateKeyPair('ES256');
const keySet = JSON.stringify({ keys: [{ ...(await exportJWK(pair.publicKey)), alg: 'ES256', kid: 'one' }] });
const server = createServer((_request, response) => response.end(keySet));
await once(server.listen(0, '127.0.0.1'), 'listening');
afterAll(() => void server.close());

let nowMs = Date.parse('2026-11-27T12:00:00Z');
const clock = { now: () => new Date(nowMs), monotonicMs: () => nowMs };
const reader = createIdentityReader({
  service: 'shop',
  issuer: 'rollcall',
  keys: createGatewayKeys(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`), clock),
  clock,
});
const read = (token: string) => reader.read({ headers: { [identityHeaders.token]: token } });

function tokenFor(lifetimeSeconds: number, service = 'shop', key = pair.privateKey): Promise<string> {
  return new SignJWT({ sub: 'ana', scope: 'a:read', aud: identityAudience(service), iss: 'rollcall' })
    .setProtectedHeader({ alg: 'ES256', kid: 'one', typ: IDENTITY_TOKEN_TYPE })
    .setExpirationTime(Math.floor(nowMs / 1000) + lifetimeSeconds)
    .sign(key);
}

test('an identity is checked once in half a minute, and not counted once it has expired', async () => {
  const token = await tokenFor(40);
  const first = await read(token);
  expect(first).toMatchObject({ subject: 'ana', scopes: new Set(['a:read']) });
  expect(await read(token)).toBe(first);
  nowMs += 30_000;
  const second = await read(token);
  expect(second).toEqual(first);
  expect(second).not.toBe(first);
  nowMs += 16_000;
  expect(await read(token)).toBeUndefined();
});

test('what is remembered of one identity is believed of no other', async () => {
  const token = await tokenFor(60);
  const [head, body] = token.split('.');
  const forged = await tokenFor(60, 'shop', (await generateKeyPair('ES256')).privateKey);
  expect(await read(token)).toBeDefined();
  expect(await read(`${head}.${body}.${forged.split('.')[2]}`)).toBeUndefined();
  expect(await read(await tokenFor(60, 'other'))).toBeUndefined();
});

test('of very many identities the first ones are checked again', async () => {
  const token = await tokenFor(60);
  const first = await read(token);
  for (let number = 0; number < 1000; number += 1) await read(await tokenFor(100 + number));
  expect(await read(token)).not.toBe(first);
});
