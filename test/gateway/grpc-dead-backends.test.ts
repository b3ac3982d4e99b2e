import { lookup } from 'node:dns';
import { once } from 'node:events';
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { status } from '@grpc/grpc-js';
import { BackendConnection } from '@rollcall/gateway/doors/grpc/backend-connection.ts';
import { defaultLimits } from '@rollcall/gateway/doors/grpc/limits.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createEchoClient, gaugeOf, startBackend, startProxy, TOKEN, targetAt, targetOf } from './grpc-fixture.ts';
import { frameType, rawBackend } from './raw-http2.ts';

const hello = Buffer.from('hello');
const WAIT = { timeoutMs: 20_000 };
const BOTH = ['127.0.0.1', '127.0.0.2'];
const OK = undefined;

async function pause(ms: number): Promise<void> {
  await new Promise((done) => setTimeout(done, ms));
}

/** Until it is disposed of. */
function freeze(pid: number): Disposable {
  process.kill(pid, 'SIGSTOP');
  return { [Symbol.dispose]: () => void process.kill(pid, 'SIGCONT') };
}

describe('a backend that accepts connections and says nothing', () => {
  test('is left out, gets no call, and no caller notices', async () => {
    await using backend = await startBackend();
    await using silent = await rawBackend({ isSilent: true, host: '127.0.0.2', port: backend.port });
    await using proxy = await startProxy({ backendPort: 1, limits: { connectTimeoutMs: 300 } });
    const target = targetAt('rollcall.test', backend.port, BOTH);
    proxy.registered.set('rollcall.test', target);
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const codes = new Set<unknown>();
    const isLeftOut = async () => {
      codes.add((await client.unary(hello)).error?.code);
      return target.endpoints.states().includes('open');
    };
    await waitUntil('it is left out', isLeftOut, WAIT);
    expect(codes).toEqual(new Set([OK]));
    expect(silent.peers.length).toBeGreaterThanOrEqual(5);
    const sent = silent.peers.flatMap(({ frames }) => frames.map(({ type }) => type));
    expect(sent).toContain(frameType.SETTINGS);
    expect(sent).not.toContain(frameType.HEADERS);
  });

  test('the only one: calls end, with a status', async () => {
    await using silent = await rawBackend({ isSilent: true });
    await using proxy = await startProxy({ backendPort: silent.port, limits: { connectTimeoutMs: 200 } });
    using client = createEchoClient(proxy.port, { token: TOKEN });
    expect((await client.unary(hello)).error?.code).toBe(status.UNAVAILABLE);
  });

  test('is counted once, though its connection closes only later', async () => {
    await using silent = await rawBackend({ isSilent: true });
    const { endpoints } = targetAt('rollcall.test', silent.port);
    const endpoint = endpoints.acquire();
    if (endpoint === undefined) throw new Error('No endpoint');
    const failed = vi.spyOn(endpoint.breaker, 'failed');
    const abandoned = vi.spyOn(endpoint.breaker, 'abandoned');
    const connection = new BackendConnection(
      { endpoint, endpoints },
      { limits: { ...defaultLimits, connectTimeoutMs: 200 }, lookup, log: createLogger('test', 'silent') },
    );
    const closed = once(connection.session, 'close');
    await connection.made;
    await closed.catch(() => undefined);
    await pause(50);
    expect([failed.mock.calls.length, abandoned.mock.calls.length]).toEqual([1, 0]);
  });
});

test('a backend that is back after an outage gets all its calls, though it answers none of them before there is news', async () => {
  const [port = 0] = await freePorts(1);
  await using proxy = await startProxy({ backendPort: port });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  const isAway = async () => /several times in a row/.test((await client.unary(hello)).error?.details ?? '');
  await waitUntil('nobody tries any more', isAway, WAIT);
  const accepted: unknown[] = [];
  const back = createServer();
  back.on('session', (session: ServerHttp2Session) => onTestFinished(() => session.destroy()));
  back.on('stream', (stream) => {
    accepted.push(stream);
    stream.on('error', () => undefined).resume();
  });
  back.listen(port, '127.0.0.1');
  await once(back, 'listening');
  onTestFinished(() => void back.close());
  const refused: number[] = [];
  const subscribe = () => {
    const call = client.bidi();
    call.on('status', ({ code }) => refused.push(code));
    call.on('error', () => undefined);
    call.resume();
    onTestFinished(() => call.cancel());
  };
  await waitUntil(
    'one has come',
    async () => {
      subscribe();
      await pause(200);
      return accepted.length > 0;
    },
    WAIT,
  );
  refused.length = 0;
  for (let count = 1; count < 20; count += 1) subscribe();
  await waitUntil('all are', async () => accepted.length === 20, { timeoutMs: 20_000 });
  expect(refused).toEqual([]);
});

describe('a backend that stands still', () => {
  const limits = { silenceMs: 2000, pingTimeoutMs: 2000, connectTimeoutMs: 1000 };

  test('while it has calls: they end, and others go elsewhere from then on', async () => {
    await using stack = new AsyncDisposableStack();
    const frozen = stack.use(await startBackend());
    stack.use(await startBackend({ port: frozen.port, host: '127.0.0.2' }));
    await using proxy = await startProxy({ backendPort: 1, limits });
    proxy.registered.set('rollcall.test', targetAt('rollcall.test', frozen.port, BOTH));
    using client = createEchoClient(proxy.port, { token: TOKEN });
    // So many that each backend gets some: addresses are drawn at random.
    const calls = () => Promise.all(Array.from({ length: 16 }, async () => (await client.unary(hello)).error?.code));
    expect(new Set(await calls())).toEqual(new Set([OK]));
    stack.use(freeze(frozen.pid));
    const began = performance.now();
    expect(new Set(await calls())).toEqual(new Set([OK, status.UNAVAILABLE]));
    expect(performance.now() - began).toBeLessThan(9000);
    expect(new Set(await calls())).toEqual(new Set([OK]));
  });

  test('a connection that is suspect gets no new calls', async () => {
    await using backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: { ...limits, pingTimeoutMs: 20_000 } });
    using client = createEchoClient(proxy.port, { token: TOKEN });
    expect((await client.unary(hello)).error).toBe(OK);
    const still = freeze(backend.pid);
    const held = client.unary(hello);
    await pause(5000);
    // It waits for a connection of its own, which is not made, and is not sent over the one that
    // says nothing.
    expect((await client.unary(hello)).error?.details).toBe('The service could not be reached');
    still[Symbol.dispose]();
    expect((await held).error).toBe(OK);
    expect((await client.unary(hello)).error).toBe(OK);
  });

  test('while a stream is open and quiet, it is asked, and keeps the stream and new calls', async () => {
    const sessions: ServerHttp2Session[] = [];
    let asked = 0;
    const server = createServer();
    server.on('session', (session) => {
      sessions.push(session);
      session.on('remoteSettings', () => {
        asked += 1;
      });
      session.on('error', () => undefined);
      session.on('stream', (stream) => stream.on('error', () => undefined));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    await using proxy = await startProxy({ backendPort: port, limits: { silenceMs: 1000 } });
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const stream = client.bidi();
    stream.on('error', () => undefined);
    stream.write(hello);
    await waitUntil('it is asked', async () => asked >= 3, WAIT);
    client.bidi().on('error', () => undefined);
    await waitUntil('another is there', async () => (await gaugeOf(proxy, 'open_calls')) === 2, WAIT);
    expect(sessions).toHaveLength(1);
    for (const session of sessions) session.destroy();
    server.close();
  });
});

test('a backend that answers no ping is given up', async () => {
  await using silent = await rawBackend();
  const limits = { silenceMs: 1000, pingTimeoutMs: 1000 };
  await using proxy = await startProxy({ backendPort: silent.port, limits });
  using client = createEchoClient(proxy.port, { token: TOKEN });
  expect((await client.unary(hello)).error?.code).toBe(status.UNAVAILABLE);
  expect(silent.peers.flatMap(({ frames }) => frames.map(({ type }) => type))).toContain(frameType.SETTINGS);
});

describe('what counts against a backend', () => {
  test('not calls that are given up while a connection is being made', async () => {
    const [port = 0] = await freePorts(1);
    const resolve = async () => {
      await pause(3000);
      return [{ address: '127.0.0.1', family: 4 }];
    };
    await using proxy = await startProxy({ backendPort: port, resolve });
    const target = targetOf('rollcall.test', `http://localhost:${port}`);
    proxy.registered.set('rollcall.test', target);
    using client = createEchoClient(proxy.port, { token: TOKEN });
    for (let round = 0; round < 10; round += 1) {
      const { error } = await client.unary(hello, {}, { deadline: Date.now() + 50 });
      expect(error?.code).toBe(status.DEADLINE_EXCEEDED);
    }
    await pause(300);
    expect(target.endpoints.states()).toEqual(['closed']);
  });

  test('not one that says goodbye, and cancels its last call', async () => {
    const server = createServer();
    server.on('stream', (stream: ServerHttp2Stream) => {
      stream.on('error', () => undefined);
      stream.session?.goaway(constants.NGHTTP2_NO_ERROR, stream.id);
      stream.close(constants.NGHTTP2_CANCEL);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    onTestFinished(() => void server.close());
    const { port } = server.address() as AddressInfo;
    await using proxy = await startProxy({ backendPort: port });
    const target = targetAt('rollcall.test', port);
    proxy.registered.set('rollcall.test', target);
    using client = createEchoClient(proxy.port, { token: TOKEN });
    for (let round = 0; round < 8; round += 1) {
      expect((await client.unary(hello)).error?.code).toBe(status.CANCELLED);
    }
    expect(target.endpoints.states()).toEqual(['closed']);
  });

  test('a connection that is not made: once, however many calls wait for it', async () => {
    const [port = 0] = await freePorts(1);
    await using proxy = await startProxy({ backendPort: port });
    const target = targetAt('rollcall.test', port);
    proxy.registered.set('rollcall.test', target);
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const answers = await Promise.all(Array.from({ length: 20 }, () => client.unary(hello)));
    expect(new Set(answers.map(({ error }) => error?.code))).toEqual(new Set([status.UNAVAILABLE]));
    expect(target.endpoints.states()).toEqual(['closed']);
  });

  test('a connection that is lost: once, however many calls were over it', async () => {
    const backend = await startBackend();
    await using proxy = await startProxy({ backendPort: backend.port });
    const target = targetAt('rollcall.test', backend.port);
    proxy.registered.set('rollcall.test', target);
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const calls = Array.from({ length: 20 }, () => client.unary(hello, { 'delay-ms': '60000' }));
    using direct = createEchoClient(backend.port);
    await waitUntil('they arrive', async () => (await direct.stats()).unary === 20, WAIT);
    await backend.kill();
    await Promise.all(calls);
    expect(target.endpoints.states()).toEqual(['closed']);
  });
});

describe('a connection to a backend', () => {
  test('that is idle is gone though the backend keeps its side open', async () => {
    await using backend = await rawBackend();
    await using proxy = await startProxy({ backendPort: backend.port, limits: { idleMs: 500 } });
    using client = createEchoClient(proxy.port, { token: TOKEN });
    await client.unary(hello, {}, { deadline: Date.now() + 500 });
    expect(await gaugeOf(proxy, 'upstream_connections')).toBe(1);
    await waitUntil('it is gone', async () => (await gaugeOf(proxy, 'upstream_connections')) === 0, WAIT);
  });

  test('that is old gets no new calls, and the old ones go on, though the backend drops whom it has sent GOAWAY', async () => {
    // Pings every 500 ms, as grpc-js does: over a connection that the other side closes it takes
    // them for failed.
    await using backend = await startBackend({ keepAliveMs: 500 });
    await using proxy = await startProxy({ backendPort: backend.port, limits: { maxAgeMs: 1000 } });
    using client = createEchoClient(proxy.port, { token: TOKEN });
    const stream = client.bidi();
    stream.on('error', () => undefined);
    stream.write(hello);
    await once(stream, 'data');
    await pause(3000);
    expect((await client.unary(hello)).error).toBe(OK);
    expect(await gaugeOf(proxy, 'upstream_connections')).toBe(2);
    await pause(2000);
    stream.write(Buffer.from('still there'));
    expect(String((await once(stream, 'data'))[0])).toBe('still there');
    stream.end();
    await waitUntil('the old one is closed', async () => (await gaugeOf(proxy, 'upstream_connections')) <= 1, WAIT);
  });
});
