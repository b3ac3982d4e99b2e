import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startBackend, startGateway, tokenOf } from './gateway.ts';

const LIMIT_BYTES = 200_000;
const HEADERS_MS = 1000;

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('hostile');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: {
        ROLLCALL_BODY_LIMIT_BYTES: String(LIMIT_BYTES),
        ROLLCALL_UPSTREAM_HEADERS_MS: String(HEADERS_MS),
        ROLLCALL_UPSTREAM_BODY_MS: '1000',
        ROLLCALL_UPSTREAM_CONNECT_MS: '500',
        ROLLCALL_LIMIT_PREMIUM: '100000',
      },
    }),
  );
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tests', scopes: ['messages:send'] }));
});

afterAll(() => stack.disposeAsync());

async function register(service_name: string, service_url: string): Promise<void> {
  const { status } = await registry.call('POST', '/services/register', { service_name, service_url });
  expect(status).toBe(200);
  await vi.waitFor(
    async () => {
      expect(await (await call(`/api/v1/${service_name}/`)).text()).not.toContain('SERVICE_NOT_FOUND');
    },
    { timeout: 30_000 },
  );
}

function call(path: string, init: RequestInit & { readonly duplex?: 'half' } = {}): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
}

async function codeOf(answer: Response): Promise<string> {
  return ((await answer.json()) as { error: { code: string } }).error.code;
}

/** A service that speaks as it likes: called with each connection. */
async function startRaw(speak: (socket: Socket) => void): Promise<AsyncDisposable & { readonly url: string }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.once('close', () => sockets.delete(socket));
    speak(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('There is no port');
  return {
    url: `http://127.0.0.1:${address.port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** Answers every request, once its head is there, with these bytes, and closes the connection. */
function answering(bytes: string | Buffer) {
  return startRaw((socket) => socket.once('data', () => socket.end(bytes)));
}

describe('an answer that is odd', () => {
  test.each([
    [
      'a reason phrase in latin-1',
      Buffer.from('HTTP/1.1 404 Non trouv\u00e9\r\ncontent-length: 2\r\n\r\nno', 'latin1'),
      404,
    ],
    ['a reason phrase in UTF-8', Buffer.from('HTTP/1.1 200 \u2713\r\ncontent-length: 2\r\n\r\nok'), 200],
    ['no reason phrase', 'HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok', 200],
    ['a value in latin-1', Buffer.from('HTTP/1.1 200 OK\r\nx-a: \u00e9\r\ncontent-length: 2\r\n\r\nok', 'latin1'), 200],
    ['a status beyond all', 'HTTP/1.1 799 Odd\r\ncontent-length: 2\r\n\r\nok', 799],
    ['a status below all', 'HTTP/1.1 099 Odd\r\ncontent-length: 2\r\n\r\nok', 502],
    ['a switch of protocols', 'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n', 502],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok', 502],
    ['a control byte in a value', 'HTTP/1.1 200 OK\r\nx-a: a\u0001b\r\ncontent-length: 2\r\n\r\nok', 502],
    ['a head without an end', `HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(100_000)}`, 502],
  ])('%s: costs nobody else anything', async (name, bytes, status) => {
    await using odd = await answering(bytes);
    const service = name.replaceAll(/[^a-z]+/gi, '-').toLowerCase();
    await register(service, odd.url);
    // After five failures in a row the service gets a pause.
    const statuses = status === 502 ? [502, 503] : [status];
    const body = status === 502 ? /"code":"UPSTREAM_/ : /^(ok|no)$/;
    for (const method of ['GET', 'POST', 'HEAD']) {
      const answer = await call(`/api/v1/${service}/x`, { method });
      expect(statuses).toContain(answer.status);
      expect(await answer.text()).toMatch(method === 'HEAD' ? /^$/ : body);
    }
    expect((await fetch(`${gateway.url}/api/health`)).status).toBe(200);
  });
});

/** A connection of a caller, with what came back over it. */
function openConnection() {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString('latin1');
  });
  socket.on('error', () => undefined);
  return {
    socket,
    received: () => received,
    head: (line: string, ...fields: string[]) =>
      socket.write([line, 'Host: x', `Authorization: Bearer ${token}`, ...fields, '', ''].join('\r\n')),
    [Symbol.dispose]: () => void socket.destroy(),
  };
}

describe('an upload that a service does not take to its end', () => {
  const answers: readonly (readonly [string, string, number])[] = [
    ['refuses it', 'HTTP/1.1 403 Forbidden\r\ncontent-length: 2\r\n\r\nno', 403],
    ['breaks off', '', 502],
  ];
  const lengths = [
    [
      'announced',
      (connection: ReturnType<typeof openConnection>, path: string) => {
        connection.head(`POST ${path} HTTP/1.1`, 'Content-Length: 100000');
        return { send: (bytes: number) => connection.socket.write('x'.repeat(bytes)), end: () => undefined };
      },
    ],
    [
      'in chunks',
      (connection: ReturnType<typeof openConnection>, path: string) => {
        connection.head(`POST ${path} HTTP/1.1`, 'Transfer-Encoding: chunked');
        const send = (bytes: number) => connection.socket.write(`${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`);
        return { send, end: () => connection.socket.write('0\r\n\r\n') };
      },
    ],
  ] as const;
  const cases = answers.flatMap(([what, bytes, status]) =>
    lengths.map(([length, begin]) => ({ what, bytes, status, length, begin })),
  );

  test.each(cases)(
    'because it $what, $length: the answer comes, and the connection is good for the next',
    async ({ what, bytes, status, begin }) => {
      await using service = await startRaw((socket) => {
        socket.on('data', (data: Buffer) => {
          if (!/^[A-Z]+ /.test(data.toString())) return;
          if (bytes === '') socket.resetAndDestroy();
          else socket.write(bytes);
        });
      });
      await using shop = await startBackend((_request, response) => void response.end('next'));
      const name = what.replaceAll(' ', '-');
      await register(name, service.url);
      await register('shop', shop.url);
      using connection = openConnection();
      const upload = begin(connection, `/api/v1/${name}/up`);
      upload.send(10_000);
      await vi.waitFor(() => expect(connection.received()).toContain(`HTTP/1.1 ${status} `), { timeout: 30_000 });
      upload.send(90_000);
      upload.end();
      connection.head('GET /api/v1/shop/x HTTP/1.1');
      await vi.waitFor(() => expect(connection.received()).toMatch(/next$/), { timeout: 30_000 });
    },
  );

  test('because it is too long: refused, however it is sent, and not read for ever', async () => {
    await using shop = await startBackend();
    await register('shop', shop.url);
    const announced = await call('/api/v1/shop/up', { method: 'POST', body: 'x'.repeat(LIMIT_BYTES + 1) });
    expect({ status: announced.status, code: await codeOf(announced) }).toEqual({
      status: 413,
      code: 'BODY_TOO_LARGE',
    });
    using connection = openConnection();
    const upload = lengths[1][1](connection, '/api/v1/shop/up');
    const closed = new Promise((resolve) => connection.socket.once('close', resolve));
    upload.send(LIMIT_BYTES + 1);
    await vi.waitFor(() => expect(connection.received()).toMatch(/^HTTP\/1\.1 413 .*"code":"BODY_TOO_LARGE"/s), {
      timeout: 30_000,
    });
    const endless = setInterval(() => upload.send(50_000), 5);
    await closed;
    clearInterval(endless);
    await vi.waitFor(() => expect(shop.requests.filter(({ complete }) => !complete)).toHaveLength(1), {
      timeout: 30_000,
    });
  });
});

test('a caller that asks before it sends gets no 100 Continue for what is too long', async () => {
  await using shop = await startBackend();
  await register('shop', shop.url);
  for (const [bytes, begin] of [
    [LIMIT_BYTES + 1, /^HTTP\/1\.1 413 /],
    [10, /^HTTP\/1\.1 100 /],
  ] as const) {
    using connection = openConnection();
    connection.head('POST /api/v1/shop/up HTTP/1.1', `Content-Length: ${bytes}`, 'Expect: 100-continue');
    await vi.waitFor(() => expect(connection.received()).toMatch(begin), { timeout: 30_000 });
  }
});

describe('a breaker', () => {
  test('stays closed for streams in which nothing happens, and uploads that are refused', async () => {
    await using quiet = await startRaw((socket) =>
      socket.once('data', (data) => {
        if (data.toString().startsWith('POST')) socket.resetAndDestroy();
        else if (data.toString().includes('/stream')) {
          socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n:\n\n');
        } else socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nfine');
      }),
    );
    await register('quiet', quiet.url);
    for (let count = 0; count < 6; count += 1) {
      const upload = await call('/api/v1/quiet/up', { method: 'POST', body: 'x'.repeat(150_000) });
      expect(upload.status).toBe(502);
      await upload.body?.cancel();
    }
    const streams = await Promise.all(Array.from({ length: 6 }, () => call('/api/v1/quiet/stream')));
    for (const stream of streams) await expect(stream.text()).rejects.toThrow(/terminated|closed/);
    expect(await (await call('/api/v1/quiet/x')).text()).toBe('fine');
  });
});

describe('one caller', () => {
  test('who leaves its requests open has so many to a service, and others come through', async () => {
    await using open = await startBackend((request, response) => {
      if (request.url?.endsWith('/stream') === true) {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
        const timer = setInterval(() => response.write(':\n\n'), 400);
        response.once('close', () => clearInterval(timer));
      } else response.end('fine');
    });
    await register('open', open.url);
    // A client of its own, whose limit a minute nothing else has used.
    const many = await tokenOf(gateway, await createClient(namespace, { id: 'many' }));
    const leaving = new AbortController();
    const ask = (path: string, signal?: AbortSignal) =>
      fetch(`${gateway.url}${path}`, {
        headers: { authorization: `Bearer ${many}` },
        ...(signal === undefined ? {} : { signal }),
      });
    const asked = Array.from({ length: 520 }, () => ask('/api/v1/open/stream', leaving.signal));
    const streams = await Promise.all(asked);
    const counts = Object.groupBy(streams, ({ status }) => status);
    expect(Object.entries(counts).map(([status, answers]) => [status, answers?.length])).toEqual([
      ['200', 512],
      ['429', 8],
    ]);
    const refused = streams.find(({ status }) => status === 429);
    expect(refused?.headers.get('retry-after')).toBe('1');
    const other = await tokenOf(gateway, await createClient(namespace, { id: 'other' }));
    const answer = await fetch(`${gateway.url}/api/v1/open/x`, { headers: { authorization: `Bearer ${other}` } });
    expect(await answer.text()).toBe('fine');
    leaving.abort();
    await vi.waitFor(async () => expect((await ask('/api/v1/open/x')).status).toBe(200), { timeout: 30_000 });
  });
});

describe('a service that cannot be reached', () => {
  test('is 502 where nobody listens, 504 where nobody accepts the connection', async () => {
    const gone = await answering('');
    await register('gone', gone.url);
    await gone[Symbol.asyncDispose]();
    const nobody = await call('/api/v1/gone/x', { method: 'POST' });
    expect({ status: nobody.status, code: await codeOf(nobody) }).toEqual({
      status: 502,
      code: 'UPSTREAM_UNREACHABLE',
    });

    // A backlog of one that is full: the kernel answers no further connection.
    await using full = await startFullListener();
    await register('full', full.url);
    const startedAt = performance.now();
    const nothing = await call('/api/v1/full/x', { method: 'POST' });
    expect({ status: nothing.status, code: await codeOf(nothing) }).toEqual({ status: 504, code: 'UPSTREAM_TIMEOUT' });
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(450);
  });
});

/** A listener that accepts nothing, in a process that stands still. */
async function startFullListener(): Promise<AsyncDisposable & { readonly url: string }> {
  const { spawn } = await import('node:child_process');
  const program = `
    const server = require('node:net').createServer();
    server.listen({ port: 0, host: '127.0.0.1', backlog: 1 }, () => {
      process.stdout.write(String(server.address().port));
      for (;;) ;
    });`;
  const child = spawn(process.execPath, ['-e', program], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [text] = await once(child.stdout, 'data');
  const port = Number(String(text));
  const held = Array.from({ length: 8 }, () => connect({ port, host: '127.0.0.1' }).on('error', () => undefined));
  await sleep(200);
  return {
    url: `http://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      for (const socket of held) socket.destroy();
      child.kill('SIGKILL');
      await once(child, 'close');
    },
  };
}

test('a mail passes with all its attachments, announced or in pieces, and nothing that is larger still', {
  timeout: 30_000,
}, async () => {
  const lengths: number[] = [];
  await using mails = await startBackend((request, response) => {
    let received = 0;
    request.on('data', (chunk: Buffer) => {
      received += chunk.length;
    });
    request.on('end', () => {
      if (request.method === 'POST') lengths.push(received);
      response.end('taken');
    });
  });
  await register('communication', mails.url);
  const most = 14_000_000;
  const path = '/api/v1/communication/emails';
  const announced = await call(path, { method: 'POST', body: Buffer.alloc(most) });
  expect(announced.status).toBe(200);
  const pieces = new Blob([Buffer.alloc(most)]).stream();
  expect((await call(path, { method: 'POST', body: pieces, duplex: 'half' })).status).toBe(200);
  expect(lengths).toEqual([most, most]);
  const larger = await call(path, { method: 'POST', body: Buffer.alloc(16 * 1024 * 1024) });
  expect([larger.status, await codeOf(larger)]).toEqual([413, 'BODY_TOO_LARGE']);
  expect((await call('/api/v1/communication/sms', { method: 'POST', body: Buffer.alloc(most) })).status).toBe(413);
});
