import { once } from 'node:events';
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  createServer,
  type ServerHttp2Stream,
  type Settings,
} from 'node:http2';
import { status } from '@grpc/grpc-js';
import { waitUntil } from '@rollcall/local/wait.ts';
import { describe, expect, onTestFinished, test } from 'vitest';
import { callerNamed, createEchoClient, gaugeOf, startBackend, startProxy, TOKEN } from './grpc-fixture.ts';

const HEAD = { ':status': 200, 'content-type': 'application/grpc' };
const hello = Buffer.from('hello');
const message = Buffer.from([0, 0, 0, 0, 1, 7]);
const KiB = 1024;

/** A backend that answers each call as the test says. */
async function backendThat(answer: (stream: ServerHttp2Stream) => void): Promise<number> {
  const server = createServer();
  server.on('stream', (stream: ServerHttp2Stream) => {
    stream.on('error', () => undefined);
    answer(stream);
  });
  server.on('session', (session) => {
    session.on('error', () => undefined);
    onTestFinished(() => session.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** Sends so much, and does not end. */
function sends(bytes: number): (stream: ServerHttp2Stream) => void {
  return (stream) => {
    stream.resume();
    stream.respond(HEAD);
    stream.write(Buffer.alloc(bytes));
  };
}

async function connectTo(port: number, settings: Settings): Promise<ClientHttp2Session> {
  const session = connect(`http://127.0.0.1:${port}`, { settings });
  session.on('error', () => undefined);
  onTestFinished(() => session.destroy());
  await once(session, 'remoteSettings');
  return session;
}

function begin(session: ClientHttp2Session, token = TOKEN): ClientHttp2Stream {
  const stream = session.request({
    ':method': 'POST',
    ':path': '/rollcall.test.v1.Echo/ServerStream',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${token}`,
  });
  stream.on('error', () => undefined);
  return stream;
}

describe('a caller that does not read the midst of an answer', () => {
  test('is cut off, and the backend knows', async () => {
    const left: ServerHttp2Stream[] = [];
    const port = await backendThat((stream) => {
      stream.on('close', () => left.push(stream));
      sends(1000 * KiB)(stream);
    });
    await using proxy = await startProxy({ backendPort: port, limits: { readingGraceMs: 1500 } });
    const call = begin(await connectTo(proxy.port, { initialWindowSize: 0 }));
    call.end(message);
    await new Promise((resolve) => call.once('close', resolve));
    expect(call.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
    await expect.poll(() => left.length).toBe(1);
    expect(await proxy.metrics.metrics()).toMatch(/_grpc_calls_total\{.*code="RESOURCE_EXHAUSTED".*\} 1/);
    expect(await gaugeOf(proxy, 'open_calls')).toBe(0);
  });

  test('is not cut off where it reads a little of it now and then, or nothing is there', async () => {
    const port = await backendThat((stream) => {
      sends(200 * KiB)(stream);
    });
    await using proxy = await startProxy({ backendPort: port, limits: { readingGraceMs: 3000 } });
    const session = await connectTo(proxy.port, { initialWindowSize: 20_000 });
    const call = begin(session);
    call.end(message);
    let read = 0;
    call.on('data', (chunk: Buffer) => {
      read += chunk.length;
      call.pause();
      setTimeout(() => call.resume(), 300);
    });
    await waitUntil('all of it is read', async () => read === 200 * KiB, { timeoutMs: 30_000 });
    await new Promise((done) => setTimeout(done, 5000));
    expect(call.closed).toBe(false);
    expect(await gaugeOf(proxy, 'open_calls')).toBe(1);
  });

  test('is not cut off where it reads so steadily that as much waits at every check', async () => {
    const port = await backendThat(sends(5000 * KiB));
    await using proxy = await startProxy({ backendPort: port, limits: { readingGraceMs: 1500 } });
    const call = begin(await connectTo(proxy.port, { initialWindowSize: 16 * KiB }));
    call.end(message);
    readSteadily(call, { bytes: 16 * KiB, everyMs: 240 });
    await new Promise((done) => setTimeout(done, 5000));
    expect(call.closed).toBe(false);
  });
});

/** Reads so much of an answer in so much time, again and again. */
function readSteadily(call: ClientHttp2Stream, { bytes, everyMs }: { bytes: number; everyMs: number }): void {
  let read = 0;
  call.on('data', (chunk: Buffer) => {
    read += chunk.length;
    if (read < bytes) return;
    read -= bytes;
    call.pause();
    setTimeout(() => call.resume(), everyMs);
  });
}

test('what is kept of a call to be sent again is bounded: one of more than 16 KiB is made once', async () => {
  let count = 0;
  const port = await backendThat((stream) => {
    count += 1;
    stream.resume();
    if (count % 2 === 1) stream.close(constants.NGHTTP2_REFUSED_STREAM);
    else {
      stream.respond(HEAD, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end(message);
    }
  });
  await using proxy = await startProxy({ backendPort: port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  expect((await client.unary(Buffer.alloc(16_000))).error).toBeUndefined();
  expect((await client.unary(Buffer.alloc(17_000))).error?.code).toBe(status.UNAVAILABLE);
});

test('one subject has so many calls under way, and others have theirs', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { callsPerSubject: 2 } });
  proxy.callers.set('bob-token', callerNamed('bob'));
  using alice = createEchoClient(proxy.port, { token: TOKEN });
  using bob = createEchoClient(proxy.port, { token: 'bob-token' });
  const calls = Array.from({ length: 4 }, () => alice.unary(hello, { 'delay-ms': '1500' }));
  const refused = await Promise.race(calls);
  expect(refused.error?.code).toBe(status.RESOURCE_EXHAUSTED);
  expect(refused.status.metadata.get('grpc-retry-pushback-ms')).toEqual(['1000']);
  expect((await bob.unary(hello)).error).toBeUndefined();
  const codes = (await Promise.all(calls)).map(({ error }) => error?.code ?? status.OK).sort((a, b) => a - b);
  expect(codes).toEqual([status.OK, status.OK, status.RESOURCE_EXHAUSTED, status.RESOURCE_EXHAUSTED]);
  for (let round = 0; round < 5; round += 1) expect((await alice.unary(hello)).error).toBeUndefined();
});
