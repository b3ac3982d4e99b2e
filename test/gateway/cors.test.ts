import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, tokenOf } from './gateway.ts';

const PAGE = 'https://app.example.com';
const STRANGER = 'https://stranger.example.com';

let namespace: TestNamespace;
let gateway: RunningService;
let silent: RunningService;
let shop: Backend;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('cors');
  const database = stack.use(await createDatabase());
  const registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  shop = stack.use(
    await startBackend((request, response) => {
      response.setHeader('vary', 'accept-encoding').setHeader('access-control-allow-origin', STRANGER);
      response.setHeader('access-control-expose-headers', 'etag').setHeader('access-control-allow-credentials', 'true');
      response.end(request.method);
    }),
  );
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: shop.url });
  const start = (settings: Record<string, string>) =>
    startGateway({ namespace, registry: registry.url, settings: { ...settings, ROLLCALL_LIMIT_PREMIUM: '1000' } });
  gateway = stack.use(await start({ ROLLCALL_CORS_ORIGINS: `${PAGE}, http://localhost:8080` }));
  silent = stack.use(await start({}));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'page' }));
  const isKnown = async () => (await call('GET', PAGE)).status === 200;
  await waitUntil('the gateway has heard of the service', isKnown, { timeoutMs: 30_000 });
});

afterAll(() => stack.disposeAsync());

interface Options {
  readonly path?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  readonly at?: RunningService | undefined;
}

function call(method: string, origin: string, { path = '/api/v1/shop/x', headers, at = gateway }: Options = {}) {
  const shown = { authorization: `Bearer ${token}` };
  return fetch(`${at.url}${path}`, { method, headers: { origin, ...(headers ?? shown) } });
}

function preflight(origin: string, { path, at }: Omit<Options, 'headers'> = {}) {
  const asked = { 'access-control-request-method': 'DELETE', 'access-control-request-headers': 'authorization,x-own' };
  return call('OPTIONS', origin, { path, at, headers: asked });
}

describe('a page of an origin that may call', () => {
  test('is answered so before it shows a token, whatever the path, without a request to the service', async () => {
    const before = shop.requests.length;
    for (const path of ['/api/v1/shop/x', '/api/v1/auth/token', '/api/v1/nobody/x']) {
      const answer = await preflight(PAGE, { path });
      expect({ path, status: answer.status, body: await answer.text() }).toEqual({ path, status: 204, body: '' });
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'access-control-allow-origin': PAGE,
        'access-control-allow-methods': 'DELETE',
        'access-control-allow-headers': 'authorization,x-own',
        'access-control-max-age': '7200',
      });
      expect(answer.headers.has('access-control-allow-credentials')).toBe(false);
    }
    expect(shop.requests.length).toBe(before);
  });

  test('may read answers, with the headers of its limit, and what it is refused for', async () => {
    const answer = await call('GET', PAGE);
    expect(answer.headers.get('access-control-allow-origin')).toBe(PAGE);
    expect(answer.headers.get('access-control-expose-headers')).toMatch(/^etag, .*x-ratelimit-remaining/);
    expect(answer.headers.get('vary')).toBe('accept-encoding, origin');
    const refused = await call('GET', PAGE, { headers: {} });
    expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([401, PAGE]);
    const unknown = await call('GET', PAGE, { path: '/api/v1/nobody/x' });
    expect([unknown.status, unknown.headers.get('access-control-allow-origin')]).toEqual([404, PAGE]);
  });

  test('gets a service’s own answer to OPTIONS where it only asks for that', async () => {
    expect(await (await call('OPTIONS', PAGE)).text()).toBe('OPTIONS');
  });
});

describe('a page of another origin', () => {
  test.each([STRANGER, 'null', `${PAGE}.evil.example`, 'http://app.example.com'])('%s may not', async (origin) => {
    const asked = await preflight(origin);
    expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([401, null]);
    const answer = await call('GET', origin);
    expect(answer.headers.get('access-control-allow-origin')).toBe(null);
    expect(answer.headers.get('access-control-allow-credentials')).toBe(null);
    expect(answer.headers.get('vary')).toBe('accept-encoding, origin');
  });
});

test('without the setting a service’s own word goes through, and browsers that ask first are answered 401', async () => {
  const answer = await call('GET', PAGE, { at: silent });
  expect(answer.headers.get('access-control-allow-origin')).toBe(STRANGER);
  expect(answer.headers.get('vary')).toBe('accept-encoding');
  const asked = await preflight(PAGE, { at: silent });
  expect([asked.status, asked.headers.get('access-control-allow-origin')]).toEqual([401, null]);
});

test.each(['https://app.example.com/', 'app.example.com', 'https://app.example.com/path'])(
  'a gateway does not start with %s for an origin',
  async (origin) => {
    const starting = startGateway({
      namespace,
      registry: 'http://127.0.0.1:9',
      settings: { ROLLCALL_CORS_ORIGINS: origin },
    });
    await expect(starting).rejects.toThrow(`${origin} is no origin`);
  },
);
