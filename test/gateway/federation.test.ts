import { federationProcess } from '@rollcall/federation/service.ts';
import { freePorts } from '@rollcall/local/ports.ts';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { users } from '../federation/shop.ts';
import { startSubgraph } from '../federation/subgraph-server.ts';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import { type RunningService, startService } from '../support/replica.ts';
import { createClient, startGateway, tokenOf } from './gateway.ts';

const stack = new AsyncDisposableStack();
const WAIT = { timeout: 60_000 };
const NAMES = '{ users { name } }';
const ANSWER = { data: { users: [{ name: 'Anna' }, { name: 'Ben' }] } };
let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let token: string;

beforeAll(async () => {
  namespace = await createNamespace('gateway-federation');
  const { url: databaseUrl } = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl }));
  gateway = stack.use(await startGateway({ namespace, registry: registry.url }));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'anna', scopes: ['schemas:read'] }));
});

afterAll(() => stack.disposeAsync());

interface Call {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: object;
  /** Without any where null. */
  readonly shows?: string | null;
}

async function call(path: string, { headers = {}, body, shows = token }: Call = {}) {
  const answer = await fetch(`${gateway.url}${path}`, {
    headers: {
      ...(shows === null ? {} : { authorization: `Bearer ${shows}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') === true;
  return { status: answer.status, headers: answer.headers, body: isJson ? JSON.parse(text) : text };
}

const query = (more: Call = {}) => call('/api/graphql', { body: { query: NAMES }, ...more });

const isFound = async () => (await call('/api/v1/federation/health')).status === 200;

/** The service itself, until it is disposed of. */
async function startFederation(): Promise<RunningService> {
  const { url: databaseUrl } = stack.use(await createDatabase());
  const [port = 0, adminPort = 0] = await freePorts(2);
  return startService(federationProcess, {
    logDirectory: inject('temporaryDirectory'),
    access: {},
    namespace: namespace.name,
    ports: [port, adminPort],
    settings: {
      ROLLCALL_DATABASE_URL: databaseUrl,
      ROLLCALL_GATEWAY_KEYS_URL: `${gateway.url}/.well-known/jwks.json`,
      ROLLCALL_REGISTRY_URLS: registry.url,
      ROLLCALL_SERVICE_URL: `http://127.0.0.1:${port}`,
    },
  });
}

const AWAY = { status: 503, body: { error: { code: 'UPSTREAM_UNAVAILABLE', details: { service: 'federation' } } } };

test('the graph is not there for now where nobody serves it, which a caller without a token does not learn', async () => {
  expect(await query()).toMatchObject(AWAY);
  expect(await query({ shows: null })).toMatchObject({ status: 401 });
  // What the gateway does not promise is not there at all.
  expect(await call('/api/v1/federation/schemas')).toMatchObject({
    status: 404,
    body: { error: { code: 'SERVICE_NOT_FOUND' } },
  });
});

describe('with federation', () => {
  let federation: RunningService;

  beforeAll(async () => {
    federation = stack.use(await startFederation());
    await waitUntil('the gateway has heard of federation', isFound, { timeoutMs: WAIT.timeout });
  });

  test('the graph of registered services is queried with a token, by POST and GET', async () => {
    const server = await startSubgraph(users);
    await registry.call('POST', '/services/register', {
      service_name: 'users',
      service_url: server.base,
      capabilities: ['graphql'],
    });
    await expect.poll(async () => (await query()).body, WAIT).toEqual(ANSWER);
    const answer = await query({ headers: { 'x-rollcall-subject': 'somebody-else' } });
    expect(answer.headers.get('x-ratelimit-limit')).not.toBeNull();
    // Without a client of its own federation tells nobody who calls.
    expect(server.asked.at(-1)).not.toHaveProperty('x-rollcall-subject');
    const asked = `/api/graphql?query=${encodeURIComponent(NAMES)}`;
    expect(await call(asked, { headers: { 'graphql-require-preflight': '1' } })).toMatchObject({
      status: 200,
      body: ANSWER,
    });
    expect(await call(asked)).toMatchObject({ body: { error: { code: 'CSRF_GUARD' } } });
    for (const shows of [null, 'wrong']) expect(await query({ shows })).toMatchObject({ status: 401 });
  });

  test('its documented paths are below its name, and need the scopes of the table', async () => {
    expect(await call('/api/v1/federation/schemas')).toMatchObject({
      status: 200,
      body: { schemas: expect.any(Array) },
    });
    expect(await call('/api/v1/federation/schemas/refresh', { body: {} })).toMatchObject({
      status: 403,
      body: { error: { code: 'INSUFFICIENT_SCOPE', details: { missing: ['schemas:write'] } } },
    });
  });

  test('anybody may read how it is called', async () => {
    for (const path of ['openapi.json', 'docs/'])
      expect(await call(`/api/v1/federation/${path}`, { shows: null })).toMatchObject({ status: 200 });
  });

  test('once it has gone, the graph is not there for now', async () => {
    await federation[Symbol.asyncDispose]();
    await expect.poll(() => query(), WAIT).toMatchObject(AWAY);
  });
});
