import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry, type TestRegistry } from '../support/registry.ts';

const AUDIENCE = 'rollcall';

let namespace: TestNamespace;
let database: TestDatabase;
let registry: TestRegistry;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  namespace = await createNamespace('auth');
  database = await createDatabase();
  for (const account of ['alice', 'bob']) {
    await namespace.kubectl(['create', 'serviceaccount', account]);
    tokens[account] = (await namespace.kubectl(['create', 'token', account, '--audience', AUDIENCE])).trim();
  }
  tokens['foreign'] = (await namespace.kubectl(['create', 'token', 'alice', '--audience', 'somebody-else'])).trim();
  registry = await startRegistry({
    namespace: namespace.name,
    databaseUrl: database.url,
    settings: {
      ROLLCALL_AUTHENTICATION: 'token-review',
      ROLLCALL_TOKEN_AUDIENCE: AUDIENCE,
      ROLLCALL_LOG_LEVEL: 'trace',
    },
  });
});

afterAll(async () => {
  await registry[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
  await namespace[Symbol.asyncDispose]();
});

/** @param request method and path, such as `GET /services`. */
async function call(authorization: string | undefined, request: string, body?: object): Promise<Response> {
  const [method = '', path = ''] = request.split(' ');
  const headers: Record<string, string> = {};
  if (authorization !== undefined) headers['authorization'] = authorization;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const url = `${registry.url}/api/v1${path}`;
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

const as = (account: string) => `Bearer ${tokens[account]}`;
const shop = { service_name: 'shop', service_url: 'http://shop' };

test('health, metrics and the documentation stay open; everything else wants a token', async () => {
  for (const path of ['/health', '/metrics', '/openapi.json'])
    expect((await call(undefined, `GET ${path}`)).status).toBe(200);
  for (const [method, path] of [
    ['GET', '/services'],
    ['GET', '/services/watch'],
    ['POST', '/services/register'],
    ['POST', '/services/shop/heartbeat'],
    ['DELETE', '/services/shop'],
    ['GET', '/updates/history'],
    ['POST', '/webhooks/deploy'],
    ['GET', '/jobs'],
    ['GET', '/jobs/x/events'],
    ['POST', '/jobs/x/abort'],
    ['GET', '/webhooks/deliveries'],
    ['POST', '/webhooks/deliveries/x/replay'],
  ] as const) {
    const answer = await call(undefined, `${method} ${path}`, method === 'POST' ? shop : undefined);
    expect([path, answer.status]).toEqual([path, 401]);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    expect(await answer.json()).toEqual({ error: 'Unauthenticated', message: expect.any(String) });
  }
});

test.each([
  ['a token for another audience', () => as('foreign')],
  ['a token with a broken signature', () => `${as('alice').slice(0, -4)}AAAA`],
  ['no token at all', () => 'Bearer '],
  ['another scheme', () => `Basic ${Buffer.from('alice:x').toString('base64')}`],
  ['something very long', () => `Bearer ${'x'.repeat(10_000)}`],
])('%s is refused', async (_what, authorization) => {
  expect((await call(authorization(), 'POST /services/register', shop)).status).toBe(401);
});

test('a name belongs to the subject that registered it', async () => {
  expect((await call(as('alice'), 'POST /services/register', shop)).status).toBe(200);
  const thefts = [
    call(as('bob'), 'POST /services/register', { ...shop, service_url: 'http://thief' }),
    call(as('bob'), 'POST /services/shop/heartbeat'),
    call(as('bob'), 'DELETE /services/shop'),
    call(as('bob'), 'POST /webhooks/health', { service_name: 'shop', status: 'down' }),
  ];
  for (const answer of await Promise.all(thefts)) expect(answer.status).toBe(403);
  const read = await call(as('bob'), 'GET /services/shop');
  expect(await read.json()).toMatchObject({ service_url: 'http://shop' });
  expect((await call(as('alice'), 'POST /services/shop/heartbeat')).status).toBe(200);
  expect((await call(as('alice'), 'DELETE /services/shop')).status).toBe(200);
  expect((await call(as('bob'), 'POST /services/register', shop)).status).toBe(200);
});

test('no token is in the log', async () => {
  const log = await readFile(registry.process.logFile, 'utf8');
  expect(log.length).toBeGreaterThan(0);
  for (const token of Object.values(tokens)) expect(log).not.toContain(token.slice(-40));
});
