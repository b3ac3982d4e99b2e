import { createECDH, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { systemClock } from '@rollcall/platform/clock.ts';
import { addressRules } from '@rollcall/platform/outbound/address-rules.ts';
import ece from 'http_ece';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import webPush from 'web-push';
import type { OutgoingPush } from '../domain/ports.ts';
import { createWebPush } from './webpush.ts';

const device = createECDH('prime256v1');
const p256dh = device.generateKeys('base64url');
const auth = randomBytes(16).toString('base64url');
const keys = webPush.generateVAPIDKeys();
const { signal } = new AbortController();

/** A push service, whose answers a test chooses. */
let server: Server;
let url: string;
let answer: { readonly status: number; readonly headers?: Readonly<Record<string, string>> };
let taken: { readonly headers: IncomingHttpHeaders; readonly body: Buffer }[] = [];

beforeAll(async () => {
  server = createServer((request, response) => {
    void (async () => {
      taken.push({ headers: request.headers, body: await buffer(request) });
      response.writeHead(answer.status, answer.headers).end();
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

beforeEach(() => {
  taken = [];
  answer = { status: 201, headers: { location: `${url}/m/1` } };
});

afterAll(() => void server.close());

function provider(mayConnect = addressRules.any) {
  const vapid = { subject: 'mailto:push@shop.example', ...keys };
  return createWebPush({ vapid, ttlSeconds: 3600, timeoutMs: 15_000, mayConnect }, { clock: systemClock });
}

function push(fields: Partial<OutgoingPush> = {}): OutgoingPush {
  const target = { platform: 'webpush', endpoint: `${url}/send/1`, p256dh, auth } as const;
  return { channel: 'push', id: 'm1', deduplicationId: 1, target, title: 'Hello', data: { parcel: '7' }, ...fields };
}

test('a message reaches the browser, which alone can read it', async () => {
  expect(await provider().send(push(), signal)).toEqual({ outcome: 'accepted', providerId: `${url}/m/1` });
  const [{ headers, body } = { headers: {}, body: Buffer.alloc(0) }] = taken;
  expect(headers).toMatchObject({ ttl: '3600', urgency: 'high', 'content-encoding': 'aes128gcm' });
  expect(body.includes('Hello')).toBe(false);
  const plain = ece.decrypt(body, { version: 'aes128gcm', privateKey: device, authSecret: auth });
  expect(JSON.parse(plain.toString('utf8'))).toEqual({ id: 'm1', title: 'Hello', data: { parcel: '7' } });
  const [, jwt = ''] = /^vapid t=([^,]+), k=/.exec(headers.authorization ?? '') ?? [];
  expect(decodeJwt(jwt)).toMatchObject({ aud: url, sub: 'mailto:push@shop.example' });
});

test.each([
  { status: 404, outcome: { outcome: 'refused', cause: 'recipient', reason: '404', suppress: { kind: 'token-gone' } } },
  { status: 410, outcome: { outcome: 'refused', cause: 'recipient', reason: '410', suppress: { kind: 'token-gone' } } },
  { status: 413, outcome: { outcome: 'refused', cause: 'size', reason: '413' } },
  { status: 403, outcome: { outcome: 'refused', cause: 'recipient', reason: '403' } },
  { status: 429, headers: { 'retry-after': '9' }, outcome: { outcome: 'failed', reason: '429', retryAfterMs: 9000 } },
  { status: 500, outcome: { outcome: 'unknown', reason: '500' } },
])('an answer of $status is $outcome', async ({ status, headers = {}, outcome }) => {
  answer = { status, headers };
  expect(await provider().send(push(), signal)).toEqual(outcome);
});

test('no message goes where the internet does not lead', async () => {
  expect(await provider(addressRules.public).send(push(), signal)).toEqual({
    outcome: 'refused',
    cause: 'recipient',
    reason: 'ADDRESS_REFUSED',
  });
  expect(taken).toEqual([]);
});

test('what is too large, or for keys that are none, does not leave', async () => {
  const large = await provider().send(push({ body: 'x'.repeat(4000) }), signal);
  expect(large).toEqual({ outcome: 'refused', cause: 'size', reason: 'too large' });
  const offCurve = Buffer.concat([Buffer.of(4), randomBytes(64)]).toString('base64url');
  const target = { platform: 'webpush', endpoint: url, p256dh: offCurve, auth } as const;
  expect(await provider().send(push({ target }), signal)).toEqual({
    outcome: 'refused',
    cause: 'recipient',
    reason: 'keys',
  });
  expect(taken).toEqual([]);
});
