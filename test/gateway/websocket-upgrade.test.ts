import { connect as connectTcp } from 'node:net';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { clientOf, connect, refusalOf } from './websocket-client.ts';
import { startWebSocketGateway, type WebSocketGateway } from './websocket-gateway.ts';

let gateway: WebSocketGateway;

beforeAll(async () => {
  gateway = await startWebSocketGateway({ limits: { connections: 6, connectionsPerSubject: 2 } });
  gateway.admit('good.token', { subject: 'shop' });
});

afterAll(() => gateway[Symbol.asyncDispose]());

const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } });

/** Sends text as it is. @returns everything that is answered until the connection ends. */
async function sendRaw(text: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let answer = '';
  const socket = connectTcp(gateway.port, '127.0.0.1', () => socket.write(text));
  socket.on('data', (chunk) => {
    answer += String(chunk);
  });
  socket.on('end', () => resolve(answer));
  socket.on('error', reject);
  return promise;
}

describe('who gets in', () => {
  test('a token in the header', async () => {
    await using client = await connect(gateway.url, 'good.token');
    expect(client.socket.protocol).toBe('');
  });

  test('a token as a subprotocol, which is never the one that is selected', async () => {
    for (const protocols of [
      ['rollcall.v1', 'bearer.good.token'],
      ['bearer.good.token', 'rollcall.v1'],
    ]) {
      await using client = clientOf(new WebSocket(gateway.url, protocols));
      expect(await client.next()).toMatchObject({ type: 'welcome', payload: { subject: 'shop' } });
      expect(client.socket.protocol).toBe('rollcall.v1');
    }
  });

  test('whatever the origin, for it proves nothing, and whatever the query', async () => {
    const headers = { ...bearer('good.token').headers, origin: 'https://evil.example' };
    expect(await refusalOf(`${gateway.url}?x=1`, { headers })).toBeUndefined();
  });
});

describe('who does not', () => {
  test.each([
    ['no token', {}, 'UNAUTHENTICATED'],
    ['an unknown token', bearer('bad.token'), 'INVALID_TOKEN'],
    ['an unknown token as subprotocol', { protocols: ['rollcall.v1', 'bearer.bad.token'] }, 'INVALID_TOKEN'],
    ['a token in the query', { query: '?access_token=good.token' }, 'UNAUTHENTICATED'],
  ])(
    '%s',
    async (_what, {
      query = '',
      ...options
    }: { query?: string; headers?: Record<string, string>; protocols?: string[] }, code) => {
      const refusal = await refusalOf(`${gateway.url}${query}`, options);
      expect(refusal).toMatchObject({
        status: 401,
        code,
        headers: { 'www-authenticate': expect.stringMatching(/^Bearer/) },
      });
    },
  );

  test('a subprotocol that is not ours', async () => {
    const refusal = await refusalOf(gateway.url, { ...bearer('good.token'), protocols: ['graphql-ws'] });
    expect(refusal).toMatchObject({ status: 400, code: 'INVALID_REQUEST' });
  });

  test.each(['/api/wss', '/api/ws/', '/api//ws', '/', '/api/v1/shop'])('another path: %s', async (path) => {
    const refusal = await refusalOf(`ws://127.0.0.1:${gateway.port}${path}`, bearer('good.token'));
    expect(refusal).toMatchObject({ status: 404, code: 'ROUTE_NOT_FOUND' });
  });

  test.each([
    ['no key', 'GET', 'Sec-WebSocket-Version: 13'],
    ['a version that nobody speaks', 'GET', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 7'],
    ['another method', 'POST', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13'],
    [
      'the same subprotocol twice',
      'GET',
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: rollcall.v1, rollcall.v1',
    ],
  ])('%s', async (_what, method, fields) => {
    const head = `${method} /api/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n`;
    const answer = await sendRaw(`${head}Authorization: Bearer good.token\r\n${fields}\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\n/);
    expect(answer).toMatch(/sec-websocket-version: 13\r\n/);
    expect(JSON.parse(answer.split('\r\n\r\n')[1] ?? '')).toMatchObject({ error: { code: 'INVALID_REQUEST' } });
  });

  test('too many: of a subject 429, of the process 503, until others leave', async () => {
    for (const subject of ['a', 'b', 'c', 'd']) gateway.admit(subject);
    await using stack = new AsyncDisposableStack();
    const first = stack.use(await connect(gateway.url, 'a'));
    stack.use(await connect(gateway.url, 'a'));
    expect(await refusalOf(gateway.url, bearer('a'))).toMatchObject({
      status: 429,
      code: 'RATE_LIMITED',
      headers: { 'retry-after': '5' },
    });
    for (const subject of ['b', 'b', 'c', 'c']) stack.use(await connect(gateway.url, subject));
    expect(await refusalOf(gateway.url, bearer('d'))).toMatchObject({ status: 503, code: 'TOO_MANY_CONNECTIONS' });
    await first[Symbol.asyncDispose]();
    await expect.poll(() => gateway.metric('rollcall_gateway_websocket_connections')).toBe(5);
    expect(await refusalOf(gateway.url, bearer('a'))).toBeUndefined();
  });

  test('who cannot be served after the 101 is closed with 1011, and keeps no slot', async () => {
    gateway.admit('endless', { expiresAtMs: Number.POSITIVE_INFINITY });
    const fields = 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n';
    const head = `GET /api/ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n${fields}`;
    expect(await sendRaw(`${head}Authorization: Bearer endless\r\n\r\n`)).not.toContain('HTTP/1.1 500');
    for (let count = 0; count < 3; count += 1) {
      const { closed } = clientOf(new WebSocket(gateway.url, bearer('endless')));
      expect(await closed).toEqual({ code: 1011, reason: 'an error of the gateway' });
    }
    await expect.poll(() => gateway.metric('rollcall_gateway_websocket_connections')).toBe(0);
    expect(gateway.requests().at(-1)).toMatchObject({ result: 1011, subject: 'endless', events: 0 });
  });

  test('no token is ever logged, though each request is', async () => {
    const asked = gateway.requests().length;
    await refusalOf(gateway.url, bearer('good.token'));
    await refusalOf(`${gateway.url}?access_token=good.token`, { protocols: ['rollcall.v1', 'bearer.bad.token'] });
    const lines = gateway.requests().slice(asked);
    expect(lines).toContainEqual(expect.objectContaining({ path: '/api/ws', subject: 'shop', result: 101 }));
    expect(lines).toContainEqual(expect.objectContaining({ path: '/api/ws', result: 401, code: 'INVALID_TOKEN' }));
    expect(gateway.logs()).toContain('WebSocket opened');
    expect(gateway.logs()).not.toMatch(/(good|bad)\.token/);
  });
});

test('a client that vanishes while its token is checked costs nothing', async () => {
  await using slow = await startWebSocketGateway({ limits: { connections: 1 }, authenticationMs: 500 });
  slow.admit('good.token');
  const socket = connectTcp(slow.port, '127.0.0.1');
  const fields = 'Host: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n';
  socket.write(
    `GET /api/ws HTTP/1.1\r\n${fields}Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer good.token\r\n\r\n`,
  );
  // It is being checked, and has the only slot.
  await vi.waitFor(
    async () => expect(await refusalOf(slow.url, bearer('good.token'))).toMatchObject({ code: 'TOO_MANY_CONNECTIONS' }),
    { timeout: 30_000 },
  );
  socket.resetAndDestroy();
  await using client = await vi.waitFor(() => connect(slow.url, 'good.token'), { timeout: 10_000 });
  expect(client.socket.readyState).toBe(WebSocket.OPEN);
  expect(await slow.metric('rollcall_gateway_websocket_connections')).toBe(1);
  expect(await slow.metric('rollcall_gateway_websocket_opened_total')).toBe(1);
});

describe('what is reported of a connection', () => {
  const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';

  test('a line of its beginning and one of its end, of the same request and trace', async () => {
    const asked = gateway.requests().length;
    const traceparent = `00-${TRACE}-00f067aa0ba902b7-01`;
    const headers = { ...bearer('good.token').headers, traceparent, 'x-request-id': 'one' };
    await using client = clientOf(new WebSocket(`${gateway.url}?secret=1`, { headers }));
    await client.next();
    client.socket.close(4000);
    await client.closed;
    await expect.poll(() => gateway.requests().length).toBe(asked + 2);
    const common = { reqId: 'one', trace_id: TRACE, method: 'GET', path: '/api/ws', subject: 'shop' };
    expect(gateway.requests().slice(asked)).toMatchObject([
      { ...common, result: 101 },
      { ...common, result: 4000, events: 0, ms: expect.any(Number) },
    ]);
  });

  test('how many there were, and for how long', async () => {
    await using counted = await startWebSocketGateway();
    counted.admit('t');
    const opened = () => counted.metric('rollcall_gateway_websocket_opened_total');
    expect(await opened()).toBe(0);
    await refusalOf(counted.url, bearer('t'));
    await refusalOf(counted.url, bearer('other'));
    expect(await opened()).toBe(1);
    await expect.poll(() => counted.durations()).toMatchObject({ count: 1 });
    expect((await counted.durations()).seconds).toBeLessThan(5);
  });
});
