import { once } from 'node:events';
import { Agent, request as httpRequest, type ServerResponse } from 'node:http';
import { connect, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { type App, createServer } from '@rollcall/platform/http/server.ts';
import { createLogger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';

/** More than the kernel takes off the server's hands. */
const LARGE = Buffer.alloc(20 * 1024 * 1024, 'x');

let app: App;
let port: number;
let largeAnswer: ServerResponse | undefined;

beforeEach(() => startApp({ closingLimitMs: 60_000 }));
afterEach(() => app.close());

async function startApp({ closingLimitMs }: { readonly closingLimitMs: number }): Promise<void> {
  largeAnswer = undefined;
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: createMetrics('test'),
    bodyLimit: 1000,
    closingLimitMs,
    mapError: () => undefined,
  });
  app.get('/quick', () => ({ ok: true }));
  app.get('/large', (_request, reply) => {
    largeAnswer = reply.raw;
    return reply.type('text/plain').send(LARGE);
  });
  app.get('/slow', async () => {
    await sleep(500);
    return { ok: true };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
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
  socket.write(bytes);
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
  await sleep(100);
  const startedAt = performance.now();
  const closed = app.close();
  expect((await slow).status).toBe(200);
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(2000);
  await expect(get('/quick', idle)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
});

/** Asks for the large answer and does not read it; the server is through with it, but most of it is still to be sent. */
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

test('what expects to be told to go on is', async () => {
  const answer = await exchangeRaw(
    'GET /quick HTTP/1.1\r\nhost: a\r\nexpect: 100-Continue\r\nconnection: close\r\n\r\n',
  );
  expect(answer).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 OK\r\n/);
});
