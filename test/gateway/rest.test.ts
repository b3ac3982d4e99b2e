import { request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '@rollcall/platform/clock.ts';
import { createGatewayKeys } from '@rollcall/platform/http/gateway-keys.ts';
import { createIdentityReader } from '@rollcall/platform/http/identity.ts';
import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, tokenOf } from './gateway.ts';

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let shop: Backend;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('gateway');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(
    await startGateway({
      namespace,
      registry: registry.url,
      settings: {
        ROLLCALL_BODY_LIMIT_BYTES: '100000',
        ROLLCALL_UPSTREAM_HEADERS_MS: '1000',
        ROLLCALL_UPSTREAM_BODY_MS: '2000',
        ROLLCALL_LIMIT_PREMIUM: '100000',
      },
    }),
  );
  token = await tokenOf(
    gateway,
    await createClient(namespace, { id: 'tests', scopes: ['orders:read', 'payments:read', 'registrations:read'] }),
  );
  shop = stack.use(await startBackend());
  await register('shop', `${shop.url}/base/`);
});

afterAll(() => stack.disposeAsync());

async function register(service_name: string, service_url: string): Promise<void> {
  const { status } = await registry.call('POST', '/services/register', { service_name, service_url });
  expect(status).toBe(200);
  await vi.waitFor(async () => expect((await call(`/api/v1/${service_name}/`)).status).not.toBe(404), {
    timeout: 30_000,
  });
}

interface CallOptions extends RequestInit {
  readonly headers?: Readonly<Record<string, string>>;
  /** What fetch asks for where the body is a stream. */
  readonly duplex?: 'half';
}

function call(path: string, init: CallOptions = {}): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { ...init, headers: { authorization: `Bearer ${token}`, ...init.headers } });
}

interface Echo {
  readonly method: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

async function* partsWithPause(pauseMs: number): AsyncGenerator<Buffer> {
  yield Buffer.from('{"a":');
  await sleep(pauseMs);
  yield Buffer.from('1}');
}

async function echoOf(answer: Response): Promise<Echo> {
  expect(answer.status).toBe(200);
  return (await answer.json()) as Echo;
}

async function codeOf(answer: Response): Promise<string> {
  const { error } = (await answer.json()) as { error: { code: string; message: string; details: object } };
  expect(error).toEqual({ code: expect.any(String), message: expect.any(String), details: expect.any(Object) });
  return error.code;
}

/**
 * Sends bytes as they are.
 *
 * @returns what comes back until the connection is closed or an answer's end is seen.
 */
function raw(text: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>();
  const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
  let received = '';
  socket.on('data', (chunk: Buffer) => {
    received += chunk.toString();
  });
  socket.on('close', () => resolve(received));
  socket.on('error', () => resolve(received));
  socket.write(text);
  return promise;
}

describe('a request to a registered service', () => {
  test('comes there below its URL, with query, body and headers', async () => {
    const answer = await call('/api/v1/shop/orders/7?x=1&y=%20', {
      method: 'POST',
      body: '{"count":2}',
      headers: { 'content-type': 'application/json', 'x-own': 'a' },
    });
    const { method, url, headers, body } = await echoOf(answer);
    expect({ method, url, body }).toEqual({
      method: 'POST',
      url: '/base/api/v1/orders/7?x=1&y=%20',
      body: '{"count":2}',
    });
    expect(headers).toMatchObject({
      'content-type': 'application/json',
      'content-length': '11',
      'x-own': 'a',
      host: new URL(shop.url).host,
      'x-forwarded-for': '127.0.0.1',
      'x-forwarded-proto': 'http',
      'x-forwarded-host': new URL(gateway.url).host,
      forwarded: expect.stringMatching(/^for=127\.0\.0\.1;host="127\.0\.0\.1:\d+";proto=http$/),
      'x-request-id': answer.headers.get('x-request-id'),
    });
    // One that is not recorded would keep services from recording theirs.
    expect(headers).not.toHaveProperty('traceparent');
  });

  test('says who calls by a token that is for this service alone, and not by the access token', async () => {
    const { headers } = await echoOf(await call('/api/v1/shop/orders'));
    expect(headers).not.toHaveProperty('authorization');
    expect(headers).toMatchObject({
      'x-rollcall-subject': 'tests',
      'x-rollcall-tier': 'premium',
      'x-rollcall-scopes': 'orders:read payments:read registrations:read',
    });
    const identity = headers['x-rollcall-identity'] ?? '';
    expect(decodeProtectedHeader(identity)).toMatchObject({ alg: 'ES256', typ: 'rollcall-identity+jwt' });
    const { exp = 0, iat = 0 } = decodeJwt(identity);
    expect(exp - iat).toBe(60);
    const keys = createGatewayKeys(new URL(`${gateway.url}/.well-known/jwks.json`), systemClock);
    const readerFor = (service: string) =>
      createIdentityReader({ service, issuer: 'rollcall', keys, clock: systemClock });
    expect(await readerFor('shop').read({ headers })).toMatchObject({
      subject: 'tests',
      tier: 'premium',
      scopes: new Set(['orders:read', 'payments:read', 'registrations:read']),
      expiresAtMs: exp * 1000,
    });
    expect(await readerFor('payment').read({ headers })).toBeUndefined();
    expect(await readerFor('shop').read({ headers: { 'x-rollcall-identity': token } })).toBeUndefined();
    // Nor is an identity an access token.
    expect((await call('/api/v1/shop/', { headers: { authorization: `Bearer ${identity}` } })).status).toBe(401);
  });

  test('cannot bring an identity of its own, nor have the gateway drop its', async () => {
    const answer = await call('/api/v1/shop/orders', {
      headers: {
        'x-rollcall-subject': 'admin',
        'X-Rollcall-Identity': 'forged',
        'x-rollcall-anything': 'else',
        'x-forwarded-for': '10.9.8.7',
        'x-forwarded-proto': 'https',
        forwarded: 'for=10.9.8.7',
      },
    });
    const { headers } = await echoOf(answer);
    expect(headers['x-rollcall-subject']).toBe('tests');
    expect(headers['x-rollcall-identity']).not.toBe('forged');
    expect(headers).not.toHaveProperty('x-rollcall-anything');
    expect(headers).toMatchObject({ 'x-forwarded-for': '127.0.0.1', 'x-forwarded-proto': 'http' });
  });

  test.each(['h2c', 'TLS/1.3', 'h2c, websocket'])(
    'is answered although it asks for an upgrade to %s',
    async (upgrade) => {
      const text = [
        'GET /api/v1/shop/orders HTTP/1.1',
        'Host: gateway.example',
        `Authorization: Bearer ${token}`,
        'Connection: Upgrade, HTTP2-Settings, close',
        `Upgrade: ${upgrade}`,
        'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA',
      ];
      const answer = await raw(`${text.join('\r\n')}\r\n\r\n`);
      expect(answer).toMatch(/^HTTP\/1\.1 200 /);
      for (const name of ['upgrade', 'http2-settings']) expect(answer).not.toContain(`"${name}"`);
    },
  );

  test('a plain one to the path of WebSockets is answered so', async () => {
    const answer = await call('/api/ws');
    expect([answer.status, answer.headers.get('upgrade'), await codeOf(answer)]).toEqual([
      426,
      'websocket',
      'UPGRADE_REQUIRED',
    ]);
  });

  test('headers for the gateway alone stay here, those that Connection names included', async () => {
    const text = [
      'GET /api/v1/shop/orders HTTP/1.1',
      'Host: gateway.example',
      `Authorization: Bearer ${token}`,
      'Connection: close, X-Rollcall-Subject, x-secret',
      'X-Secret: 1',
      'X-Rollcall-Subject: admin',
      'X-Rollcall-Subject: root',
      'TE: gzip;q=0.5, trailers',
      'Proxy-Authorization: Basic eA==',
      'Upgrade-Insecure-Requests: 1',
    ];
    const answer = await raw(`${text.join('\r\n')}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const { headers } = JSON.parse(answer.slice(answer.indexOf('{"method"'), answer.lastIndexOf('}') + 1)) as Echo;
    expect(headers['x-rollcall-subject']).toBe('tests');
    for (const name of ['x-secret', 'proxy-authorization']) expect(headers).not.toHaveProperty(name);
    expect(headers['te']).toBe('trailers');
    expect(headers['upgrade-insecure-requests']).toBe('1');
  });

  test('has its head before anything of its body comes', async () => {
    const news = Promise.withResolvers<void>();
    await using quiet = await startBackend((_request, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      void news.promise.then(() => response.end('data: 1\n\n'));
    });
    // Whose first call has an answer once the head is there.
    await register('quiet', quiet.url);
    const answer = await call('/api/v1/quiet/events');
    news.resolve();
    expect(await answer.text()).toBe('data: 1\n\n');
  });

  test('is streamed both ways', async () => {
    const first = Promise.withResolvers<void>();
    await using slow = await startBackend((request, response) => {
      response.writeHead(200, { 'x-odd': ['a', 'b'] });
      request.once('data', (chunk: Buffer) => {
        response.write(`<${chunk.toString()}`);
        request.on('data', (rest: Buffer) => response.write(rest));
        request.on('end', () => response.end('>'));
      });
    });
    await register('slow', slow.url);
    const asked = httpRequest(`${gateway.url}/api/v1/slow/talk`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}` },
    });
    let received = '';
    const ended = Promise.withResolvers<void>();
    asked.on('response', (response) => {
      expect(response.headers['x-odd']).toBe('a, b');
      response.on('data', (chunk: Buffer) => {
        received += chunk.toString();
        first.resolve();
      });
      response.on('end', ended.resolve);
    });
    asked.write('one');
    await first.promise;
    expect(received).toBe('<one');
    asked.end('two');
    await ended.promise;
    expect(received).toBe('<onetwo>');
  });
});

describe('a path', () => {
  test.each([
    ['/api/v1/shop/../payment/x', 'INVALID_PATH'],
    ['/api/v1/shop/%2e%2e/payment', 'INVALID_PATH'],
    ['/api/v1//shop/orders', 'INVALID_PATH'],
    ['/api/v1/shop%2Forders', 'INVALID_PATH'],
    ['/api/v1/shop/..%5c..', 'INVALID_PATH'],
    ['/api/v1/shop/%00', 'INVALID_PATH'],
    ['http://127.0.0.1/api/v1/shop/../orders', 'INVALID_PATH'],
    ['/nowhere', 'ROUTE_NOT_FOUND'],
    ['/api/v1/unheard-of/x', 'SERVICE_NOT_FOUND'],
  ])('%s: %s', async (target, code) => {
    const before = shop.requests.length;
    const answer = await raw(
      `GET ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toContain(`"code":"${code}"`);
    expect(answer).toMatch(code === 'INVALID_PATH' ? /^HTTP\/1\.1 400 / : /^HTTP\/1\.1 404 /);
    expect(shop.requests.length).toBe(before);
  });

  test('the routes that the contract names', async () => {
    await using payment = await startBackend();
    await using lms = await startBackend();
    await register('payment', payment.url);
    await register('lms', lms.url);
    expect((await echoOf(await call('/api/v1/payment/transactions?limit=1'))).url).toBe('/api/v1/payments?limit=1');
    expect((await echoOf(await call('/api/v1/lms/courses'))).url).toBe('/api/v1/courses');
    const services = await call('/api/v1/registry/services');
    expect(await services.json()).toMatchObject({ services: expect.any(Array) });
  });

  test('of the registry leads to the registry, whoever registers the name', async () => {
    await using thief = await startBackend();
    const stolen = { service_name: 'registry', service_url: thief.url };
    expect((await registry.call('POST', '/services/register', stolen)).status).toBe(200);
    // What is registered later is heard of later.
    await using later = await startBackend();
    await register('later', later.url);
    const answer = await call('/api/v1/registry/services/registry');
    expect(await answer.json()).toMatchObject(stolen);
    expect((await registry.call('DELETE', '/services/registry')).status).toBe(200);
  });
});

test('the registry answers under no other name that it is registered by, where no scope would be asked for', async () => {
  const alias = { service_name: 'alias', service_url: registry.url };
  expect((await registry.call('POST', '/services/register', alias)).status).toBe(200);
  // What is registered later is heard of later.
  await register('shelf', shop.url);
  const stolen = { service_name: 'shelf', service_url: 'http://thief.example' };
  const attempts = [
    ['POST', '/services/register', stolen],
    ['DELETE', '/services/shelf', undefined],
    ['POST', '/webhooks/config', { service_name: 'shelf', endpoints: {} }],
    ['GET', '/webhooks/config', undefined],
    ['GET', '/services', undefined],
  ] as const;
  for (const [method, path, body] of attempts) {
    const answer = await call(`/api/v1/alias${path}`, {
      method,
      ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    expect({ path, status: answer.status, body: await answer.json() }).toMatchObject({
      path,
      status: 403,
      body: { error: 'Forbidden' },
    });
  }
  const { body } = await registry.call('GET', '/services/shelf');
  expect(body).toMatchObject({ service_url: shop.url });
  expect((await call('/api/v1/registry/services')).status).toBe(200);
});

test.each([
  ['POST', 'json'],
  ['QUERY', 'json'],
  ['QUERY', undefined],
])('%s with a content type of %s is admitted or not like any other, and passed on as it is', async (method, type) => {
  const init = { method, headers: { ...(type !== undefined && { 'content-type': type }) }, body: Buffer.from('x') };
  expect((await fetch(`${gateway.url}/api/v1/shop/x`, init)).status).toBe(401);
  const echo = await echoOf(await call('/api/v1/shop/x', init));
  expect(echo).toMatchObject({ method, body: 'x' });
  expect(echo.headers['content-type']).toBe(type);
});

describe('a method that is not passed on', () => {
  test.each(['PROPFIND', 'LINK', 'M-SEARCH'])('%s is admitted or not like any other, then refused', async (method) => {
    const before = shop.requests.length;
    const stranger = await fetch(`${gateway.url}/api/v1/shop/x`, { method });
    expect([stranger.status, stranger.headers.get('www-authenticate')]).toEqual([401, 'Bearer realm="rollcall"']);
    expect(stranger.headers.has('ratelimit')).toBe(true);
    const refused = await call('/api/v1/shop/x', { method, body: 'x' });
    expect([refused.status, refused.headers.get('allow')]).toEqual([
      405,
      'DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT, QUERY, TRACE',
    ]);
    expect(refused.headers.has('ratelimit')).toBe(true);
    expect(await codeOf(refused)).toBe('METHOD_NOT_ALLOWED');
    expect(await codeOf(await call('/nowhere', { method }))).toBe('ROUTE_NOT_FOUND');
    expect(shop.requests.length).toBe(before);
  });
});

describe('what is no plain request', () => {
  test.each([
    [
      'both lengths',
      'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    ],
    ['two lengths', 'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde'],
    ['an odd encoding', 'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n'],
    ['a space before the colon', 'GET /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nContent-Length : 3\r\n\r\nabc'],
    ['a folded header', 'GET /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nX-A: b\r\n c\r\n\r\n'],
    ['a length and its copy', 'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nContent-Length: 4, 4\r\n\r\nabcd'],
    ['a signed length', 'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nContent-Length: +4\r\n\r\nabcd'],
    [
      'chunked, and something after it',
      'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n',
    ],
    [
      'chunked twice',
      'POST /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n',
    ],
    ['a bare line feed', 'GET /api/v1/shop/x HTTP/1.1\r\nHost: x\nX-A: b\r\n\r\n'],
    ['a carriage return in a value', 'GET /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nX-A: b\rX-B: c\r\n\r\n'],
    ['a NUL in a value', 'GET /api/v1/shop/x HTTP/1.1\r\nHost: x\r\nX-A: b\u0000c\r\n\r\n'],
    ['garbage', '\u0016\u0003\u0001\u0002\u0000hello\r\n\r\n'],
  ])('%s: refused, the connection closed, nothing passed on', async (_, text) => {
    const before = shop.requests.length;
    const answer = await raw(text.replace('Host: x', `Host: x\r\nAuthorization: Bearer ${token}`));
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(answer).toContain('"error":{"code":"INVALID_REQUEST"');
    expect(shop.requests.length).toBe(before);
  });

  test('an answer that has begun is cut off, and not continued with a refusal', async () => {
    await using eager = await startBackend((request, response) => {
      response.writeHead(200, { 'content-length': '1000' });
      response.write('begun');
      request.resume();
    });
    await register('eager', eager.url);
    const socket = connect({ port: Number(new URL(gateway.url).port), host: '127.0.0.1' });
    let received = '';
    const closed = new Promise<void>((resolve) => {
      socket.on('close', () => resolve());
    });
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      received += chunk.toString();
      if (received.endsWith('begun')) socket.write('no-length-of-a-chunk\r\n');
    });
    const head = ['POST /api/v1/eager/talk HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`];
    socket.write(`${head.join('\r\n')}\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n`);
    await closed;
    expect(received).toMatch(/begun$/);
  });

  test('an identity in trailers, or spelled as CGI does, does not get to the service', async () => {
    const head = ['POST /api/v1/shop/x HTTP/1.1', 'Host: x', `Authorization: Bearer ${token}`, 'Connection: close'];
    const more = ['X_Rollcall_Subject: admin', 'Trailer: X-Rollcall-Tier', 'Transfer-Encoding: chunked'];
    const body = '1\r\na\r\n0\r\nX-Rollcall-Tier: free\r\nX-Own: 1\r\n\r\n';
    const answer = await raw(`${[...head, ...more].join('\r\n')}\r\n\r\n${body}`);
    expect(answer).toMatch(/^HTTP\/1\.1 200 /);
    const request = shop.requests.at(-1);
    expect(request?.headers).toMatchObject({ 'x-rollcall-subject': 'tests', 'x-rollcall-tier': 'premium' });
    expect(request?.headers).not.toHaveProperty('x_rollcall_subject');
    expect(request?.trailers).toEqual({});
  });

  test.each([
    ['two tokens', (good: string) => `Authorization: Bearer x\r\nAuthorization: Bearer ${good}`, 401],
    [
      'two tokens, the good one first',
      (good: string) => `Authorization: Bearer ${good}\r\nAuthorization: Bearer x`,
      401,
    ],
  ])('%s: nothing is passed on', async (_, headers, status) => {
    const before = shop.requests.length;
    const answer = await raw(
      `GET /api/v1/shop/x HTTP/1.1\r\nHost: x\r\n${headers(token)}\r\n\r\nGET /api/v1/shop/smuggled HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`,
    );
    expect(answer).toContain(`HTTP/1.1 ${status}`);
    expect(answer).not.toContain('HTTP/1.1 200');
    expect(shop.requests.length).toBe(before);
  });
});

describe('a service that fails', () => {
  test('is distinguished: not there, not HTTP, silent, half an answer', async () => {
    await using broken = await startBackend((request, response) => {
      const { socket } = request;
      if (request.url?.endsWith('/garbage') === true) socket.end('SSH-2.0-OpenSSH_9.6\r\n');
      else if (request.url?.endsWith('/reset') === true) socket.resetAndDestroy();
      else if (request.url?.endsWith('/half') === true) {
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf');
      } else if (request.url?.endsWith('/hang') !== true) response.end();
    });
    await register('broken', broken.url);
    const fails = async (path: string, status: number, code: string) => {
      const answer = await call(`/api/v1/broken/${path}`, { method: 'POST' });
      expect({ status: answer.status, code: await codeOf(answer) }).toEqual({ status, code });
      // Or the breaker would open.
      expect((await call('/api/v1/broken/fine')).status).toBe(200);
    };
    await fails('garbage', 502, 'UPSTREAM_INVALID');
    await fails('reset', 502, 'UPSTREAM_UNREACHABLE');
    await fails('hang', 504, 'UPSTREAM_TIMEOUT');
    const half = await call('/api/v1/broken/half');
    await expect(half.text()).rejects.toThrow(/terminated|closed/);
  });

  test('is waited for while it answers in pieces, and no longer than its time for one', async () => {
    let ended: Promise<unknown> | undefined;
    await using halting = await startBackend((request, response) => {
      if (request.url?.endsWith('/pieces') !== true) {
        response.end();
        return;
      }
      ended = new Promise((resolve) => response.once('close', resolve));
      const send = (left: number): void => {
        response.write('piece');
        if (left > 0) setTimeout(send, 700, left - 1);
      };
      send(4);
    });
    await register('halting', halting.url);
    const startedAt = performance.now();
    const pieces = await call('/api/v1/halting/pieces');
    const reader = (pieces.body as ReadableStream<Uint8Array>).getReader();
    let text = '';
    const readOn = async (): Promise<void> => {
      for (;;) text += Buffer.from((await reader.read()).value ?? []).toString();
    };
    await expect(readOn()).rejects.toThrow(/terminated|closed/);
    expect(text).toBe('piece'.repeat(5));
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(4 * 700 + 2000);
    await ended;
  });

  test('is not blamed for a caller that takes its time to send', async () => {
    const body = ReadableStream.from(partsWithPause(2500));
    const headers = { 'content-type': 'application/json' };
    const answer = await call('/api/v1/shop/slowly', { method: 'POST', body, headers, duplex: 'half' });
    expect((await echoOf(answer)).body).toBe('{"a":1}');
  });

  test('has its time to answer after all of an upload is there, and no more', async () => {
    await using pensive = await startBackend((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => {
        body += chunk.toString();
      });
      request.on('end', () => {
        if (request.url?.endsWith('/never') !== true) setTimeout(() => response.end(body), 700);
      });
    });
    await register('pensive', pensive.url);
    const headers = { 'content-type': 'application/json' };
    const whole = { method: 'POST', headers, body: '{"a":1}' };
    const inParts = () => ({ ...whole, body: ReadableStream.from(partsWithPause(10)), duplex: 'half' as const });
    for (const request of [whole, inParts()]) {
      const answer = await call('/api/v1/pensive/think', request);
      expect({ status: answer.status, body: await answer.text() }).toEqual({ status: 200, body: '{"a":1}' });
    }
    for (const request of [whole, inParts()]) {
      expect((await call('/api/v1/pensive/never', request)).status).toBe(504);
    }
  });

  test('gets what is repeatable once more, and nothing else', async () => {
    let failures = 0;
    await using flaky = await startBackend((request, response) => {
      if (request.url?.endsWith('/x') === true && failures > 0) {
        failures -= 1;
        request.socket.resetAndDestroy();
      } else response.end('fine');
    });
    await register('flaky', flaky.url);
    failures = 2;
    expect(await (await call('/api/v1/flaky/x')).text()).toBe('fine');
    failures = 1;
    expect((await call('/api/v1/flaky/x', { method: 'POST' })).status).toBe(502);
    failures = 1;
    expect((await call('/api/v1/flaky/x', { method: 'PUT', body: 'b' })).status).toBe(502);
    expect((await call('/api/v1/flaky/x')).status).toBe(200);
  });

  test('is let alone for a while after failures in a row, and asked again', async () => {
    let isDown = false;
    await using weak = await startBackend((request, response) => {
      if (isDown) request.socket.resetAndDestroy();
      else response.end('up');
    });
    await register('weak', weak.url);
    isDown = true;
    for (let count = 0; count < 5; count += 1) {
      expect((await call('/api/v1/weak/x', { method: 'POST' })).status).toBe(502);
    }
    const before = weak.requests.length;
    const refused = await call('/api/v1/weak/x');
    expect(refused.status).toBe(503);
    expect(refused.headers.get('retry-after')).toBe('1');
    expect(await codeOf(refused)).toBe('UPSTREAM_UNAVAILABLE');
    expect(weak.requests.length).toBe(before);
    isDown = false;
    await vi.waitFor(async () => expect((await call('/api/v1/weak/x')).status).toBe(200), { timeout: 10_000 });
  });

  test('is let alone after five requests, and not after two that were sent again and again', async () => {
    let isDown = false;
    await using weak = await startBackend((request, response) => {
      if (isDown) request.socket.resetAndDestroy();
      else response.end('up');
    });
    await register('dropping', weak.url);
    isDown = true;
    const statuses = [];
    for (let count = 0; count < 6; count += 1) statuses.push((await call('/api/v1/dropping/x')).status);
    expect(statuses).toEqual([502, 502, 502, 502, 502, 503]);
    expect(weak.requests.length).toBeGreaterThan(5);
  });

  test('a caller that disconnects ends the request', async () => {
    const gone = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    await using patient = await startBackend((request, response) => {
      if (request.url?.endsWith('/x') !== true) {
        response.end();
        return;
      }
      response.on('close', gone.resolve);
      arrived.resolve();
    });
    await register('patient', patient.url);
    const aborting = new AbortController();
    const asked = call('/api/v1/patient/x', { signal: aborting.signal });
    await arrived.promise;
    aborting.abort();
    await expect(asked).rejects.toThrow('aborted');
    await gone.promise;
    expect((await call('/api/v1/patient/')).status).toBe(200);
  });
});

test('rate, errors and duration are counted by service, and what was sent again or left out', async () => {
  let isDown = false;
  await using measured = await startBackend((request, response) => {
    if (isDown) request.socket.resetAndDestroy();
    else response.writeHead(request.url?.endsWith('/missing') === true ? 404 : 200).end();
  });
  await register('measured', measured.url);
  for (const path of ['a', 'b', 'missing']) await call(`/api/v1/measured/${path}`);
  isDown = true;
  expect((await call('/api/v1/measured/x')).status).toBe(502);
  // With the GET, as many failures as a breaker opens at.
  for (let count = 0; count < 4; count += 1) await call('/api/v1/measured/x', { method: 'POST' });
  const metrics = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  const sample = (name: string, ...labels: string[]) => {
    const isWanted = (line: string) => line.startsWith(name) && labels.every((label) => line.includes(label));
    const line = metrics.split('\n').find(isWanted);
    return line === undefined ? undefined : Number(line.split(' ').at(-1));
  };
  const service = 'service="measured"';
  const requests = (method: string, result: string) =>
    sample('rollcall_gateway_upstream_duration_seconds_count', service, `method="${method}"`, `result="${result}"`);
  // The first asked whether the service is known.
  expect(requests('GET', '2xx')).toBe(3);
  expect(requests('GET', '4xx')).toBe(1);
  expect(requests('GET', 'upstream_unreachable')).toBe(1);
  expect(requests('POST', 'upstream_unreachable')).toBe(4);
  expect(sample('rollcall_gateway_upstream_retries_total', service)).toBe(2);
});

test('a service that moves or goes is followed at once', async () => {
  await using here = await startBackend((_, response) => void response.end('here'));
  await using there = await startBackend((_, response) => void response.end('there'));
  await register('nomad', here.url);
  expect(await (await call('/api/v1/nomad/x')).text()).toBe('here');
  await register('nomad', there.url);
  await vi.waitFor(async () => expect(await (await call('/api/v1/nomad/x')).text()).toBe('there'), { timeout: 30_000 });
  expect((await registry.call('DELETE', '/services/nomad')).status).toBe(200);
  await vi.waitFor(async () => expect((await call('/api/v1/nomad/x')).status).toBe(404), { timeout: 30_000 });
});
