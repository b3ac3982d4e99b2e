import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { createClient, requestToken, startBackend, startGateway, startGatewayProcess, tokenOf } from './gateway.ts';
import { connect } from './websocket-client.ts';

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('own-endpoints');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  gateway = stack.use(await start());
});

afterAll(() => stack.disposeAsync());

function start(settings: Record<string, string> = {}): Promise<RunningService> {
  return startGateway({ namespace, registry: registry.url, settings });
}

async function tokenWith(id: string, scopes: readonly string[]): Promise<string> {
  return tokenOf(gateway, await createClient(namespace, { id, scopes }));
}

function get(path: string, token: string): Promise<Response> {
  return fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
}

const webSocketOf = ({ url }: RunningService): string => `${url.replace('http', 'ws')}/api/ws`;

async function health(): Promise<{ status: string; version: string; uptime: number }> {
  const answer = await fetch(`${gateway.url}/api/health`);
  expect(answer.status).toBe(200);
  return (await answer.json()) as Awaited<ReturnType<typeof health>>;
}

test('health: the version of the package, and an uptime in whole seconds that grows', async () => {
  const manifest = new URL('../../services/gateway/package.json', import.meta.url);
  const { version } = JSON.parse(await readFile(manifest, 'utf8')) as { version: string };
  const { uptime, ...rest } = await health();
  expect(rest).toEqual({ status: 'healthy', version });
  expect(Number.isInteger(uptime)).toBe(true);
  await sleep(1100);
  const later = (await health()).uptime;
  expect(Number.isInteger(later)).toBe(true);
  expect(later).toBeGreaterThan(uptime);
  expect(later).toBeLessThan(600);
});

describe('a path of the gateway with another method', () => {
  test.each([
    ['/', 'GET, HEAD, OPTIONS'],
    ['/api/health', 'GET, HEAD, OPTIONS'],
    ['/.well-known/jwks.json', 'GET, HEAD, OPTIONS'],
    ['/api/metrics', 'GET, HEAD, OPTIONS'],
    ['/api/ws', 'GET, HEAD, OPTIONS'],
    ['/api/docs/', 'GET, HEAD, OPTIONS'],
    ['/api/v1/auth/token', 'OPTIONS, POST'],
  ])('%s is 405 with Allow, token or not, and OPTIONS lists its methods', async (path, allow) => {
    const url = `${gateway.url}${path}`;
    const headers = { authorization: `Bearer ${await tokenWith('methods', [])}` };
    for (const init of [{ method: 'DELETE' }, { method: 'PROPFIND' }, { method: 'DELETE', headers }]) {
      const refused = await fetch(url, init);
      const { error } = (await refused.json()) as { error: string | { code: string } };
      expect([refused.status, refused.headers.get('allow')]).toEqual([405, allow]);
      const wanted = path.endsWith('token') ? 'invalid_request' : 'METHOD_NOT_ALLOWED';
      expect(typeof error === 'string' ? error : error.code).toBe(wanted);
    }
    const asked = await fetch(url, { method: 'OPTIONS' });
    expect([asked.status, asked.headers.get('allow')]).toEqual([204, allow]);
  });

  test('goes to the service that has the path, where one is registered', async () => {
    await using auth = await startBackend();
    await registry.call('POST', '/services/register', { service_name: 'auth', service_url: auth.url });
    const token = await tokenWith('of-auth', []);
    const path = '/api/v1/auth/token';
    await vi.waitFor(async () => expect((await get(path, token)).status).toBe(200), { timeout: 10_000 });
    expect((await fetch(`${gateway.url}${path}`)).status).toBe(401);
    expect(auth.requests.map(({ method, url }) => `${method} ${url}`)).toEqual(['GET /api/v1/token']);
    expect((await requestToken(gateway, { id: 'nobody', secret: 'x' })).status).toBe(401);
  });
});

test('metrics for who may read them, in the format of Prometheus', async () => {
  const answer = await get('/api/metrics', await tokenWith('monitoring', ['metrics:read']));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^text\/plain; version=0\.0\.4/);
  const lines = (await answer.text()).split('\n');
  expect(lines).toContain('# TYPE http_request_duration_seconds histogram');
  expect(lines).toContain('rollcall_gateway_limiter_store{store="memory",process="gateway"} 1');
  expect(lines).toContainEqual(expect.stringMatching(/^rollcall_gateway_websocket_opened_total\S* \d+$/));
  const refused = await get('/api/metrics', await tokenWith('other', ['registrations:read']));
  expect([refused.status, await refused.json()]).toMatchObject([403, { error: { code: 'INSUFFICIENT_SCOPE' } }]);
});

test('the AsyncAPI document is that of this gateway: its version, its channels, what it says itself', async () => {
  const answer = await get('/api/ws/asyncapi.json', await tokenWith('reader', []));
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toMatch(/^application\/json/);
  const document = await answer.json();
  expect(document).toMatchObject({
    asyncapi: '3.0.0',
    info: { version: (await health()).version },
    channels: { gateway: { address: '/api/ws' } },
    components: {
      messages: {
        subscribe: { payload: { required: ['type', 'channel'] } },
        'event-registrations': { payload: { properties: { channel: { description: 'registrations' } } } },
        'event-jobs': { payload: { properties: { channel: { description: 'jobs' } } } },
        'event-jobs-service-name': { payload: { properties: { channel: { description: 'jobs.{service_name}' } } } },
      },
    },
  });
});

/** The status of a request from an address, on behalf of another as it says. */
async function askFrom(
  localAddress: string,
  { url }: RunningService,
  forwardedFor: string,
): Promise<number | undefined> {
  const headers = { 'x-forwarded-for': forwardedFor };
  const asking = request(`${url}/api/v1/shop/x`, { localAddress, headers, agent: false }).end();
  const [answer] = await once(asking, 'response');
  await text(answer);
  return answer.statusCode;
}

async function left(answer: Promise<Response>): Promise<string | null> {
  return (await answer).headers.get('x-ratelimit-remaining');
}

describe('a caller without a token', () => {
  const LIMIT = 3;
  const PROXY = '127.0.0.2';

  test('is counted by the address that a trusted proxy names, and by its own whatever it claims', async () => {
    await using limited = await start({ ROLLCALL_TRUSTED_PROXIES: PROXY, ROLLCALL_LIMIT_ANONYMOUS: String(LIMIT) });
    const ask = async (from: string, claims: readonly string[]) => {
      const answers: unknown[] = [];
      for (const claim of claims) answers.push(await askFrom(from, limited, claim));
      return answers;
    };
    const addresses = ['203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.4'];
    // Others behind the proxy do not notice.
    expect(
      await ask(
        PROXY,
        Array.from({ length: LIMIT }, () => '203.0.113.9'),
      ),
    ).toEqual([401, 401, 401]);
    expect(await ask(PROXY, ['203.0.113.9', '1.2.3.4, 203.0.113.9'])).toEqual([429, 429]);
    expect(await ask(PROXY, addresses)).toEqual([401, 401, 401, 401]);
    // Who is no proxy is one caller.
    expect(await ask('127.0.0.1', addresses)).toEqual([401, 401, 401, 429]);
    expect(await ask(PROXY, ['203.0.113.5'])).toEqual([401]);
  });
});

test('a route called token has a limit of its own, apart from those of the token endpoint', async () => {
  const file = join(inject('temporaryDirectory'), 'routes-token.yaml');
  const route =
    '{ name: token, prefix: /api/public, service: shop, anonymous: true, requestsPerMinute: { anonymous: 2 } }';
  await writeFile(file, `routes: [${route}]`);
  await using routed = await start({ ROLLCALL_ROUTES_FILE: file });
  expect(await left(fetch(`${routed.url}/api/public`))).toBe('1');
  expect(await left(fetch(`${routed.url}/api/public`))).toBe('0');
  expect(await left(requestToken(routed, { id: 'nobody', secret: 'x' }))).toBe('19');
});

test('a gateway that gets SIGTERM says goodbye to its WebSockets, and ends well and soon', async () => {
  await using leaving = await startGatewayProcess({ namespace, registry: registry.url });
  const token = await tokenOf(
    leaving,
    await createClient(namespace, { id: 'following', scopes: ['registrations:read'] }),
  );
  await using client = await connect(webSocketOf(leaving), token);
  const from = performance.now();
  process.kill(leaving.process.pid, 'SIGTERM');
  expect(await client.next()).toMatchObject({ type: 'goodbye', payload: { retry_after_ms: expect.any(Number) } });
  expect(await client.closed).toEqual({ code: 1001, reason: 'this replica stops' });
  expect(await leaving.process.exited).toMatchObject({ code: 0 });
  expect(performance.now() - from).toBeLessThan(15_000);
  await vi.waitFor(
    async () => {
      const log = (await readFile(leaving.process.logFile, 'utf8')).split('\n').filter((line) => line.startsWith('{'));
      const ends = log
        .map((line) => JSON.parse(line))
        .filter(({ msg, path }) => msg === 'request' && path === '/api/ws');
      expect(ends).toMatchObject([{ result: 101 }, { result: 1001, subject: 'following', events: 0 }]);
    },
    { timeout: 30_000 },
  );
});

async function entry(): Promise<Record<string, string>> {
  return (await (await fetch(`${gateway.url}/`)).json()) as Record<string, string>;
}

describe('documentation, to a browser that shows no token', () => {
  test.each(['registry/docs', 'registry/docs/', 'registry/docs/static/index.html', '../docs'])(
    '%s is a page whose parts are below the gateway',
    async (path) => {
      const page = await fetch(`${gateway.url}/api/v1/${path}`);
      expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
      const links = [...(await page.text()).matchAll(/(?:src|href)="([^"]+)"/g)].map(([, link = '']) => link);
      expect(links.length).toBeGreaterThan(3);
      for (const link of links) {
        expect(link).toMatch(/^\./);
        const { pathname } = new URL(link, page.url);
        expect(pathname).toMatch(/^\/api\/(v1\/registry\/)?docs\/static\//);
        expect([pathname, (await fetch(`${gateway.url}${pathname}`)).status]).toEqual([pathname, 200]);
      }
    },
  );

  test("the gateway's page shows its own document and the registry's", async () => {
    const settings = await (await fetch(`${gateway.url}/api/docs/static/swagger-initializer.js`)).text();
    const urls = [...settings.matchAll(/"url":\s*"([^"]+)"/g)].map(([, url = '']) => url);
    const documents = urls.map(async (url) => (await fetch(`${gateway.url}${url}`)).json());
    expect(await Promise.all(documents)).toMatchObject([
      { openapi: '3.1.0', info: { title: 'Rollcall gateway' } },
      { openapi: '3.1.0', info: { title: 'Rollcall registry' } },
    ]);
  });

  test("the gateway's document has what GET / names, with the answers that come", async () => {
    const document = (await (await fetch(`${gateway.url}/api/openapi.json`)).json()) as {
      paths: Record<string, Record<string, { responses: Record<string, { content?: object }> }>>;
    };
    const { service: _, message: __, documentation, openapi, registry: ___, graphql: ____, ...own } = await entry();
    expect([documentation, openapi]).toEqual(['/api/docs', '/api/openapi.json']);
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(['/', '/api/metrics', ...Object.values(own)]));
    for (const [path, operations] of Object.entries(document.paths)) {
      for (const [method, { responses }] of Object.entries(operations)) {
        const answer = await fetch(`${gateway.url}${path}`, {
          method: method.toUpperCase(),
          ...(method === 'post' ? { body: new URLSearchParams({ grant_type: 'client_credentials' }) } : {}),
        });
        const [type = ''] = (answer.headers.get('content-type') ?? '').split(';');
        expect([path, Object.keys(responses[answer.status]?.content ?? {})]).toEqual([path, [type]]);
        await answer.body?.cancel();
      }
    }
  });

  test.each(['docs/json', 'openapi.json'])('%s names servers that lead through the gateway', async (path) => {
    const answer = await fetch(`${gateway.url}/api/v1/registry/${path}`);
    const { servers, paths } = (await answer.json()) as { servers: { url: string }[]; paths: object };
    expect(Object.keys(paths)).toContain('/services');
    const server = new URL(servers[0]?.url ?? '', answer.url).href.replace(/\/$/, '');
    expect(server).toBe(`${gateway.url}/api/v1/registry`);
    expect((await get(`${new URL(server).pathname}/services`, await tokenWith('reader', ['*']))).status).toBe(200);
  });

  test.each([
    ['GET', '/api/v1/registry/services', 401],
    ['GET', '/api/v1/registry/docsy', 401],
    ['GET', '/api/v1/registry/metrics', 401],
    ['POST', '/api/v1/registry/docs', 405],
    ['GET', '/api/v1/registry/docs/..%2Fservices', 400],
  ])('opens nothing else: %s %s is %d', async (method, path, status) => {
    expect((await fetch(`${gateway.url}${path}`, { method })).status).toBe(status);
  });
});
