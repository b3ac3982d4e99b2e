import { once } from 'node:events';
import {
  connect,
  constants,
  createServer,
  type Http2Server,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { type AddressInfo, connect as connectTcp, createServer as createTcpServer } from 'node:net';
import { gzipSync } from 'node:zlib';
import { status } from '@grpc/grpc-js';
import { waitUntil } from '@rollcall/local/wait.ts';
import { expect, onTestFinished, test } from 'vitest';
import { type Backend, createEchoClient, startBackend, startProxy, statusOf, TOKEN, targetAt } from './grpc-fixture.ts';

const hello = Buffer.from('hello');
const MiB = 1024 * 1024;

/** What `read` says once it says the same twice, half a second apart. */
async function settled(read: () => Promise<number> | number): Promise<number> {
  let last = Number.NaN;
  await waitUntil(
    'it stays the same',
    async () => {
      const before = last;
      last = await read();
      await new Promise((resolve) => setTimeout(resolve, 500));
      return before === last;
    },
    { timeoutMs: 30_000 },
  );
  return last;
}

test('a caller that does not read stops the backend, and gets everything when it reads', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const total = 128 * MiB;
  const stream = client.serverStream({ messages: total / 65_536, bytes: 65_536 });
  // Until its first message is read, grpc-js takes whatever comes.
  const [first] = (await once(stream, 'data')) as [Buffer];
  stream.pause();
  using direct = createEchoClient(backend.port);
  const produced = await settled(async () => (await direct.stats()).streamedBytes);
  expect(produced).toBeGreaterThan(0);
  expect(produced).toBeLessThan(6 * MiB);
  // Others on the same connections are served meanwhile.
  expect((await client.unary(hello)).message).toEqual(hello);
  let received = first.length;
  stream.on('data', (message: Buffer) => {
    received += message.length;
  });
  stream.resume();
  expect((await statusOf(stream)).code).toBe(status.OK);
  expect(received).toBe(total);
});

test('a caller that never reads its answer does not keep the call, and others go on', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { readingGraceMs: 500 } });
  const session = connect(`http://127.0.0.1:${proxy.port}`, { settings: { initialWindowSize: 0 } });
  const stream = session.request({
    ':method': 'POST',
    ':path': '/rollcall.test.v1.Echo/Unary',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
  });
  stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
  await once(stream, 'response');
  await once(stream, 'close');
  expect(stream.rstCode).toBe(constants.NGHTTP2_CANCEL);
  expect(await proxy.metrics.metrics()).toMatch(/^rollcall_gateway_grpc_open_calls\{.*\} 0$/m);
  session.destroy();
  using client = createEchoClient(proxy.port, { token: TOKEN });
  expect((await client.unary(hello)).message).toEqual(hello);
});

test('a backend that does not read stops the caller, and gets everything when it reads', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = client.clientStream((error, answer) => (error === null ? resolve(String(answer)) : reject(error)), {
    'read-after-ms': '3000',
  });
  const total = 64 * MiB;
  let sent = 0;
  const pump = () => {
    while (sent < total) {
      sent += 65_536;
      if (!call.write(Buffer.alloc(65_536))) {
        call.once('drain', pump);
        return;
      }
    }
    call.end();
  };
  pump();
  expect(await settled(() => sent)).toBeLessThan(6 * MiB);
  expect(JSON.parse(await promise)).toEqual({ messages: total / 65_536, bytes: total });
});

test('kill -9 of the backend: calls under way end as UNAVAILABLE, and the next one works once it is back', async () => {
  let backend: Backend = await startBackend();
  const { port } = backend;
  await using proxy = await startProxy({ backendPort: port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const stream = client.bidi();
  stream.on('error', () => undefined);
  stream.write(hello);
  await once(stream, 'data');
  const unary = client.unary(hello, { 'delay-ms': '60000' });
  using direct = createEchoClient(port);
  await waitUntil('the call arrives', async () => (await direct.stats()).unary > 0, { timeoutMs: 10_000 });
  const ended = statusOf(stream);
  await backend.kill();
  expect((await ended).code).toBe(status.UNAVAILABLE);
  expect((await unary).error?.code).toBe(status.UNAVAILABLE);
  expect((await client.unary(hello)).error?.code).toBe(status.UNAVAILABLE);
  backend = await startBackend({ port });
  expect((await client.unary(hello)).error).toBeUndefined();
  await backend[Symbol.asyncDispose]();
});

test('a backend that is restarted gracefully under load, beside another one: no caller notices', async () => {
  await using other = await startBackend();
  const { port } = other;
  let backend: Backend = await startBackend({ port, host: '127.0.0.2' });
  await using proxy = await startProxy({ backendPort: 1 });
  proxy.registered.set('rollcall.test', targetAt('rollcall.test', port, ['127.0.0.1', '127.0.0.2']));
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const errors: unknown[] = [];
  let calls = 0;
  const stop = new AbortController();
  const load = Array.from({ length: 16 }, async () => {
    while (!stop.signal.aborted) {
      const { error } = await client.unary(hello, { 'delay-ms': '5' });
      calls += 1;
      if (error !== undefined) errors.push(error);
    }
  });
  for (let restart = 0; restart < 3; restart += 1) {
    const until = calls + 200;
    await waitUntil('calls are made', async () => calls > until, { timeoutMs: 20_000 });
    await backend[Symbol.asyncDispose]();
    backend = await startBackend({ port, host: '127.0.0.2' });
    using direct = createEchoClient(port, { host: '127.0.0.2' });
    await waitUntil('it has calls again', async () => (await direct.stats()).unary > 0, { timeoutMs: 20_000 });
  }
  stop.abort();
  await Promise.all(load);
  expect(errors).toEqual([]);
  await backend[Symbol.asyncDispose]();
});

/**
 * Calls with a deadline that nothing but the gateway enforces, and of which the backend does not
 * know from its caller.
 */
async function statusAfterDeadline(
  port: number,
  method: string,
  metadata: Record<string, string> = {},
): Promise<unknown> {
  const session = connect(`http://127.0.0.1:${port}`);
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ':method': 'POST',
    ':path': `/rollcall.test.v1.Echo/${method}`,
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
    'grpc-timeout': '500m',
    ...metadata,
  });
  stream.on('error', () => undefined).resume();
  stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
  const [head] = (await once(stream, 'response')) as [Record<string, unknown>];
  return head['grpc-status'];
}

/** A backend of which the test says, call by call, what it does on the wire. */
async function rawBackend(
  onStream: (stream: ServerHttp2Stream, count: number) => void,
): Promise<{ port: number; server: Http2Server; sessions: Set<ServerHttp2Session> } & AsyncDisposable> {
  const sessions = new Set<ServerHttp2Session>();
  let count = 0;
  const server = createServer();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => sessions.delete(session));
    session.on('stream', (stream) => {
      stream.on('error', () => undefined);
      count += 1;
      onStream(stream, count);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    server,
    sessions,
    async [Symbol.asyncDispose]() {
      for (const session of sessions) session.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const HEAD = { ':status': 200, 'content-type': 'application/grpc' };

function answerEmpty(stream: ServerHttp2Stream): void {
  endWith(stream, { 'grpc-status': '0' });
}

/** Answers with an empty message, and these trailers. */
function endWith(stream: ServerHttp2Stream, trailers: Readonly<Record<string, string>>): void {
  stream.resume();
  stream.respond(HEAD, { waitForTrailers: true });
  stream.on('wantTrailers', () => stream.sendTrailers(trailers));
  stream.end(Buffer.alloc(5));
}

test.each([
  ['CANCEL', constants.NGHTTP2_CANCEL, status.CANCELLED],
  ['INTERNAL_ERROR', constants.NGHTTP2_INTERNAL_ERROR, status.INTERNAL],
  ['ENHANCE_YOUR_CALM', constants.NGHTTP2_ENHANCE_YOUR_CALM, status.RESOURCE_EXHAUSTED],
  ['REFUSED_STREAM', constants.NGHTTP2_REFUSED_STREAM, status.UNAVAILABLE],
] as const)('a call that the backend resets with %s', async (_name, code, expected) => {
  await using backend = await rawBackend((stream) => stream.close(code));
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  expect((await client.unary(hello)).error?.code).toBe(expected);
});

test('a call that is reset in the midst of an answer ends with a status', async () => {
  await using backend = await rawBackend((stream) => {
    stream.respond(HEAD);
    stream.write(Buffer.from([0, 0, 0, 0, 100, 1, 2, 3]), () => stream.close(constants.NGHTTP2_INTERNAL_ERROR));
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const stream = client.serverStream({});
  stream.on('error', () => undefined).on('data', () => undefined);
  expect((await statusOf(stream)).code).toBe(status.INTERNAL);
});

test('a call that was refused once is made again, in full', async () => {
  const bodies: string[] = [];
  await using backend = await rawBackend((stream, count) => {
    if (count === 1) {
      stream.close(constants.NGHTTP2_REFUSED_STREAM);
      return;
    }
    stream.on('data', (chunk: Buffer) => bodies.push(chunk.toString('latin1')));
    stream.on('end', () => answerEmpty(stream));
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const { error, message } = await client.unary(hello);
  expect([error, message?.length]).toEqual([undefined, 0]);
  expect(bodies.join('')).toContain('hello');
});

test('a call of which the backend reads nothing before it ends it is over for the gateway, too', async () => {
  await using backend = await rawBackend((stream) => {
    setTimeout(() => {
      stream.respond(HEAD, { waitForTrailers: true });
      stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
      stream.end();
    }, 1000);
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  const session = connect(`http://127.0.0.1:${proxy.port}`);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/rollcall.test.v1.Echo/ClientStream',
    'content-type': 'application/grpc',
    te: 'trailers',
    authorization: `Bearer ${TOKEN}`,
  });
  stream.on('error', () => undefined).resume();
  stream.write(Buffer.alloc(4 * MiB));
  const [trailers] = await once(stream, 'trailers');
  expect(trailers['grpc-status']).toBe('0');
  const openCalls = async () =>
    /^rollcall_gateway_grpc_open_calls\{.*\} (\d+)$/m.exec(await proxy.metrics.metrics())?.[1];
  await expect.poll(openCalls, { timeout: 10_000 }).toBe('0');
  session.destroy();
});

test('GOAWAY: the call under way goes on, the next one uses another connection', async () => {
  const held: ServerHttp2Stream[] = [];
  const used = new Set<unknown>();
  await using backend = await rawBackend((stream, count) => {
    used.add(stream.session);
    if (count === 1) held.push(stream);
    else answerEmpty(stream);
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const first = client.unary(hello);
  await waitUntil('the first call arrives', async () => held.length === 1, { timeoutMs: 10_000 });
  for (const session of backend.sessions) session.close();
  const second = await client.unary(hello);
  expect(second.error).toBeUndefined();
  await waitUntil('another connection is used', async () => used.size === 2, { timeoutMs: 10_000 });
  for (const stream of held) answerEmpty(stream);
  expect((await first).error).toBeUndefined();
});

test.each([
  ['another HTTP status', { ':status': 404, 'content-type': 'text/html' }, status.UNIMPLEMENTED],
  ['a page', { ':status': 200, 'content-type': 'text/html' }, status.UNKNOWN],
  ['an overloaded proxy', { ':status': 503 }, status.UNAVAILABLE],
])('a backend that answers with %s', async (_what, head, expected) => {
  await using backend = await rawBackend((stream) => {
    stream.respond(head);
    stream.end('<p>hello');
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  expect((await client.unary(hello)).error?.code).toBe(expected);
});

test.each<[string, (stream: ServerHttp2Stream) => unknown]>([
  ['without trailers', (stream) => [stream.respond(HEAD), stream.end(Buffer.alloc(5))]],
  ['with other trailers', (stream) => endWith(stream, { 'x-t': 'v' })],
  ['at once', (stream) => stream.respond(HEAD, { endStream: true })],
])('an answer that ends %s has no status, and is an error', async (_how, answer) => {
  await using backend = await rawBackend(answer);
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const stream = client.bidi();
  stream.on('error', () => undefined).on('data', () => undefined);
  stream.write(hello);
  const { code, details } = await statusOf(stream);
  expect([code, details]).toEqual([status.INTERNAL, 'The service ended the call without a status']);
});

test('a backend that accepts the connection and says nothing: the deadline holds', async () => {
  const silent = createTcpServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  await using proxy = await startProxy({ backendPort: (silent.address() as AddressInfo).port });
  expect(await statusAfterDeadline(proxy.port, 'Unary')).toBe(String(status.DEADLINE_EXCEEDED));
  await proxy.stop();
  await new Promise((resolve) => silent.close(resolve));
});

test('a call that takes longer than its deadline ends at both sides, though its caller only waits', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port });
  using direct = createEchoClient(backend.port);
  expect(await statusAfterDeadline(proxy.port, 'Unary', { 'delay-ms': '20000' })).toBe(
    String(status.DEADLINE_EXCEEDED),
  );
  // The backend got the deadline, too; it counts what was cancelled.
  await expect.poll(async () => (await direct.stats()).cancelled).toBe(1);
});

test('compressed answers come as they are', async () => {
  const message = Buffer.alloc(200_000, 'abcdefg');
  await using backend = await rawBackend((stream) => {
    stream.resume();
    stream.respond({ ...HEAD, 'grpc-encoding': 'gzip' }, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }));
    const bytes = gzipSync(message);
    const head = Buffer.alloc(5);
    head[0] = 1;
    head.writeUInt32BE(bytes.length, 1);
    stream.end(Buffer.concat([head, bytes]));
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const answer = await client.unary(hello);
  expect(answer.error).toBeUndefined();
  expect(answer.message?.equals(message)).toBe(true);
});

test('an empty status is none', async () => {
  await using backend = await rawBackend((stream) => {
    stream.resume();
    stream.respond(HEAD, { waitForTrailers: true });
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '' }));
    stream.end();
  });
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const call = client.bidi();
  call.on('error', () => undefined).on('data', () => undefined);
  call.end();
  await statusOf(call);
  const text = await proxy.metrics.metrics();
  expect(text).toMatch(/_grpc_calls_total\{service="rollcall.test",code="UNKNOWN".*\} 1/);
  expect(text).not.toMatch(/_grpc_calls_total\{service="rollcall.test",code="OK"/);
});

test('who connects and says nothing is disconnected', async () => {
  await using proxy = await startProxy({ backendPort: 1, limits: { handshakeTimeoutMs: 500 } });
  const socket = connectTcp(proxy.port, '127.0.0.1');
  socket.resume();
  await once(socket, 'close');
  expect(socket.destroyed).toBe(true);
});

test('a connection that is idle for long is closed', async () => {
  await using proxy = await startProxy({ backendPort: 1, limits: { idleMs: 500 } });
  const session = connect(`http://127.0.0.1:${proxy.port}`);
  await once(session, 'close');
  expect(session.destroyed).toBe(true);
});

test('connections over the limit are not accepted where all have calls, and others go on', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { connections: 1 } });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const stream = client.bidi();
  stream.write(hello);
  await once(stream, 'data');
  const second = connect(`http://127.0.0.1:${proxy.port}`);
  second.on('error', () => undefined);
  await once(second, 'close');
  expect((await client.unary(hello)).error).toBeUndefined();
  stream.end();
  expect((await statusOf(stream)).code).toBe(status.OK);
});

test('who resets call after call is disconnected, and others go on', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { resetsPerSecond: 2 } });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const attacker = connect(`http://127.0.0.1:${proxy.port}`);
  attacker.on('error', () => undefined);
  await once(attacker, 'remoteSettings');
  let goneAfter = 0;
  attacker.on('close', () => {
    goneAfter = sent;
  });
  let sent = 0;
  for (; sent < 2000 && !attacker.closed && !attacker.destroyed; sent += 1) {
    const stream = attacker.request({ ':method': 'POST', ':path': '/a.B/C', 'content-type': 'application/grpc' });
    stream.on('error', () => undefined);
    stream.close(constants.NGHTTP2_CANCEL);
    if (sent % 20 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  await waitUntil('the attacker is disconnected', async () => attacker.destroyed, { timeoutMs: 10_000 });
  // Node would take a thousand by itself.
  expect(goneAfter).toBeLessThan(200);
  expect((await client.unary(hello)).error).toBeUndefined();
});

test('headers over the limit are refused, those within it are not, and the connection goes on', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, limits: { maxHeaderBytes: 8192 } });
  const session = connect(`http://127.0.0.1:${proxy.port}`);
  onTestFinished(() => session.destroy());
  const answered = async (bytes: number) => {
    const stream = session.request({
      ':method': 'POST',
      ':path': '/rollcall.test.v1.Echo/Unary',
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: `Bearer ${TOKEN}`,
      big: 'x'.repeat(bytes),
    });
    stream.on('error', () => undefined).resume();
    stream.end(Buffer.from([0, 0, 0, 0, 1, 7]));
    let found: unknown;
    stream.on('response', (head) => {
      found = head[':status'];
    });
    await new Promise((resolve) => stream.once('close', resolve));
    return found;
  };
  await once(session, 'remoteSettings');
  expect(await answered(5000)).toBe(200);
  // Node's own limit would be 64 KiB.
  expect(await answered(9000)).not.toBe(200);
  expect(await answered(5000)).toBe(200);
});

test('stopping: calls under way are finished, and new calls find the door closed', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const { unary } = await client.stats();
  const answer = client.unary(hello, { 'delay-ms': '1500' });
  await waitUntil('the call arrives', async () => (await client.stats()).unary > unary, { timeoutMs: 10_000 });
  const stopped = proxy.stop();
  expect((await answer).error).toBeUndefined();
  await stopped;
  expect((await client.unary(hello)).error?.code).toBe(status.UNAVAILABLE);
});

test('stopping: what does not end in time is ended', async () => {
  await using backend = await startBackend();
  await using proxy = await startProxy({ backendPort: backend.port, closingLimitMs: 300 });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const stream = client.bidi();
  stream.on('error', () => undefined);
  stream.write(hello);
  await once(stream, 'data');
  const ended = statusOf(stream);
  await proxy.stop();
  expect(await ended).toMatchObject({ code: status.UNAVAILABLE, details: 'The gateway is stopping' });
});
