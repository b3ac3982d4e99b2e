import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket, WebSocketServer } from 'ws';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';
import { refusalOf } from './websocket-client.ts';

const WAIT = { timeout: 60_000 };
const stack = new AsyncDisposableStack();
let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let token: string;
let chat: WebSocketServer;
let asked: IncomingMessage[];

beforeAll(async () => {
  namespace = await createNamespace('gateway-service-websockets');
  const { url: databaseUrl } = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'anna' }));
  await startChat();
}, 120_000);

afterAll(() => stack.disposeAsync());

/** Answers what it is sent, at `/api/v1/room` and `/api/graphql`. Other paths are 410. It is `federation`, too. */
async function startChat(): Promise<void> {
  const server = createServer((_request, response) => response.writeHead(410).end('gone'));
  asked = [];
  chat = new WebSocketServer({
    noServer: true,
    handleProtocols: (offered) => [...offered].find((each) => each !== 'other') ?? false,
  });
  server.on('upgrade', (request, socket, head) => {
    if (!['/api/v1/room', '/api/graphql'].some((path) => request.url?.startsWith(path))) {
      socket.end('HTTP/1.1 410 Gone\r\ncontent-type: text/plain\r\ncontent-length: 4\r\n\r\ngone');
      return;
    }
    asked.push(request);
    chat.handleUpgrade(request, socket, head, (webSocket) => {
      chat.emit('connection', webSocket);
      webSocket.on('message', (data: Buffer, isBinary: boolean) => {
        if (data.toString() === 'end') webSocket.close(4321, 'as you wish');
        else webSocket.send(data, { binary: isBinary });
      });
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  stack.defer(async () => {
    for (const client of chat.clients) client.terminate();
    server.closeAllConnections();
    await new Promise((resolve) => {
      server.close(resolve);
    });
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const service_name of ['chat', 'federation'])
    await registry.call('POST', '/services/register', { service_name, service_url: url, capabilities: ['rest'] });
  await vi.waitFor(async () => expect((await refusal('/api/v1/chat/other'))?.status).toBe(410), WAIT);
}

const urlOf = (path: string, at = gateway) => `${at.url.replace('http', 'ws')}${path}`;
const bearer = (shown = token) => ({ authorization: `Bearer ${shown}` });
const refusal = (path: string, headers: Record<string, string> = bearer()) => textRefusal(urlOf(path), headers);

/** The status of a refused upgrade, whatever its body is. */
async function textRefusal(url: string, headers: Record<string, string>) {
  const socket = new WebSocket(url, { headers });
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number } | undefined>();
  socket.on('error', reject);
  socket.on('open', () => {
    socket.terminate();
    resolve(undefined);
  });
  socket.on('unexpected-response', (_request, response) => {
    response.resume();
    resolve({ status: response.statusCode ?? 0 });
  });
  return promise;
}

async function join(path = '/api/v1/chat/room?a=1', protocols: string[] = [], headers = bearer()) {
  const socket = new WebSocket(urlOf(path), protocols, { headers });
  socket.on('error', () => undefined);
  await once(socket, 'open');
  return socket;
}

const closeOf = async (socket: WebSocket) => {
  const [code, reason] = await once(socket, 'close');
  return [code, String(reason)];
};

const init = (payload: object) => JSON.stringify({ type: 'connection_init', payload });

test('operations of GraphQL count as requests', async () => {
  const free = await tokenOf(gateway, await createClient(namespace, { id: 'free', tier: 'Free' }));
  const socket = await join('/api/graphql', ['graphql-transport-ws'], bearer(free));
  const answers: { readonly id?: string; readonly type: string; readonly payload?: unknown }[] = [];
  socket.on('message', (data: Buffer) => answers.push(JSON.parse(data.toString())));
  const ids = Array.from({ length: 30 }, (_, index) => String(index));
  for (const id of ids) socket.send(JSON.stringify({ type: 'subscribe', id, payload: { query: '{ a }' } }));
  socket.send('{"type":"ping"}');
  await vi.waitFor(() => expect(answers).toHaveLength(31), WAIT);
  const refused = answers.filter(({ type }) => type === 'error');
  // The minute may be over meanwhile.
  expect(refused.length).toBeGreaterThanOrEqual(10);
  expect(refused.length).toBeLessThan(30);
  expect(refused[0]).toMatchObject({ payload: [{ extensions: { code: 'RATE_LIMITED', details: { limit: 10 } } }] });
  expect(answers).toContainEqual({ type: 'ping' });
  socket.terminate();
});

describe('a WebSocket of a service', () => {
  test('passes texts and bytes both ways, and how either side ends it', async () => {
    const socket = await join('/api/v1/chat/room?a=1', ['other', 'chat.v2']);
    expect(socket.protocol).toBe('chat.v2');
    for (const [sent, isBinary] of [
      ['ü', false],
      [Buffer.from([0, 255]), true],
      ['x'.repeat(500_000), false],
    ] as const) {
      socket.send(sent);
      const [data, binary] = await once(socket, 'message');
      expect([Buffer.from(sent).equals(data), binary]).toEqual([true, isBinary]);
    }
    const closed = closeOf(socket);
    socket.send('end');
    expect(await closed).toEqual([4321, 'as you wish']);
    const other = await join();
    const [atService] = [...chat.clients].slice(-1);
    other.close(4444, 'bye');
    expect(atService && (await closeOf(atService))).toEqual([4444, 'bye']);
  });

  test('gets who calls, and neither token nor what only the gateway says', async () => {
    const socket = await join('/api/v1/chat/room?a=1', ['chat.v2', `bearer.${token}`], {
      ...bearer(),
      'x-rollcall-subject': 'somebody',
    } as ReturnType<typeof bearer>);
    socket.terminate();
    const { url, headers } = asked.at(-1) ?? { headers: {} };
    expect(url).toBe('/api/v1/room?a=1');
    expect(headers).toMatchObject({ 'x-rollcall-subject': 'anna', 'x-rollcall-identity': expect.any(String) });
    expect(headers['sec-websocket-protocol']).toBe('chat.v2');
    expect(headers).not.toHaveProperty('authorization');
  });

  test('is refused as a request of its path is', async () => {
    for (const headers of [{}, bearer('wrong')])
      expect(await refusalOf(urlOf('/api/v1/chat/room'), { headers })).toMatchObject({ status: 401 });
    expect(await refusalOf(urlOf('/api/v1/nobody/room'), { headers: bearer() })).toMatchObject({
      status: 404,
      code: 'SERVICE_NOT_FOUND',
    });
    expect(await refusalOf(urlOf('/nowhere'), { headers: bearer() })).toMatchObject({ code: 'ROUTE_NOT_FOUND' });
    expect(await refusalOf(urlOf('/api/v1//chat'), { headers: bearer() })).toMatchObject({ code: 'INVALID_PATH' });
    expect(await refusal('/api/v1/chat/other')).toEqual({ status: 410 });
  });

  test('ends for a message that is too large with 1009, and where the service breaks off with 1014', async () => {
    const large = await join();
    const closed = closeOf(large);
    large.send('x'.repeat(2_000_000));
    expect((await closed)[0]).toBe(1009);
    const broken = await join();
    const end = closeOf(broken);
    broken.send('a');
    await once(broken, 'message');
    for (const client of chat.clients) client.terminate();
    expect((await end)[0]).toBe(1014);
  });

  test('holds a service up whose client does not read', async () => {
    const socket = await join();
    socket.pause();
    const [service] = [...chat.clients].slice(-1);
    const piece = Buffer.alloc(1024 * 1024);
    for (let count = 0; count < 64; count += 1) service?.send(piece);
    let before = -1;
    // It comes to rest with most of it still at the service.
    await vi.waitFor(
      () => {
        const waiting = service?.bufferedAmount ?? 0;
        const isAtRest = waiting === before;
        before = waiting;
        expect(isAtRest && waiting > 32 * 1024 * 1024).toBe(true);
      },
      { ...WAIT, interval: 500 },
    );
    let read = 0;
    socket.on('message', (data: Buffer) => {
      read += data.length;
    });
    socket.resume();
    await vi.waitFor(() => expect(read).toBe(64 * 1024 * 1024), WAIT);
    socket.close();
  });

  test('ends once the token is revoked', async () => {
    const shown = await tokenOf(gateway, await createClient(namespace, { id: 'revoked' }));
    const socket = await join('/api/v1/chat/room', [], bearer(shown));
    const closed = closeOf(socket);
    await namespace.kubectl(['delete', 'apiclient', 'revoked']);
    expect((await closed)[0]).toBe(4403);
  });
});

describe('a client of GraphQL', () => {
  const PROTOCOL = 'graphql-transport-ws';
  const connect = async () => {
    const socket = new WebSocket(urlOf('/api/graphql'), PROTOCOL);
    await once(socket, 'open');
    return socket;
  };

  test('may show its token in its first message, which the service does not get', async () => {
    const socket = await connect();
    socket.send(init({ Authorization: `Bearer ${token}`, other: 1 }));
    const [echo] = await once(socket, 'message');
    expect(JSON.parse(String(echo))).toEqual({ type: 'connection_init', payload: { other: 1 } });
    socket.send('more');
    expect(String((await once(socket, 'message'))[0])).toBe('more');
    expect(asked.at(-1)?.headers).toMatchObject({ 'x-rollcall-subject': 'anna' });
    socket.close();
  });

  test.each([
    ['no token', init({}), 4403],
    ['a token that does not hold', init({ authorization: 'Bearer wrong' }), 4403],
    ['another message', '{"type":"ping"}', 4403],
    ['what is no JSON', '{', 4403],
  ])('that shows %s is closed, and no service is asked', async (_, message, code) => {
    const before = asked.length;
    const socket = await connect();
    const closed = closeOf(socket);
    socket.send(message);
    expect((await closed)[0]).toBe(code);
    expect(asked.length).toBe(before);
  });

  test('that goes on before it is answered is closed with 4401', async () => {
    const socket = await connect();
    const closed = closeOf(socket);
    socket.send(init({ authorization: `Bearer ${token}` }));
    socket.send('early');
    expect((await closed)[0]).toBe(4401);
  });

  test('is known to federation as long as its token holds, and to others for a minute', async () => {
    for (const [path, least, most] of [
      ['/api/graphql', 600, 86_400],
      ['/api/v1/chat/room', 0, 60],
    ] as const) {
      const socket = await join(path, [PROTOCOL]);
      socket.terminate();
      const { exp = 0, iat = 0 } = decodeJwt(String(asked.at(-1)?.headers['x-rollcall-identity']));
      expect(exp - iat).toBeGreaterThan(least);
      expect(exp - iat).toBeLessThanOrEqual(most);
    }
  });
});
