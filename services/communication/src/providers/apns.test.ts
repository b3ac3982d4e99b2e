import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import {
  constants,
  createServer,
  type Http2Server,
  type IncomingHttpHeaders,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect, createServer as createTcpServer, type Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { systemClock } from '@rollcall/platform/clock.ts';
import { jwtVerify } from 'jose';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { OutgoingPush } from '../domain/ports.ts';
import { createApns } from './apns.ts';

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
const { signal } = new AbortController();
const token = 'ab'.repeat(32);

/** Apple's server, whose answers a test chooses. */
let server: Http2Server;
let baseUrl: URL;
let sessions: ServerHttp2Session[] = [];
let taken: { readonly headers: IncomingHttpHeaders; readonly body: unknown }[] = [];
let respond: (stream: ServerHttp2Stream) => void;
const providers: { close(): Promise<void> }[] = [];

beforeEach(async () => {
  sessions = [];
  taken = [];
  respond = (stream) => {
    stream.respond({ ':status': 200 });
    stream.end();
  };
  server = createServer();
  server.on('session', (session) => sessions.push(session));
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders) => {
    stream.on('error', () => undefined);
    void json(stream).then((body) => {
      taken.push({ headers, body });
      return respond(stream);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  baseUrl = new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
});

afterEach(async () => {
  for (const provider of providers.splice(0)) await provider.close();
  for (const session of sessions) session.destroy();
  server.close();
});

function apns(clock = systemClock, timeoutMs = 15_000) {
  const key = privateKey.export({ type: 'pkcs8', format: 'pem' });
  const settings = {
    baseUrl,
    teamId: 'TEAM',
    keyId: 'KEY',
    privateKey: key,
    topic: 'example.shop',
    ttlSeconds: 60,
    timeoutMs,
  };
  const provider = createApns(settings, { clock });
  providers.push(provider);
  return provider;
}

const push: OutgoingPush = {
  channel: 'push',
  id: '0191f0a0-0000-7000-8000-000000000001',
  deduplicationId: 1,
  target: { platform: 'apns', token },
  title: 'Hello',
  body: 'Your parcel is here',
  data: { parcel: '7', aps: 'mine' },
};

function answering(status: number, body: unknown) {
  respond = (stream) => {
    stream.respond({ ':status': status });
    stream.end(JSON.stringify(body));
  };
}

test('a message goes to the device, and one connection and one token serve for many', async () => {
  const provider = apns();
  expect(await provider.send(push, signal)).toEqual({ outcome: 'accepted', providerId: push.id });
  await provider.send(push, signal);
  expect(sessions).toHaveLength(1);
  const [first, second] = taken;
  expect(first?.headers).toMatchObject({
    ':path': `/3/device/${token}`,
    'apns-id': push.id,
    'apns-topic': 'example.shop',
    'apns-push-type': 'alert',
    'apns-priority': '10',
  });
  expect(first?.body).toEqual({
    parcel: '7',
    aps: { alert: { title: 'Hello', body: 'Your parcel is here' }, sound: 'default' },
  });
  expect(second?.headers.authorization).toBe(first?.headers.authorization);
  const jwt = String(first?.headers.authorization).replace('bearer ', '');
  const { payload, protectedHeader } = await jwtVerify(jwt, publicKey, { algorithms: ['ES256'] });
  expect(payload.iss).toBe('TEAM');
  expect(protectedHeader.kid).toBe('KEY');
});

test('a token is made again after 40 minutes, and where Apple calls it old', async () => {
  let nowMs = 0;
  const provider = apns({ now: () => new Date(nowMs), monotonicMs: () => nowMs });
  const used = async () => {
    await provider.send(push, signal);
    return taken.at(-1)?.headers.authorization;
  };
  const first = await used();
  nowMs = 2_399_000;
  expect(await used()).toBe(first);
  nowMs = 2_400_000;
  const second = await used();
  expect(second).not.toBe(first);
  answering(403, { reason: 'ExpiredProviderToken' });
  expect(await provider.send(push, signal)).toEqual({ outcome: 'failed', reason: 'ExpiredProviderToken' });
  nowMs += 1000;
  expect(await used()).not.toBe(second);
});

const gone = { outcome: 'refused', cause: 'recipient' };

test.each([
  {
    status: 410,
    body: { reason: 'Unregistered', timestamp: 1_795_168_800_000 },
    outcome: { ...gone, reason: 'Unregistered', suppress: { kind: 'token-gone', since: new Date(1_795_168_800_000) } },
  },
  {
    status: 400,
    body: { reason: 'BadDeviceToken' },
    outcome: { ...gone, reason: 'BadDeviceToken', suppress: { kind: 'token-gone' } },
  },
  {
    status: 400,
    body: { reason: 'BadMessageId' },
    outcome: { outcome: 'refused', cause: 'content', reason: 'BadMessageId' },
  },
  {
    status: 413,
    body: { reason: 'PayloadTooLarge' },
    outcome: { outcome: 'refused', cause: 'size', reason: 'PayloadTooLarge' },
  },
  {
    status: 400,
    body: { reason: 'TopicDisallowed' },
    outcome: { outcome: 'refused', cause: 'sender', reason: 'TopicDisallowed' },
  },
  {
    status: 403,
    body: { reason: 'InvalidProviderToken' },
    outcome: { outcome: 'refused', cause: 'credentials', reason: 'InvalidProviderToken' },
  },
  { status: 429, body: { reason: 'TooManyRequests' }, outcome: { outcome: 'failed', reason: '429 TooManyRequests' } },
  { status: 503, body: { reason: 'Shutdown' }, outcome: { outcome: 'failed', reason: '503 Shutdown' } },
  {
    status: 500,
    body: { reason: 'InternalServerError' },
    outcome: { outcome: 'unknown', reason: 'InternalServerError' },
  },
  { status: 400, body: 'garbage', outcome: { outcome: 'refused', cause: 'content', reason: '400' } },
])('an answer of $status $body is $outcome', async ({ status, body, outcome }) => {
  answering(status, body);
  expect(await apns().send(push, signal)).toEqual(outcome);
});

test('a connection that ends under a message leaves it unknown, and the next message has another one', async () => {
  const provider = apns();
  respond = (stream) => stream.session?.destroy();
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'unknown' });
  answering(200, {});
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
  expect(sessions).toHaveLength(2);
});

/** The word of the server may be on its way while a message is sent. */
async function untilAnother(provider: ReturnType<typeof apns>): Promise<void> {
  await vi.waitFor(
    async () => {
      expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
      expect(sessions).toHaveLength(2);
    },
    { timeout: 15_000 },
  );
}

test('after a server has said that it goes away, the next message has another connection', async () => {
  const provider = apns();
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
  const [session] = sessions;
  session?.goaway(constants.NGHTTP2_NO_ERROR);
  await untilAnother(provider);
});

test('after a connection was reset between two messages, the next one has another', async () => {
  const provider = apns();
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
  const [session] = sessions;
  session?.socket.resetAndDestroy();
  session?.destroy();
  await untilAnother(provider);
});

test('a connection whose other end is silent takes no further message', { timeout: 15_000 }, async () => {
  const ways: Socket[] = [];
  const port = Number(baseUrl.port);
  const mutes = new Set<Socket>();
  const way = createTcpServer((socket) => {
    const on = connect(port, '127.0.0.1');
    ways.push(socket, on);
    for (const each of [socket, on]) each.on('error', () => undefined);
    socket.on('data', (bytes) => void (mutes.has(socket) || on.write(bytes)));
    on.on('data', (bytes) => void (mutes.has(socket) || socket.write(bytes)));
  });
  way.listen(0, '127.0.0.1');
  await once(way, 'listening');
  baseUrl = new URL(`http://127.0.0.1:${(way.address() as AddressInfo).port}`);
  let nowMs = 0;
  const provider = apns({ now: () => new Date(nowMs), monotonicMs: () => nowMs });
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
  for (const socket of ways) mutes.add(socket);
  nowMs += 60_000;
  expect(await provider.send(push, signal)).toMatchObject({ outcome: 'accepted' });
  expect(sessions).toHaveLength(2);
  for (const socket of ways) socket.destroy();
  way.close();
});

test('a stream that was refused was not looked at', async () => {
  respond = (stream) => stream.close(constants.NGHTTP2_REFUSED_STREAM);
  expect(await apns().send(push, signal)).toMatchObject({ outcome: 'failed' });
});

test('no answer in time leaves a message unknown', async () => {
  respond = () => undefined;
  expect(await apns(systemClock, 2000).send(push, signal)).toMatchObject({ outcome: 'unknown' });
});

test('a server that is not there has taken nothing', async () => {
  server.close();
  await once(server, 'close');
  expect(await apns().send(push, signal)).toMatchObject({ outcome: 'failed' });
});
