import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type OutgoingHttpHeaders,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2';
import type { AddressInfo } from 'node:net';
import { status } from '@grpc/grpc-js';
import { waitUntil } from '@rollcall/local/wait.ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { gaugeOf, startProxy, type TestProxy, TOKEN, targetOf } from './grpc-fixture.ts';
import { frameType, initialWindow, rawCaller, windowUpdate } from './raw-http2.ts';

const CALLS = 20;
const END_STREAM = constants.NGHTTP2_FLAG_END_STREAM;
const HEAD = { ':status': 200, 'content-type': 'application/grpc' };
const message = Buffer.from([0, 0, 0, 0, 1, 7]);
const IDLE = { idleMs: 300, lingerMs: 500 };
const WAIT = { timeoutMs: 15_000 };

/** A backend that does with its streams what no library would. */
async function backendThat(onStream: (stream: ServerHttp2Stream) => void, settings: Settings = {}): Promise<number> {
  const server = createServer({ settings });
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    onStream(stream);
  });
  server.on('session', (session) => {
    session.on('error', () => undefined);
    onTestFinished(() => session.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  return (server.address() as AddressInfo).port;
}

function answerWith(stream: ServerHttp2Stream, bytes: number): void {
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
  stream.end(Buffer.alloc(bytes));
}

async function connectTo(proxy: TestProxy, settings: Settings = {}): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${proxy.port}`, { settings });
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

function begin(session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/rollcall.test.v1.Echo/Unary',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
    ...headers,
  });
  stream.on('error', () => undefined);
  return stream;
}

/** What a whole call is answered with. */
async function statusOfCall(session: ClientHttp2Session, headers: OutgoingHttpHeaders = {}): Promise<number> {
  const stream = begin(session, headers);
  const statuses: unknown[] = [];
  stream.on('response', (head) => statuses.push(head['grpc-status']));
  stream.on('trailers', (trailers) => statuses.push(trailers['grpc-status']));
  stream.resume();
  stream.end(message);
  await once(stream, 'close');
  return Number(statuses.findLast((found) => found !== undefined));
}

/** A connection to a backend is closed when it is idle: not while one stream is left on it. */
async function nothingIsLeft(proxy: TestProxy): Promise<void> {
  await waitUntil('no call is left', async () => (await gaugeOf(proxy, 'open_calls')) === 0, WAIT);
  await waitUntil(
    'no connection to the backend is left',
    async () => (await gaugeOf(proxy, 'upstream_connections')) === 0,
    WAIT,
  );
}

function answered(stream: ServerHttp2Stream): void {
  stream.resume();
  answerWith(stream, 200_000);
}

describe('a call that its caller gives up keeps nothing at the backend’s side', () => {
  test.each<[string, (call: ClientHttp2Stream, proxy: TestProxy) => void, OutgoingHttpHeaders]>([
    ['is cancelled', (call) => call.close(constants.NGHTTP2_CANCEL), {}],
    ['is reset without an error', (call) => call.close(constants.NGHTTP2_NO_ERROR), {}],
    ['loses its connection', (call) => call.session?.destroy(), {}],
    // By then all have their answer, on a busy machine too.
    ['is past its deadline', () => undefined, { 'grpc-timeout': '3S' }],
    ['loses its token', (_call, proxy) => proxy.callers.clear(), {}],
  ])('where it has an answer that it has not read, and %s', async (_how, giveUp, headers) => {
    await using proxy = await startProxy({ backendPort: await backendThat(answered), limits: IDLE });
    const session = await connectTo(proxy, { initialWindowSize: 10_000 });
    const calls = Array.from({ length: CALLS }, () => begin(session, headers));
    await Promise.all(
      calls.map(async (call) => {
        call.end(message);
        await once(call, 'data');
        call.pause();
      }),
    );
    for (const call of calls) giveUp(call, proxy);
    await nothingIsLeft(proxy);
    expect(await gaugeOf(proxy, 'open_calls')).toBe(0);
  });

  test('where the backend has answered with something that is no gRPC', async () => {
    const port = await backendThat((stream) => {
      stream.resume();
      stream.respond({ ':status': 503, 'content-type': 'text/html' });
      stream.end('<p>overloaded');
    });
    await using proxy = await startProxy({ backendPort: port, limits: IDLE });
    const session = await connectTo(proxy);
    const found = await Promise.all(Array.from({ length: CALLS }, () => statusOfCall(session)));
    expect(new Set(found)).toEqual(new Set([status.UNAVAILABLE]));
    await nothingIsLeft(proxy);
  });

  test('where it waits behind others for a backend that accepts one call at a time', async () => {
    const accepted: ServerHttp2Stream[] = [];
    const takeOne = (stream: ServerHttp2Stream): void => {
      stream.resume();
      accepted.push(stream);
    };
    const port = await backendThat(takeOne, { maxConcurrentStreams: 1 });
    await using proxy = await startProxy({ backendPort: port, limits: { ...IDLE, sessionsPerTarget: 1 } });
    const session = await connectTo(proxy);
    const held = begin(session);
    held.end(message);
    await waitUntil('the first is at the backend', async () => accepted.length === 1, WAIT);
    const timeout = { 'grpc-timeout': '300m' };
    const found = await Promise.all(Array.from({ length: CALLS }, () => statusOfCall(session, timeout)));
    expect(new Set(found)).toEqual(new Set([status.DEADLINE_EXCEEDED]));
    held.close(constants.NGHTTP2_CANCEL);
    await nothingIsLeft(proxy);
    expect(accepted).toHaveLength(1);
  });
});

test('a call that is reset without an error while its backend does not read it: an answer is for nobody, and nothing is left', async () => {
  const { promise: came, resolve } = Promise.withResolvers<ServerHttp2Stream>();
  const port = await backendThat(resolve);
  await using proxy = await startProxy({ backendPort: port, limits: IDLE });
  const session = await connectTo(proxy);
  const call = begin(session);
  // More than the backend buffers: the gateway stops reading it.
  call.write(Buffer.alloc(300 * 1024));
  const stream = await came;
  await new Promise((done) => setTimeout(done, 300));
  call.close(constants.NGHTTP2_NO_ERROR);
  await new Promise((done) => setTimeout(done, 100));
  answerWith(stream, 5);
  await nothingIsLeft(proxy);
  // The caller's side does not close: part of what it would have sent is still to be sent.
  const from = performance.now();
  await proxy.stop();
  expect(performance.now() - from).toBeLessThan(10_000);
});

test('interim answers of a backend cost the call nothing', async () => {
  const port = await backendThat((stream) => {
    stream.resume();
    stream.additionalHeaders({ ':status': 103, link: '</style.css>; rel=preload' });
    stream.additionalHeaders({ ':status': 102 });
    answerWith(stream, 5);
  });
  await using proxy = await startProxy({ backendPort: port });
  expect(await statusOfCall(await connectTo(proxy))).toBe(status.OK);
});

test('trailers that Node sends to nobody are left out', async () => {
  const port = await backendThat((stream) => {
    stream.resume();
    stream.respond(HEAD, { waitForTrailers: true });
    stream.on('wantTrailers', () =>
      stream.sendTrailers({ 'grpc-status': '0', 'proxy-authenticate': 'x', te: 'trailers' }),
    );
    stream.end(message);
  });
  await using proxy = await startProxy({ backendPort: port });
  expect(await statusOfCall(await connectTo(proxy))).toBe(status.OK);
});

test('a caller that reads slowly, and does read, gets all of its answer', async () => {
  const size = 60_000;
  const port = await backendThat((stream) => {
    stream.resume();
    answerWith(stream, size);
  });
  await using proxy = await startProxy({ backendPort: port, limits: { lingerMs: 1000 } });
  // Node's client would take as much as its own buffer holds, however slowly it is read.
  const caller = await rawCaller(proxy.port);
  onTestFinished(() => void caller.socket.destroy());
  caller.send(initialWindow(1000), windowUpdate(10 * size));
  caller.call(1, { ':path': '/rollcall.test.v1.Echo/Unary', authorization: `Bearer ${TOKEN}` }, message);
  const ofCall = () => caller.frames.filter(({ streamId }) => streamId === 1);
  const isOver = () => ofCall().some(({ type, flags }) => type === frameType.RST_STREAM || (flags & END_STREAM) !== 0);
  for (let turn = 0; turn < 100 && !isOver(); turn += 1) {
    await new Promise((done) => setTimeout(done, 100));
    caller.send(windowUpdate(1000, 1));
  }
  const data = ofCall().filter(({ type }) => type === frameType.DATA);
  expect(data.reduce((sum, { payload }) => sum + payload.length, 0)).toBe(size);
  expect(ofCall().at(-1)?.type).toBe(frameType.HEADERS);
});

test('a status reaches a caller whose connection is full, though its call has not come in full', async () => {
  const port = await backendThat((stream) => {
    stream.resume();
    if (stream.id === 1) answerWith(stream, 24 * 1024 * 1024);
    else stream.respond({ ...HEAD, 'grpc-status': '5' }, { endStream: true });
  });
  await using proxy = await startProxy({ backendPort: port });
  const caller = await rawCaller(proxy.port);
  onTestFinished(() => void caller.socket.destroy());
  const ROOM = 0x7fff_ffff;
  caller.send(initialWindow(ROOM), windowUpdate(ROOM - 65_535));
  caller.socket.pause();
  const path = { ':path': '/rollcall.test.v1.Echo/Bidi' };
  const authorization = `Bearer ${TOKEN}`;
  caller.call(1, { ...path, authorization }, message);
  await new Promise((done) => setTimeout(done, 1500));
  const [REFUSED_HERE, REFUSED_THERE] = [3, 5];
  caller.call(REFUSED_HERE, path);
  caller.call(REFUSED_THERE, { ...path, authorization });
  await new Promise((done) => setTimeout(done, 1000));
  caller.socket.resume();
  const typesOf = (id: number) => caller.frames.filter(({ streamId }) => streamId === id).map(({ type }) => type);
  const answer = [frameType.HEADERS, frameType.RST_STREAM];
  await vi.waitFor(
    () => expect([typesOf(REFUSED_HERE), typesOf(REFUSED_THERE)]).toEqual([answer, answer]),
    WAIT.timeoutMs,
  );
});

test('who asks for health and never ends to ask uses no slot of a call, and is not listened to for long', async () => {
  const port = await backendThat((stream) => {
    stream.resume();
    answerWith(stream, 5);
  });
  await using proxy = await startProxy({ backendPort: port, limits: { calls: 10, lingerMs: 1000 } });
  const prober = await connectTo(proxy);
  const path = { ':path': '/grpc.health.v1.Health/Check', authorization: '' };
  const probes = Array.from({ length: CALLS }, () => begin(prober, path));
  const closed = probes.map((probe) => once(probe, 'close'));
  await new Promise((done) => setTimeout(done, 300));
  expect(await statusOfCall(await connectTo(proxy))).toBe(status.OK);
  await Promise.all(closed);
});

/** A server of names that is slower than the proxy waits. */
async function slowResolve() {
  await new Promise((done) => setTimeout(done, 1000));
  return [{ address: '127.0.0.1', family: 4 }];
}

test('a connection that was given up while its name was looked up is not made after that, and ends no other', async () => {
  const connections: string[] = [];
  const port = await backendThat(() => connections.push('a call'));
  await using proxy = await startProxy({
    backendPort: port,
    resolve: slowResolve,
    limits: { ...IDLE, connectTimeoutMs: 300 },
  });
  proxy.registered.set('rollcall.test', targetOf('rollcall.test', `http://localhost:${port}`));
  expect(await statusOfCall(await connectTo(proxy))).toBe(status.UNAVAILABLE);
  await new Promise((done) => setTimeout(done, 2500));
  expect(connections).toEqual([]);
  await nothingIsLeft(proxy);
});
