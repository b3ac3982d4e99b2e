import { type AddressInfo, connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer } from '@rollcall/platform/http/server.ts';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { expect, onTestFinished, test } from 'vitest';
import { endSlowCallers, type SlowCallersPolicy } from './slow-callers.ts';

const POLICY: SlowCallersPolicy = {
  checkIntervalMs: 50,
  leastBytesPerSecond: 100,
  sendingGraceMs: 500,
  readingGraceMs: 500,
};

interface Options {
  /** Before the body is read. */
  readonly pauseMs?: number;
  /** Of the answer. */
  readonly bytes?: number;
  /** The answer begins, and never ends. */
  readonly endless?: boolean;
}

/** A server that answers with so many bytes, once it has read the body of a request. */
async function startServer({ pauseMs = 0, bytes = 2, endless = false }: Options = {}) {
  const metrics = createMetrics('test');
  const app = createServer({
    log: createLogger('test', 'silent'),
    metrics,
    bodyLimit: 1_000_000,
    mapError: () => undefined,
    closingLimitMs: 100,
  });
  endSlowCallers(app, metrics, POLICY);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('*', (_request, _payload, done) => done(null));
  app.all('/', async ({ raw }, reply) => {
    await sleep(pauseMs);
    for await (const _ of raw);
    if (endless) return reply.send(Readable.from(beginning(), { objectMode: false }));
    return reply.header('content-length', bytes).send(Readable.from(pieces(bytes), { objectMode: false }));
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  onTestFinished(() => app.close());
  const { port } = app.server.address() as AddressInfo;
  const ended = async (fault: string): Promise<number> => {
    const { values = [] } = (await metrics.getSingleMetric('rollcall_gateway_slow_callers_total')?.get()) ?? {};
    return values.find(({ labels }) => labels['fault'] === fault)?.value ?? 0;
  };
  return { port, ended };
}

/** As a service's answer comes through the proxy. */
function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= 65_536) yield Buffer.alloc(Math.min(left, 65_536), 'x');
}

async function* beginning(): AsyncGenerator<Buffer> {
  yield Buffer.from('half');
  await new Promise(() => undefined);
}

/** Sends the beginning of a request. */
function call(port: number, head: string) {
  const socket: Socket = connect({ port, host: '127.0.0.1' });
  onTestFinished(() => void socket.destroy());
  socket.on('error', () => undefined);
  socket.write(`${head}\r\nhost: x\r\n\r\n`);
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
  });
  return { socket, closed };
}

test('a body that comes byte by byte is not waited for', async () => {
  const { port, ended } = await startServer();
  const { socket, closed } = call(port, 'POST / HTTP/1.1\r\ncontent-length: 1000');
  const dripping = setInterval(() => socket.write('x'), 100);
  onTestFinished(() => clearInterval(dripping));
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 408 /);
  expect(await ended('sending')).toBe(1);
});

test.each([
  ['there is no such path', 404, 'POST /nowhere HTTP/1.1'],
  ['the path cannot be decoded', 400, 'POST /%zz HTTP/1.1'],
  ['more is expected than a server can', 417, 'POST / HTTP/1.1\r\nexpect: wonders'],
])('nor is one that comes byte by byte after its answer, where %s', async (_what, status, head) => {
  const { port, ended } = await startServer();
  const { socket, closed } = call(port, `${head}\r\ncontent-length: 1000`);
  const dripping = setInterval(() => socket.write('x'), 100);
  onTestFinished(() => clearInterval(dripping));
  const answer = new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
  });
  expect(await answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  socket.resume();
  await closed;
  expect(await ended('sending')).toBe(1);
});

test('nor is one behind an answer that has begun, which is cut off and not continued with a refusal', async () => {
  const { port, ended } = await startServer({ endless: true });
  const { socket, closed } = call(port, 'GET / HTTP/1.1');
  let answer = '';
  socket.on('data', (chunk: Buffer) => {
    answer += chunk.toString();
  });
  socket.write('POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nabc');
  await closed;
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(answer).not.toContain('408');
  expect(await ended('sending')).toBe(1);
});

test('an answer that is not read is not kept', async () => {
  const { port, ended } = await startServer({ bytes: 50_000_000 });
  const { socket, closed } = call(port, 'GET / HTTP/1.1');
  socket.pause();
  await expect.poll(() => ended('reading'), { timeout: 10_000 }).toBe(1);
  socket.resume();
  await closed;
});

test('a body that the service does not read for long is its own affair', async () => {
  const { port, ended } = await startServer({ pauseMs: 2000 });
  const { socket } = call(port, 'POST / HTTP/1.1\r\ncontent-length: 1000000');
  socket.write('x'.repeat(1_000_000));
  const answer = await new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
  });
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
  expect(await ended('sending')).toBe(0);
});

test('a body and an answer that come slowly, and do come, are waited for', async () => {
  const { port, ended } = await startServer({ bytes: 20_000_000 });
  const { socket } = call(port, 'POST / HTTP/1.1\r\ncontent-length: 1000');
  for (let sent = 0; sent < 1000; sent += 50) {
    socket.write('x'.repeat(50));
    await sleep(100);
  }
  socket.resume();
  while (socket.bytesRead < 20_000_000 && !socket.destroyed) {
    socket.pause();
    await sleep(20);
    socket.resume();
    await sleep(2);
  }
  expect(socket.bytesRead).toBeGreaterThan(20_000_000);
  expect([await ended('sending'), await ended('reading')]).toEqual([0, 0]);
});

test('an answer that takes the service long is waited for', async () => {
  const { port } = await startServer({ pauseMs: 2000 });
  const { socket } = call(port, 'GET / HTTP/1.1');
  const answer = await new Promise((resolve) => {
    socket.once('data', (chunk: Buffer) => resolve(chunk.toString()));
  });
  expect(answer).toMatch(/^HTTP\/1\.1 200 /);
});
