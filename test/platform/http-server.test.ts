import { once } from 'node:events';
import { Agent, request as httpRequest, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { Worker } from 'node:worker_threads';
import { HttpError } from '@rollcall/platform/http/errors.ts';
import { type App, createServer } from '@rollcall/platform/http/server.ts';
import { httpServer } from '@rollcall/platform/process/http-server.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';

/** More than the kernel takes off the server's hands. */
const LARGE = Buffer.alloc(20 * 1024 * 1024, 'x');

let app: App;
let port: number;
let largeAnswer: ServerResponse | undefined;
/** How many requests have been read that are answered half a second after closing has begun. */
let slowRequests: number;
let closing: PromiseWithResolvers<void>;

beforeEach(() => startApp({ closingLimitMs: 60_000 }));
afterEach(() => app.close());

async function startApp({ closingLimitMs }: { readonly closingLimitMs: number }): Promise<void> {
  largeAnswer = undefined;
  slowRequests = 0;
  closing = Promise.withResolvers();
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: createMetrics('test'),
    bodyLimit: 1000,
    closingLimitMs,
    mapError: () => undefined,
  });
  app.addHook('onRequest', ({ raw, url }, reply, done) => {
    reply.header('x-seen', raw.url);
    done(url === '/guarded' ? new HttpError(401, 'Unauthenticated', { message: 'no' }) : undefined);
  });
  app.get('/quick', () => ({ ok: true }));
  app.post('/echo', ({ body }) => body);
  app.post('/guarded', ({ body }) => body);
  app.get('/large', (_request, reply) => {
    largeAnswer = reply.raw;
    return reply.type('text/plain').send(LARGE);
  });
  app.get('/slow', async () => {
    slowRequests += 1;
    await closing.promise;
    await sleep(500);
    return { ok: true };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
}

function close(): Promise<void> {
  const closed = app.close();
  closing.resolve();
  return closed;
}

interface Answer {
  readonly status: number | undefined;
  readonly localPort: number | undefined;
  readonly body: string;
}

function get(path: string, agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, host: '127.0.0.1', path, agent }, (response) => {
      const { localPort } = response.socket;
      text(response).then((body) => resolve({ status: response.statusCode, localPort, body }), reject);
    });
    sent.once('error', reject).end();
  });
}

function keepAliveAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** Sends bytes and returns all that comes back until the server closes. */
async function exchangeRaw(bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(bytes, 'latin1');
  return text(socket);
}

test('a connection is kept and reused, longer than proxies keep theirs', async () => {
  const agent = keepAliveAgent();
  const answers = [await get('/quick', agent), await get('/quick', agent), await get('/nothing', agent)];
  expect(new Set(answers.map(({ localPort }) => localPort)).size).toBe(1);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 404]);
  expect(app.server.keepAliveTimeout).toBeGreaterThan(60_000);
});

test('closing answers what is under way and waits for no connection that is idle or becomes so', async () => {
  const [busy, idle] = [keepAliveAgent(), keepAliveAgent()];
  await get('/quick', idle);
  const slow = get('/slow', busy);
  await expect.poll(() => slowRequests).toBe(1);
  const startedAt = performance.now();
  const closed = close();
  expect((await slow).status).toBe(200);
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(20_000);
  await expect(get('/quick', idle)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
});

test('closing answers what had arrived while the process had no time to read it', async () => {
  const written = new Int32Array(new SharedArrayBuffer(4));
  const client = new Worker(SENDS_AT_ONCE, { eval: true, workerData: { port, written } });
  onTestFinished(() => client.terminate().then(() => undefined));
  await once(client, 'message');
  client.postMessage('send');
  setTimeout(() => void app.close(), 0);
  Atomics.wait(written, 0, 0, 10_000);
  const [seen] = await once(client, 'message');
  expect(seen).toEqual(Array.from({ length: 40 }, () => 'HTTP/1.1 200 OK'));
});

/** Stops the server as its process would. @returns once it has stopped, after how many milliseconds. */
async function stopAsProcess(drainMs: number): Promise<number> {
  const config = { host: '127.0.0.1', port, adminPort: 0, namespace: undefined, logLevel: 'silent', drainMs };
  const server = httpServer(app, { config, log: createLogger('test', 'silent'), beforeClose: () => undefined });
  const startedAt = performance.now();
  await server.stop();
  return performance.now() - startedAt;
}

test('a client that is silent for most of the drain is answered over the connection that it keeps', async () => {
  const agent = keepAliveAgent();
  const first = await get('/quick', agent);
  const stopped = stopAsProcess(12_000);
  await sleep(7000);
  expect(await get('/quick', agent)).toMatchObject({ status: 200, localPort: first.localPort });
  expect(await stopped).toBeGreaterThan(11_000);
  await expect(get('/quick', keepAliveAgent())).rejects.toThrow(/ECONNREFUSED/);
}, 60_000);

test('the drain ends early where nobody is connected, and not before somebody could come', async () => {
  const stopped = stopAsProcess(60_000);
  await sleep(2000);
  const late = new Agent();
  expect((await get('/quick', late)).status).toBe(200);
  late.destroy();
  const tookMs = await stopped;
  expect(tookMs).toBeGreaterThan(4500);
  expect(tookMs).toBeLessThan(45_000);
}, 90_000);

test('who asks again right after an answer that was under way when closing began is answered', async () => {
  const agents = Array.from({ length: 20 }, keepAliveAgent);
  const slow = agents.map((agent) => get('/slow', agent));
  await expect.poll(() => slowRequests).toBe(agents.length);
  const closed = close();
  const again = async (index: number) => {
    await slow[index];
    await sleep(100 * Math.random());
    return (await get('/quick', agents[index] ?? keepAliveAgent())).status;
  };
  expect(new Set(await Promise.all(agents.map((_, index) => again(index))))).toEqual(new Set([200]));
  await closed;
}, 30_000);

/**
 * Connects ten times, asks once over half of the connections, and on request over all and over
 * thirty new ones.
 */
const SENDS_AT_ONCE = `
  const { once } = require('node:events');
  const { connect } = require('node:net');
  const { parentPort, workerData: { port, written } } = require('node:worker_threads');
  const head = 'host: a\\r\\ncontent-type: application/json\\r\\ncontent-length: 2\\r\\n\\r\\n';
  const outcome = (socket) => new Promise((resolve) => {
    socket.once('data', (data) => resolve(String(data).slice(0, 15)));
    socket.once('close', () => resolve('closed'));
    socket.once('error', ({ code }) => resolve(code));
  });
  (async () => {
    const sockets = Array.from({ length: 10 }, () => connect(port, '127.0.0.1'));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const used = sockets.slice(0, 5);
    for (const socket of used) socket.write('GET /quick HTTP/1.1\\r\\nhost: a\\r\\n\\r\\n');
    await Promise.all(used.map((socket) => once(socket, 'data')));
    parentPort.postMessage('connected');
    await new Promise((resolve) => parentPort.once('message', resolve));
    for (let more = 0; more < 30; more += 1) sockets.push(connect(port, '127.0.0.1'));
    await Promise.all(sockets.slice(10).map((socket) => once(socket, 'connect')));
    for (const socket of sockets) socket.write('POST /echo HTTP/1.1\\r\\n' + head + '{}');
    const seen = Promise.all(sockets.map(outcome));
    Atomics.store(written, 0, 1);
    Atomics.notify(written, 0);
    parentPort.postMessage(await seen);
  })();
`;

/**
 * Asks for the large answer and does not read it; the server is through with it, but most of it is
 * still to be sent.
 */
async function askWithoutReading(): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.pause().write('GET /large HTTP/1.1\r\nhost: a\r\n\r\n');
  await expect
    .poll(() => largeAnswer?.writableEnded === true && (largeAnswer.socket?.writableLength ?? 0) > 0, {
      timeout: 20_000,
    })
    .toBe(true);
  return socket;
}

test('closing delivers an answer that is under way to a slow reader, whole', { timeout: 60_000 }, async () => {
  const socket = await askWithoutReading();
  const closed = app.close();
  await sleep(500);
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1.1 200 /);
  expect(answer.split('\r\n\r\n')[1]?.length).toBe(LARGE.length);
  await closed;
});

test('closing gives up on a reader that does not read, after its limit', { timeout: 60_000 }, async () => {
  await app.close();
  await startApp({ closingLimitMs: 500 });
  const socket = await askWithoutReading();
  const gone = once(socket, 'close').catch(() => undefined);
  await app.close();
  socket.resume();
  await gone;
  expect(socket.bytesRead).toBeLessThan(LARGE.length);
});

test.each([
  ['no HTTP', 'hello\r\n\r\n', 400],
  ['a header that never ends', `GET /quick HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ['two different lengths', 'POST /quick HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 400],
])('%s is answered in the shape of the contract and closed', async (_what, bytes, status) => {
  const answer = await exchangeRaw(bytes);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const [, body = ''] = answer.split('\r\n\r\n');
  expect(JSON.parse(body)).toEqual({ error: 'Invalid request', message: expect.any(String) });
});

test('what expects more than a server can is refused in the shape of the contract, and the connection kept', async () => {
  const [first = '', second = ''] = (
    await exchangeRaw(
      'POST /quick HTTP/1.1\r\nhost: a\r\nexpect: wonders\r\ncontent-length: 2\r\n\r\nab' +
        'GET /quick HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n',
    )
  ).split(/(?<=\})(?=HTTP)/);
  expect(first).toMatch(/^HTTP\/1.1 417 Expectation Failed\r\n/);
  expect(first).toContain('content-type: application/json');
  expect(JSON.parse(first.split('\r\n\r\n')[1] ?? '')).toEqual({
    error: 'Expectation failed',
    message: expect.any(String),
  });
  expect(second).toMatch(/^HTTP\/1.1 200 /);
});

const EXPECTANT = 'host: a\r\nexpect: 100-Continue\r\nconnection: close\r\n';

test('what expects 100 Continue gets it, once its body is wanted', async () => {
  const answer = await exchangeRaw(
    `POST /echo HTTP/1.1\r\n${EXPECTANT}content-type: application/json\r\ncontent-length: 2\r\n\r\n{}`,
  );
  expect(answer).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/);
});

test.each([
  ['a token', 'POST /guarded', 'content-type: application/json\r\ncontent-length: 2', 401],
  ['a path', 'POST /nothing', 'content-type: application/json\r\ncontent-length: 2', 404],
  ['a method', 'PUT /echo', 'content-type: application/json\r\ncontent-length: 2', 405],
  ['a content type', 'POST /echo', 'content-type: text/csv\r\ncontent-length: 2', 415],
  ['a content type that is missing', 'POST /echo', 'content-length: 2', 415],
  ['a coding', 'POST /echo', 'content-type: application/json\r\ncontent-encoding: gzip\r\ncontent-length: 2', 415],
  ['a charset', 'POST /echo', 'content-type: application/json; charset=utf-16\r\ncontent-length: 2', 415],
  ['a length', 'POST /echo', 'content-type: application/json\r\ncontent-length: 1001', 413],
  ['another field', 'POST /echo', 'host: b\r\ncontent-type: application/json\r\ncontent-length: 2', 400],
  ['a route that reads no body', 'GET /quick', 'content-length: 2', 200],
])('what %s decides is answered without asking for the body', async (...[, line, fields, status]) => {
  const answer = await exchangeRaw(`${line} HTTP/1.1\r\n${EXPECTANT}${fields}\r\n\r\n`);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
});

const field = (...lines: readonly string[]) => `GET /quick HTTP/1.1\r\n${lines.join('\r\n')}\r\n\r\n`;

test.each([
  ['no host', field('x: y')],
  ['two hosts', field('host: a', 'Host: b')],
  ['the same host twice', field('host: a', 'host: a')],
  ['a host that is a URL', field('host: http://a/')],
  ['a host with credentials', field('host: user@a')],
  ['a host that is two', field('host: a, b')],
  ['a host with a port that is none', field('host: a:http')],
  ['a host with a port beyond all', field('host: a:65536')],
  ['a host in brackets that is no address', field('host: [::g]')],
  ['a host that is half an encoding', field('host: a%2')],
  ['a bad host in HTTP/1.0', field('host: a b').replace('/1.1', '/1.0')],
  ['two tokens', field('host: a', 'authorization: Bearer a', 'Authorization: Bearer b')],
  ['two content types', field('host: a', 'content-type: a/b', 'content-type: a/c')],
  ['two lengths', field('host: a', 'content-length: 0', 'content-length: 0')],
  ['two origins', field('host: a', 'origin: https://a', 'origin: https://b')],
  ['two ranges', field('host: a', 'range: bytes=0-1', 'range: bytes=2-3')],
  [
    'two tokens with many fields between',
    field('host: a', 'authorization: Bearer a', ...Array.from({ length: 2500 }, () => 'x:'), 'authorization: Bearer b'),
  ],
  ['a path that is no UTF-8', 'GET /%ff HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['a path with half an encoding', 'GET /%zz HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['a path with a surrogate', 'GET /%ed%a0%80 HTTP/1.1\r\nhost: a\r\n\r\n'],
  ['a path with bytes that are not encoded', Buffer.from('GET /é HTTP/1.1\r\nhost: a\r\n\r\n')],
  ['a query that is no UTF-8', 'GET /quick?a=%c3%28 HTTP/1.1\r\nhost: a\r\n\r\n'],
])('a request with %s is refused in the shape of the contract', async (_what, bytes) => {
  const answer = await exchangeRaw(bytes.toString('latin1').replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
  expect(answer).toMatch(/^HTTP\/1.1 400 Bad Request\r\n/);
  const [, body = ''] = answer.split('\r\n\r\n');
  expect(JSON.parse(body)).toEqual({ error: 'Invalid request', message: expect.any(String) });
});

test.each([
  ['a name with a port', field('host: shop.default.svc:8080')],
  ['an address', field('host: [::1]:3000')],
  ['an empty host', field('host:')],
  ['no host in HTTP/1.0', field('x: y').replace('/1.1', '/1.0')],
  ['two fields that may be several', field('host: a', 'accept: a/b', 'accept: a/c', 'x-own: 1', 'x-own: 2')],
  ['a percent sign in the query', 'GET /quick?a=100% HTTP/1.1\r\nhost: a\r\n\r\n'],
])('a request with %s is answered', async (_what, bytes) => {
  const answer = await exchangeRaw(bytes.replace('\r\n\r\n', '\r\nconnection: close\r\n\r\n'));
  expect(answer).toMatch(/^HTTP\/1.1 200 OK\r\n/);
});

test('hooks run for a path that cannot be decoded, and see it as it came', async () => {
  const answer = await exchangeRaw('GET /%ff?x HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  expect(answer).toMatch(/\r\nx-seen: \/%ff\?x\r\n/);
});
