import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { type IncomingMessage, type OutgoingHttpHeaders, request, type ServerResponse } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { text } from 'node:stream/consumers';
import { freePorts } from '@rollcall/local/ports.ts';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createGrpcClient } from '../registry/grpc-client.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import {
  type Backend,
  createClient,
  type GatewayOptions,
  requestToken,
  startBackend,
  startGateway,
  startGatewayProcess,
  type TestClient,
  tokenOf,
} from './gateway.ts';
import { clientOf, connect } from './websocket-client.ts';

const BAD_TOKENS = ['', 'x', 'eyJhbGciOiJub25lIn0.e30.'];
/** Far less than a token holds. */
const SOON_MS = 10_000;
/** How many requests a minute an address has that shows no token, and a client of tier free. */
const ANONYMOUS = 7;
const FREE = 5;

let namespace: TestNamespace;
let registry: RunningService;
let registryGrpc: number;
let shop: Backend;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('gateway-doors');
  const database = stack.use(await createDatabase());
  [registryGrpc = 0] = await freePorts(1);
  registry = stack.use(
    await startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: { ROLLCALL_GRPC_PORT: String(registryGrpc) },
    }),
  );
  shop = stack.use(await startBackend(answerShop));
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: shop.url });
});

afterAll(() => stack.disposeAsync());

/** Events, or the beginning of a download, without end; or nothing at all. */
function answerShop({ url = '' }: IncomingMessage, response: ServerResponse): void {
  if (url.endsWith('/never')) return;
  if (url.endsWith('/events')) response.writeHead(200, { 'content-type': 'text/event-stream' });
  const timer = setInterval(() => response.write('data: x\n\n'), 20);
  response.once('close', () => clearInterval(timer));
  if (url.includes('/short')) response.end('done');
}

type WithGrpc<T> = T & { readonly grpcPort: number };
type TestGateway = WithGrpc<RunningService>;

const start = (settings?: Record<string, string>) => startBy(startGateway, settings);

async function startBy<T extends RunningService>(
  run: (options: GatewayOptions) => Promise<T>,
  settings: Record<string, string> = {},
): Promise<WithGrpc<T>> {
  const [grpcPort = 0] = await freePorts(1);
  const replica = await run({
    namespace,
    registry: registry.url,
    settings: {
      ROLLCALL_GRPC_PORT: String(grpcPort),
      ROLLCALL_REGISTRY_GRPC_URL: `http://127.0.0.1:${registryGrpc}`,
      ...settings,
    },
  });
  return Object.assign(replica, { grpcPort });
}

function get(gateway: RunningService, path: string, token?: string): Promise<Response> {
  return fetch(`${gateway.url}${path}`, token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } });
}

/** The status that an upgrade is answered with, and its headers. */
async function upgrade(gateway: RunningService, token?: string): Promise<IncomingMessage> {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/ws`, { headers });
  socket.on('error', () => undefined);
  const answered = await Promise.race([once(socket, 'upgrade'), once(socket, 'unexpected-response')]);
  socket.terminate();
  return answered.at(-1) as IncomingMessage;
}

/**
 * What each door answers to a token, as a status of HTTP; to one that is good as {@link welcomeAt}
 * says.
 */
const doors: Readonly<Record<string, (gateway: TestGateway, token?: string) => Promise<number | undefined>>> = {
  'a service': async (gateway, token) => (await get(gateway, '/api/v1/shop/short', token)).status,
  'the metrics': async (gateway, token) => (await get(gateway, '/api/metrics', token)).status,
  'the AsyncAPI document': async (gateway, token) => (await get(gateway, '/api/ws/asyncapi.json', token)).status,
  'the WebSocket': async (gateway, token) => (await upgrade(gateway, token)).statusCode,
  async gRPC(gateway, token) {
    using client = createGrpcClient(gateway.grpcPort, token);
    const { code } = await client.call('List', {});
    return new Map([
      [0, 200],
      [8, 429],
      [16, 401],
    ]).get(code);
  },
};

const welcomeAt = (door: string): number => (door === 'the WebSocket' ? 101 : 200);

describe('every door', () => {
  let client: TestClient;
  beforeAll(async () => {
    client = await createClient(namespace, { id: 'free', tier: 'Free', scopes: ['*'] });
  });

  test.each(Object.keys(doors))('%s: guessing counts against the limit of the address', async (name) => {
    await using gateway = await start({ ROLLCALL_LIMIT_ANONYMOUS: String(ANONYMOUS) });
    const knock = doors[name];
    const answers: unknown[] = [];
    for (let index = 0; index <= ANONYMOUS; index += 1) answers.push(await knock?.(gateway, BAD_TOKENS[index % 3]));
    expect(answers).toEqual([...Array.from({ length: ANONYMOUS }, () => 401), 429]);
    expect(await knock?.(gateway)).toBe(429);
    // Who has a token is not locked out by others at its address.
    expect(await knock?.(gateway, await tokenOf(gateway, client))).toBe(welcomeAt(name));
  });

  test.each(Object.keys(doors))('%s: a request with a token counts against the limit of its client', async (name) => {
    await using gateway = await start({ ROLLCALL_LIMIT_FREE: String(FREE) });
    const knock = doors[name];
    const token = await tokenOf(gateway, client);
    const answers: unknown[] = [];
    for (let index = 0; index <= FREE; index += 1) answers.push(await knock?.(gateway, token));
    expect(answers).toEqual([...Array.from({ length: FREE }, () => welcomeAt(name)), 429]);
  });

  test('the WebSocket reports the limit, and when to come back', async () => {
    await using gateway = await start({ ROLLCALL_LIMIT_FREE: '1' });
    const token = await tokenOf(gateway, client);
    expect((await upgrade(gateway, token)).headers).toMatchObject({
      'x-ratelimit-limit': '1',
      'x-ratelimit-remaining': '0',
      'x-request-id': expect.stringMatching(/^[0-9a-f]{32}$/),
    });
    const refused = await upgrade(gateway, token);
    expect(refused.statusCode).toBe(429);
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(0);
  });
});

/** Node's client would not send a header twice that may come once only. */
const LAX = { maxOutstandingPings: 10, strictSingleValueFields: false };
/** How each protocol refuses, by the code that REST has for it. */
const KINDS = new Map([
  ['0', 'OK'],
  ['3', 'INVALID_REQUEST'],
  ['7', 'INSUFFICIENT_SCOPE'],
  ['8', 'RATE_LIMITED'],
  ['16', 'UNAUTHENTICATED'],
]);

/**
 * Reads the registrations.
 *
 * @param authorization the values of all fields of that name.
 * @returns the kind of refusal, or OK.
 */
const readers: Readonly<Record<string, (gateway: TestGateway, authorization: string[]) => Promise<unknown>>> = {
  async REST(gateway, authorization) {
    const asked = request(`${gateway.url}/api/v1/registry/services`, {
      headers: { authorization } as unknown as OutgoingHttpHeaders,
    }).end();
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    const body = JSON.parse(await text(answer));
    return answer.statusCode === 200 ? 'OK' : body.error.code;
  },
  async WebSocket(gateway, authorization) {
    const headers = { authorization } as unknown as Record<string, string>;
    const socket = new WebSocket(`${gateway.url.replace('http', 'ws')}/api/ws`, { headers });
    const client = clientOf(socket);
    const [refused] = await Promise.race([
      once(socket, 'open'),
      once(socket, 'unexpected-response').then(([, r]) => [r]),
    ]);
    if (refused !== undefined) return JSON.parse(await text(refused as IncomingMessage)).error.code;
    await using _ = client;
    client.send({ type: 'subscribe', channel: 'registrations' });
    const { type, payload } =
      (await client.until(({ type }) => type === 'subscribed' || type === 'error')).at(-1) ?? {};
    return type === 'subscribed' ? 'OK' : payload?.['code'];
  },
  async gRPC(gateway, authorization) {
    const session = connectHttp2(`http://127.0.0.1:${gateway.grpcPort}`, LAX);
    const head = [':method', 'POST', ':path', '/rollcall.registry.v1.Registry/List', 'te', 'trailers'];
    head.push('content-type', 'application/grpc', ...authorization.flatMap((value) => ['authorization', value]));
    const stream = session.request(head);
    stream.end(Buffer.alloc(5)).resume();
    let status: unknown;
    stream.on('trailers', (trailers) => {
      status = trailers['grpc-status'];
    });
    const [answered] = await once(stream, 'response');
    await once(stream, 'close');
    session.close();
    return KINDS.get(String(status ?? answered['grpc-status']));
  },
};

describe.each(Object.entries(readers))('over %s the registrations are read by a caller', (name, read) => {
  let gateway: TestGateway;
  let clients = 0;
  beforeAll(async () => {
    gateway = await start({ ROLLCALL_LIMIT_FREE: '1', ROLLCALL_LIMIT_ANONYMOUS: '1000' });
  });
  afterAll(() => gateway[Symbol.asyncDispose]());

  const bearerOf = async (options: { tier?: 'Free'; scopes?: string[] }): Promise<string> => {
    clients += 1;
    const id = `${name.toLowerCase()}-${clients}`;
    return `Bearer ${await tokenOf(gateway, await createClient(namespace, { id, ...options }))}`;
  };

  test.each<[string, string[]]>([
    ['without a token', []],
    ['whose token is none', ['Bearer x']],
    ['with another scheme', ['Basic eDp5']],
    ['with a token that is empty', ['Bearer ']],
  ])('%s: refused 401', async (_what, authorization) => {
    expect(['UNAUTHENTICATED', 'INVALID_TOKEN']).toContain(await read(gateway, authorization));
  });

  test('with two tokens: refused 400, though both are good', async () => {
    const bearer = await bearerOf({ scopes: ['registrations:read'] });
    expect(await read(gateway, [bearer, bearer])).toBe('INVALID_REQUEST');
  });

  test('without the scope: refused 403', async () => {
    expect(await read(gateway, [await bearerOf({ scopes: ['jobs:read'] })])).toBe('INSUFFICIENT_SCOPE');
  });

  test('without the scope, and over its limit: refused 429, for the limit comes before the scope', async () => {
    const bearer = await bearerOf({ tier: 'Free' });
    expect(await read(gateway, [bearer])).toBe('INSUFFICIENT_SCOPE');
    expect(await read(gateway, [bearer])).toBe('RATE_LIMITED');
  });

  test('with the scope: answered', async () => {
    expect(await read(gateway, [await bearerOf({ scopes: ['registrations:read'] })])).toBe('OK');
  });
});

describe('a client that is deleted', () => {
  test('loses its answers within a second, those under way and those that are awaited; others keep theirs', async () => {
    await using gateway = await start();
    const doomed = await tokenOf(
      gateway,
      await createClient(namespace, { id: 'doomed', scopes: ['registrations:read'] }),
    );
    const stays = await tokenOf(
      gateway,
      await createClient(namespace, { id: 'stays', scopes: ['registrations:read'] }),
    );
    const ends = new Map<string, number>();
    const follow = async (name: string, answer: Response): Promise<void> => {
      await answer.text().catch(() => undefined);
      ends.set(name, performance.now());
    };
    void follow('events', await get(gateway, '/api/v1/shop/events', doomed));
    void follow('download', await get(gateway, '/api/v1/shop/download', doomed));
    void follow('events of another', await get(gateway, '/api/v1/shop/events', stays));
    const watch = await get(gateway, '/api/v1/registry/services/watch', doomed);
    expect(watch.status).toBe(200);
    void follow('watch', watch);
    const awaited = get(gateway, '/api/v1/shop/never', doomed);
    await namespace.kubectl(['delete', 'apiclient', 'doomed']);
    const deletedAt = performance.now();
    const refused = await awaited;
    expect(performance.now() - deletedAt).toBeLessThan(SOON_MS);
    expect([refused.status, await refused.json()]).toMatchObject([401, { error: { code: 'INVALID_TOKEN' } }]);
    await vi.waitFor(() => expect([...ends.keys()].sort()).toEqual(['download', 'events', 'watch']), {
      timeout: 30_000,
    });
    expect(Math.max(...ends.values()) - deletedAt).toBeLessThan(SOON_MS);
  });
});

describe('a gateway that stops', () => {
  test('closes both doors at once: an answer and a call without end do not keep it longer than its grace', async () => {
    await using gateway = await startBy(startGatewayProcess, { ROLLCALL_DRAIN_SECONDS: '3' });
    const token = await tokenOf(
      gateway,
      await createClient(namespace, { id: 'staying', scopes: ['registrations:read'] }),
    );
    const answer = await get(gateway, '/api/v1/shop/events', token);
    const cutOff = answer.text().then(
      () => 'ended',
      () => 'cut off',
    );
    using grpc = createGrpcClient(gateway.grpcPort, token);
    using watch = grpc.open('Watch', {});
    await watch.next();
    const from = performance.now();
    process.kill(gateway.process.pid, 'SIGTERM');
    const { code } = await watch.ended;
    expect(code).toBe(14);
    expect(await cutOff).toBe('cut off');
    expect(await gateway.process.exited).toMatchObject({ code: 0 });
    expect(performance.now() - from).toBeLessThan(20_000);
  });
});

/** The lines of requests, once there are so many. */
function linesOf(gateway: RunningService, count: number): Promise<Record<string, unknown>[]> {
  return vi.waitFor(
    async () => {
      const text = await readFile(gateway.logFile, 'utf8');
      const all = text.split('\n').filter((line) => line.startsWith('{'));
      const lines = all.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request');
      expect(lines.length).toBeGreaterThanOrEqual(count);
      return lines;
    },
    { timeout: 10_000 },
  );
}

describe('the access log', () => {
  test('has a line of each request at each door, with its id and why it was refused, and no secrets', async () => {
    await using gateway = await start();
    const client = await createClient(namespace, { id: 'logged', scopes: ['registrations:read'] });
    const token = await tokenOf(gateway, client);
    const from = (await linesOf(gateway, 1)).length;
    const headers = (id: string) => ({ 'x-request-id': id, authorization: `Bearer ${token}` });
    const ask = async (path: string, id: string, method = 'GET') => {
      const answer = await fetch(`${gateway.url}${path}`, { method, headers: headers(id) });
      expect(answer.headers.get('x-request-id')).toBe(id);
      await answer.text();
    };
    await ask('/api/v1/shop/short?card=4111', '1');
    await ask('/api/v1/nowhere/at-all', '2');
    await ask('/api/v1/shop/a%2fb', '3');
    await ask('/api/metrics', '4');
    await ask('/api/v1/shop/short', '5', 'PROPFIND');
    await ask('/api/openapi.json', '6');
    await ask('/api/docs', '7');
    expect((await requestToken(gateway, { id: 'logged', secret: 'guessed-secret' })).status).toBe(401);
    expect((await get(gateway, '/api/v1/shop/short', 'guessed-token')).status).toBe(401);
    await using live = await connect(`${gateway.url.replace('http', 'ws')}/api/ws`, token);
    expect((await upgrade(gateway, 'guessed-token')).statusCode).toBe(401);
    using grpc = createGrpcClient(gateway.grpcPort, token);
    expect((await grpc.call('List', {})).code).toBe(0);
    expect((await grpc.call('Heartbeat', { serviceName: 'shop' })).code).toBe(7);
    using stranger = createGrpcClient(gateway.grpcPort, 'guessed-token');
    expect((await stranger.call('List', {})).code).toBe(16);
    const lines = (await linesOf(gateway, from + 14)).slice(from);
    const subject = 'logged';
    const list = '/rollcall.registry.v1.Registry/List';
    expect(lines).toMatchObject([
      { reqId: '1', method: 'GET', path: '/api/v1/shop/short', service: 'shop', subject, result: 200 },
      { reqId: '2', path: '/api/v1/nowhere/at-all', subject, result: 404, code: 'SERVICE_NOT_FOUND' },
      { reqId: '3', path: '/api/v1/shop/a%2fb', result: 400, code: 'INVALID_PATH' },
      { reqId: '4', path: '/api/metrics', subject, result: 403, code: 'INSUFFICIENT_SCOPE' },
      { reqId: '5', method: 'PROPFIND', path: '/api/v1/shop/short', subject, result: 405, code: 'METHOD_NOT_ALLOWED' },
      { reqId: '6', path: '/api/openapi.json', result: 200 },
      { reqId: '7', path: '/api/docs', result: 200 },
      { path: '/api/v1/auth/token', client: 'logged', result: 401, code: 'invalid_client' },
      { path: '/api/v1/shop/short', result: 401, code: 'INVALID_TOKEN' },
      { path: '/api/ws', subject, result: 101 },
      { path: '/api/ws', result: 401, code: 'INVALID_TOKEN' },
      { path: list, service: 'registry', subject, result: 'OK' },
      { path: '/rollcall.registry.v1.Registry/Heartbeat', subject, result: 'PERMISSION_DENIED' },
      { path: list, result: 'UNAUTHENTICATED' },
    ]);
    for (const line of lines) expect(line).toMatchObject({ reqId: expect.any(String), ms: expect.any(Number) });
    const text = JSON.stringify(lines);
    for (const secret of [token, client.secret, 'guessed', '4111']) expect(text).not.toContain(secret);
    expect(live.unread()).toEqual([]);
  });

  test('can be switched off', async () => {
    await using gateway = await start({ ROLLCALL_ACCESS_LOG: 'off' });
    const answer = await get(gateway, '/api/v1/shop/short', 'guessed-token');
    expect(answer.headers.get('x-request-id')).toMatch(/^[0-9a-f]{32}$/);
    await gateway[Symbol.asyncDispose]();
    expect(await readFile(gateway.logFile, 'utf8')).not.toContain('/api/v1/shop/short');
  });
});

test('metrics distinguish routes, what is refused included', async () => {
  await using gateway = await start();
  const token = await tokenOf(
    gateway,
    await createClient(namespace, { id: 'measured', scopes: ['registrations:read', 'payments:read'] }),
  );
  await (await get(gateway, '/api/v1/shop/short', token)).text();
  await (await get(gateway, '/api/v1/shop/short')).text();
  await (await get(gateway, '/api/v1/payment/transactions', token)).text();
  const text = await (await fetch(`${gateway.adminUrl}/metrics`)).text();
  for (const [route, code] of [
    ['/api/v1/{service}', 200],
    ['/api/v1/{service}', 401],
    ['/api/v1/payment/transactions', 404],
  ] as const) {
    expect(text).toContain(
      `http_request_duration_seconds_count{process="gateway",method="GET",route="${route}",code="${code}"`,
    );
  }
});
