import { readFile } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startBackend, startGateway, tokenOf } from './gateway.ts';

const PAGE = 'https://app.example.com';

let registry: RunningService;
let gateway: RunningService;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  const namespace = await createNamespace('http-messages');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: { ROLLCALL_LIMIT_PREMIUM: '100000', ROLLCALL_CORS_ORIGINS: PAGE },
    }),
  );
  token = await tokenOf(gateway, await createClient(namespace, { id: 'tests', scopes: ['metrics:read'] }));
});

afterAll(() => stack.disposeAsync());

async function register(service_name: string, service_url: string): Promise<string> {
  const { status } = await registry.call('POST', '/services/register', { service_name, service_url });
  expect(status).toBe(200);
  const path = `/api/v1/${encodeURIComponent(service_name)}`;
  await vi.waitFor(async () => expect(await (await call(`${path}/probe`)).text()).not.toContain('SERVICE_NOT_FOUND'), {
    timeout: 30_000,
  });
  return path;
}

function call(path: string, init: { readonly method?: string; readonly body?: string } = {}): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { ...init, headers: { authorization: `Bearer ${token}` } });
}

/** Sends bytes. @returns all that comes back until the connection ends. */
async function raw(bytes: string): Promise<string> {
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
  socket.write(bytes.replaceAll('TOKEN', `Authorization: Bearer ${token}\r\nConnection: close`));
  return text(socket);
}

/** A service that answers every request, once all of it is there, with these bytes. */
async function answering(bytes: string, { close = true } = {}) {
  const sockets = new Set<Socket>();
  const requests: string[] = [];
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    socket.on('data', (data: Buffer) => {
      requests.push(data.toString('latin1'));
      socket.write(Buffer.from(bytes, 'latin1'));
      if (close) socket.end();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    requests,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

/** The lines of the access log about requests with an id. */
async function logged(requestId: string): Promise<readonly Record<string, unknown>[]> {
  const lines = (await readFile(gateway.logFile, 'utf8')).split('\n').filter((line) => line.includes(requestId));
  return lines.map((line) => JSON.parse(line) as Record<string, unknown>);
}

describe('a service named', () => {
  test.each(['服务', 'café', '100%sure?', 'naïve🎉', "it's(a)*test!", 'ünïcödé.v2'])('%s is reached', async (name) => {
    await using shop = await startBackend();
    const path = await register(name, shop.url);
    const answer = await call(`${path}/courses`);
    expect(answer.status).toBe(200);
    const { headers } = (await answer.json()) as { headers: Record<string, string> };
    expect(decodeURIComponent(headers['x-rollcall-service'] ?? '')).toBe(name);
    const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
    expect(metrics).toContain(`service="${name}"`);
    const id = answer.headers.get('x-request-id') ?? '';
    await vi.waitFor(async () => expect(await logged(id)).toMatchObject([{ service: name, result: 200 }]), {
      timeout: 30_000,
    });
  });
});

describe('an interim answer that nobody asked for', () => {
  test.each([
    ['100', 'HTTP/1.1 100 Continue\r\n\r\n'],
    ['100 with fields', 'HTTP/1.1 100 Continue\r\nx-a: b\r\n\r\n'],
    ['102', 'HTTP/1.1 102 Processing\r\n\r\n'],
    ['103', 'HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n'],
    ['199', 'HTTP/1.1 199 Odd\r\n\r\n'],
    ['several', 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n'],
  ])('%s is passed over, and the service asked once', async (what, interim) => {
    await using eager = await answering(`${interim}HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok`, { close: false });
    const path = await register(`interim ${what}`.replaceAll(' ', '-'), eager.url);
    eager.requests.length = 0;
    for (const method of ['POST', 'GET', 'PUT', 'POST', 'DELETE', 'POST']) {
      const answer = await call(`${path}/x`, { method, ...(method === 'POST' ? { body: 'x' } : {}) });
      expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
    }
    expect(eager.requests).toHaveLength(6);
  });
});

/** What matters of how an answer is framed. */
function framing(answer: string): string {
  const [head = '', ...rest] = answer.split('\r\n\r\n');
  const body = rest.join('\r\n\r\n');
  const status = /^HTTP\/1\.1 (\d+)/.exec(head)?.[1];
  const code = /"code":"(\w+)"/.exec(body)?.[1];
  if (code !== undefined) return `${status} ${code}`;
  const length = /^content-length: (.*)$/im.exec(head)?.[1];
  const isChunked = /^transfer-encoding: chunked$/im.test(head);
  const text = isChunked ? body.replaceAll(/[0-9a-f]+\r\n(.*)\r\n/g, '$1').trim() : body;
  const framed = length === undefined ? 'without a length' : `of ${length}`;
  return `${status} ${isChunked ? 'in chunks' : framed}: ${text}`;
}

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n';

describe('an answer', () => {
  test.each([
    ['204 with a length', 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\n', '204 without a length: '],
    ['204 with a body', 'HTTP/1.1 204 No Content\r\ncontent-length: 5\r\n\r\nhello', '204 without a length: '],
    [
      '204 with chunks',
      'HTTP/1.1 204 No Content\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '204 without a length: ',
    ],
    ['205 with a body', 'HTTP/1.1 205 Reset Content\r\ncontent-length: 5\r\n\r\nhello', '205 of 0: '],
    [
      '205 with chunks',
      'HTTP/1.1 205 Reset Content\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '205 of 0: ',
    ],
    ['304 with a length', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\n', '304 of 5: '],
    ['304 with a body', 'HTTP/1.1 304 Not Modified\r\ncontent-length: 5\r\n\r\nhello', '304 of 5: '],
    [
      'with a length and a coding',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '502 UPSTREAM_INVALID',
    ],
    [
      'with one length twice',
      'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nok',
      '502 UPSTREAM_INVALID',
    ],
    ['with two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['with a list of lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2, 3\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['with a length of letters', 'HTTP/1.1 200 OK\r\ncontent-length: two\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['with a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nok', '502 UPSTREAM_INVALID'],
    [
      'in gzip and chunks',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '502 UPSTREAM_INVALID',
    ],
    ['in gzip alone', 'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nok', '502 UPSTREAM_INVALID'],
    [
      'in two codings',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '502 UPSTREAM_INVALID',
    ],
    [
      'in Chunked',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
      '200 in chunks: hello',
    ],
    ['with DEL in a value', 'HTTP/1.1 200 OK\r\nx-a: a\u007fb\r\ncontent-length: 2\r\n\r\nok', '502 UPSTREAM_INVALID'],
    [
      'with a space before a colon',
      'HTTP/1.1 200 OK\r\nx-a : b\r\ncontent-length: 2\r\n\r\nok',
      '502 UPSTREAM_INVALID',
    ],
    ['with a name that is none', 'HTTP/1.1 200 OK\r\nx(a: b\r\ncontent-length: 2\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['with a folded value', 'HTTP/1.1 200 OK\r\nx-a: a\r\n b\r\ncontent-length: 2\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['101 to an upgrade', `${UPGRADE}\r\n`, '502 UPSTREAM_INVALID'],
    ['101 to an upgrade before another', `${UPGRADE}\r\nHTTP/1.1 200 OK\r\n\r\n`, '502 UPSTREAM_INVALID'],
    ['101 alone', 'HTTP/1.1 101 Odd\r\n\r\n', '502 UPSTREAM_INVALID'],
    ['101 before another', 'HTTP/1.1 101 Odd\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', '502 UPSTREAM_INVALID'],
    ['000', 'HTTP/1.1 000 Odd\r\ncontent-length: 2\r\n\r\nok', '502 UPSTREAM_INVALID'],
    ['099 before another', 'HTTP/1.1 099 Odd\r\n\r\nHTTP/1.1 200 OK\r\n\r\n', '502 UPSTREAM_INVALID'],
  ])('%s goes out as it may, or not at all', async (what, bytes, expected) => {
    await using odd = await answering(bytes);
    const path = await register(`answer ${what}`.replaceAll(' ', '-'), odd.url);
    odd.requests.length = 0;
    expect(framing(await raw(`GET ${path}/x HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n`))).toBe(expected);
    // What is invalid would be so again.
    expect(odd.requests).toHaveLength(1);
  });

  test('to HEAD has no body, whatever the service sends', async () => {
    await using odd = await answering('HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello');
    const path = await register('head-with-body', odd.url);
    for (let count = 0; count < 6; count += 1) {
      const answer = await raw(`HEAD ${path}/x HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*content-length: 5\r\n[^]*\r\n\r\n$/);
    }
  });

  test('whose head is too large is refused, and every other path of the service goes on', async () => {
    await using large = await startBackend((request, response) => {
      if (request.url?.endsWith('/large') === true) response.setHeader('x-large', 'x'.repeat(40_000));
      response.end('fine');
    });
    const path = await register('large-heads', large.url);
    for (let count = 0; count < 8; count += 1) {
      const answer = await call(`${path}/large`);
      expect(answer.status).toBe(502);
      const message = expect.stringContaining('more than 16384 bytes');
      expect(await answer.json()).toMatchObject({ error: { code: 'UPSTREAM_INVALID', message } });
    }
    expect(await (await call(`${path}/other`)).text()).toBe('fine');
  });

  test('with bytes beyond ASCII in a value goes out with the same bytes', async () => {
    const value = Buffer.from('服务 é', 'utf8').toString('latin1');
    await using odd = await answering(`HTTP/1.1 200 OK\r\nx-a: ${value}\r\ncontent-length: 2\r\n\r\nok`);
    const path = await register('bytes', odd.url);
    expect((await call(`${path}/x`)).headers.get('x-a')).toBe(value);
  });
});

describe('a request target', () => {
  test.each([
    ['in absolute form', 'http://shop.example:81/api/v1/targets/x?a=b', 'shop.example:81', '/api/v1/x?a=b'],
    ['without a path', '/api/v1/targets', 'h', '/api/v1'],
    ['of https', 'HTTPS://shop.example/api/v1/targets/x', 'shop.example', '/api/v1/x'],
  ])('%s arrives as a path, with its own authority', async (...[, target, host, path]) => {
    await using shop = await startBackend();
    await register('targets', shop.url);
    const answer = await raw(`GET ${target} HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK/);
    const json = /\{.*\}/s.exec(answer)?.[0] ?? '';
    const { url, headers } = JSON.parse(json) as { url: string; headers: Record<string, string> };
    expect({ url, host: headers['x-forwarded-host'] }).toEqual({ url: path, host });
    expect(headers['forwarded']).toMatch(new RegExp(`host="?${host}"?;`));
  });

  test('in absolute form reaches the own endpoints, and /api/ws', async () => {
    expect(await raw('GET http://h/api/health HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n')).toMatch(/^HTTP\/1\.1 200 /);
    const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13';
    const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==';
    const answer = raw(`GET http://h/api/ws HTTP/1.1\r\nHost: h\r\n${upgrade}\r\n${key}\r\n\r\n`);
    expect(await answer).toMatch(/^HTTP\/1\.1 401 /);
  });

  test.each([
    ['OPTIONS *', 400, /\* asks for no path/],
    ['GET *', 400, /\* asks for no path/],
    ['GET ftp://h/api/v1/shop/x', 400, /neither a path nor a URL/],
    ['GET http://me@h/api/v1/shop/x', 400, /neither a path nor a URL/],
    ['CONNECT h:443', 501, /no tunnels/],
  ])('%s is refused in the usual way', async (line, status, message) => {
    const id = `id-${line.replaceAll(/[^a-z]+/gi, '-')}`;
    const answer = await raw(`${line} HTTP/1.1\r\nHost: h\r\nOrigin: ${PAGE}\r\nX-Request-Id: ${id}\r\nTOKEN\r\n\r\n`);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(answer).toContain(`x-request-id: ${id}\r\n`);
    const { error } = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { error: Record<string, unknown> };
    expect(error).toEqual({ code: expect.any(String), message: expect.stringMatching(message), details: {} });
    await vi.waitFor(async () => expect(await logged(id)).toMatchObject([{ result: status, code: error['code'] }]), {
      timeout: 30_000,
    });
    // No browser sends CONNECT.
    const isReadable = line.startsWith('CONNECT') || answer.includes(`access-control-allow-origin: ${PAGE}\r\n`);
    expect(isReadable).toBe(true);
  });
});

test.each(['HTTP/2.0', 'HTTP/0.9'])('a request line with %s is refused in the usual way', async (version) => {
  await using shop = await startBackend();
  const path = `${await register('versions', shop.url)}/x`;
  const asked = shop.requests.length;
  const upgrade = 'Connection: upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  const key = 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n';
  for (const [each, fields] of [
    [path, ''],
    ['/api/health', ''],
    ['/api/ws', upgrade + key],
  ] as const) {
    // That it comes to an end: the connection is closed.
    const keepAlive = fields === '' ? 'Connection: keep-alive\r\n' : fields;
    const answer = await raw(`GET ${each} ${version}\r\nHost: h\r\n${keepAlive}\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 505 [^]*\{"error":\{"code":"VERSION_NOT_SUPPORTED"/);
  }
  expect(shop.requests.length).toBe(asked);
});

describe('a body in a coding that nobody undoes', () => {
  const chunked = '2\r\nok\r\n0\r\n\r\n';
  test.each([
    ['gzip, chunked', 'HTTP/1.1', 501, 'NOT_IMPLEMENTED'],
    ['deflate,chunked', 'HTTP/1.1', 501, 'NOT_IMPLEMENTED'],
    ['chunked', 'HTTP/1.0', 400, 'INVALID_REQUEST'],
  ])(
    "%s in %s is refused in the usual way, by a service's path and by an own one",
    async (...[coding, version, status, code]) => {
      await using shop = await startBackend();
      const path = `${await register('coded', shop.url)}/x`;
      const asked = shop.requests.length;
      for (const each of [path, '/api/metrics']) {
        const id = `coding-${status}-${coding.length}-${each.length}`;
        const fields = `Origin: ${PAGE}\r\nX-Request-Id: ${id}`;
        const head = `GET ${each} ${version}\r\nHost: h\r\n${fields}\r\nTransfer-Encoding: ${coding}\r\nTOKEN\r\n\r\n`;
        const answer = await raw(`${head}${chunked}`);
        expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
        expect(answer).toContain(`x-request-id: ${id}\r\n`);
        expect(answer).toContain(`access-control-allow-origin: ${PAGE}\r\n`);
        expect(answer).toContain(`{"error":{"code":"${code}"`);
        await vi.waitFor(async () => expect(await logged(id)).toMatchObject([{ result: status, code }]), {
          timeout: 30_000,
        });
      }
      expect(shop.requests.length).toBe(asked);
      const plain = await raw(
        `POST ${path} HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: Chunked\r\nTOKEN\r\n\r\n${chunked}`,
      );
      expect(plain).toMatch(/^HTTP\/1\.1 200 [^]*"body":"ok"/);
    },
  );
});

describe('what is no request is refused in the usual way', () => {
  test.each([
    ['no HTTP', 'hello\r\n\r\n', 400, 'INVALID_REQUEST'],
    [
      'a head that is too large',
      `GET / HTTP/1.1\r\nHost: h\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
      431,
      'HEADERS_TOO_LARGE',
    ],
    [
      'a chunked coding that is not the last',
      'POST /a HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n',
      400,
      'INVALID_REQUEST',
    ],
  ])('%s', async (...[, bytes, status, code]) => {
    const answer = await raw(bytes);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    const id = /^x-request-id: ([0-9a-f]{32})\r$/m.exec(answer)?.[1] ?? 'none';
    const { error } = JSON.parse(answer.split('\r\n\r\n')[1] ?? '') as { error: object };
    expect(error).toEqual({ code, message: expect.any(String), details: {} });
    await vi.waitFor(async () => expect(await logged(id)).toMatchObject([{ result: status, code }]), {
      timeout: 30_000,
    });
  });
});

describe('what comes before an answer', () => {
  const hinting = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\nConnection: x\r\nLink: </b.js>\r\n\r\n';
  const ok = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

  test('is passed on', async () => {
    await using service = await answering(`${hinting}HTTP/1.1 102 Processing\r\n\r\n${ok}`);
    const path = await register('hints', service.url);
    const answer = await raw(`GET ${path}/x HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 103 Early Hints\r\nlink: <\/a\.css>; rel=preload\r\nlink: <\/b\.js>\r\n\r\n/i);
    expect(answer).toMatch(/\r\n\r\nHTTP\/1\.1 102 Processing\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok$/);
  });

  test('does not reach a caller of HTTP/1.0', async () => {
    await using service = await answering(`${hinting}${ok}`);
    const path = await register('hints-old', service.url);
    expect(await raw(`GET ${path}/x HTTP/1.0\r\nTOKEN\r\n\r\n`)).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
  });
});

describe('trailers', () => {
  const chunked = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n';
  const bytes = `${chunked}Server-Timing: db;dur=5\r\nSet-Cookie: a=b\r\nX-Request-Id: theirs\r\n\r\n`;

  test('are passed on to a caller who reads them', async () => {
    await using service = await answering(bytes);
    const path = await register('trailing', service.url);
    const answer = await raw(`GET ${path}/x HTTP/1.1\r\nHost: h\r\nTE: trailers\r\nTOKEN\r\n\r\n`);
    expect(answer).toMatch(/\r\n2\r\nok\r\n0\r\nserver-timing: db;dur=5\r\n\r\n$/i);
    expect(service.requests.at(-1)).toMatch(/\r\nte: trailers\r\n/i);
  });

  test('are left out for every other', async () => {
    await using service = await answering(bytes);
    const path = await register('trailing-unread', service.url);
    const answer = await raw(`GET ${path}/x HTTP/1.1\r\nHost: h\r\nTOKEN\r\n\r\n`);
    expect(answer).toMatch(/\r\n2\r\nok\r\n0\r\n\r\n$/);
    expect(service.requests.at(-1)).not.toMatch(/\r\nte:/i);
  });
});
