import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';

const AUDIENCE = 'rollcall';

let namespace: TestNamespace;
let database: TestDatabase;
let registry: RunningService;
/** Reads of this one need tokens, too, and it lets a subject have two registrations. */
let strict: RunningService;
const tokens: Record<string, string> = {};

beforeAll(async () => {
  namespace = await createNamespace('auth');
  database = await createDatabase();
  for (const account of ['alice', 'bob', 'carol', 'dave']) {
    await namespace.kubectl(['create', 'serviceaccount', account]);
    tokens[account] = (await namespace.kubectl(['create', 'token', account, '--audience', AUDIENCE])).trim();
  }
  tokens['foreign'] = (await namespace.kubectl(['create', 'token', 'alice', '--audience', 'somebody-else'])).trim();
  const start = (settings: Record<string, string>) =>
    startRegistry({
      namespace: namespace.name,
      databaseUrl: database.url,
      settings: {
        ROLLCALL_AUTHENTICATION: 'token-review',
        ROLLCALL_WEBHOOK_ALLOW_UNSIGNED: 'false',
        ROLLCALL_LOG_LEVEL: 'trace',
        ...settings,
      },
    });
  registry = await start({});
  strict = await start({ ROLLCALL_READS: 'authenticated', ROLLCALL_REGISTRATIONS_PER_SUBJECT: '2' });
});

afterAll(async () => {
  await strict[Symbol.asyncDispose]();
  await registry[Symbol.asyncDispose]();
  await database[Symbol.asyncDispose]();
});

/**
 * @param request method and path, such as `GET /services`, and the URL of another registry than the
 * one whose reads are open.
 */
async function call(authorization: string | undefined, request: string, body?: object): Promise<Response> {
  const [method = '', path = '', to = registry.url] = request.split(' ');
  const headers: Record<string, string> = {};
  if (authorization !== undefined) headers['authorization'] = authorization;
  if (body !== undefined) headers['content-type'] = 'application/json';
  const url = `${to}/api/v1${path}`;
  return fetch(url, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

const as = (account: string) => `Bearer ${tokens[account]}`;
const shop = { service_name: 'shop', service_url: 'http://shop' };

const WRITES = [
  'POST /services/register',
  'POST /services/shop/heartbeat',
  'POST /services/shop/composition',
  'DELETE /services/shop',
  'POST /webhooks/update',
  'POST /webhooks/check-updates',
  'POST /webhooks/health',
  'POST /webhooks/lifecycle',
  'POST /webhooks/deploy',
  'POST /webhooks/rollback',
  'POST /webhooks/notify',
  'POST /webhooks/config',
  'POST /jobs/x/promote',
  'POST /jobs/x/abort',
  'POST /webhooks/deliveries/x/replay',
];
/** They hold URLs that let anybody call them, and messages. */
const PRIVATE = ['GET /webhooks/config', 'GET /webhooks/deliveries', 'GET /webhooks/deliveries/x'];
const READS = [
  'GET /services',
  'GET /services/x',
  'GET /services/watch',
  'GET /jobs',
  'GET /jobs/x',
  'GET /jobs/x/events',
  'GET /jobs/watch',
  'GET /updates/history',
  'GET /updates/history/x',
  'GET /updates/statistics',
  'GET /updates/history/x/export/csv',
];

/** The status alone: event streams do not end. */
async function statusOf(authorization: string | undefined, request: string): Promise<number> {
  const answer = await call(authorization, request, request.startsWith('POST') ? shop : undefined);
  await answer.body?.cancel();
  return answer.status;
}

test.each([...WRITES, ...PRIVATE])('%s wants a token', async (request) => {
  const answer = await call(undefined, request, request.startsWith('POST') ? shop : undefined);
  expect(answer.status).toBe(401);
  expect(answer.headers.get('www-authenticate')).toBe('Bearer');
  expect(await answer.json()).toEqual({ error: 'Unauthenticated', message: expect.any(String) });
});

test.each(READS)('%s is open unless reads are not, and a token that is shown has to be good', async (request) => {
  expect([200, 404]).toContain(await statusOf(undefined, request));
  expect([200, 404]).toContain(await statusOf(as('alice'), request));
  expect(await statusOf(as('foreign'), request)).toBe(401);
  expect(await statusOf(undefined, `${request} ${strict.url}`)).toBe(401);
  expect([200, 404]).toContain(await statusOf(as('alice'), `${request} ${strict.url}`));
});

test.each(['/health', '/metrics', '/openapi.json'])('%s is open to all', async (path) => {
  expect(await statusOf(undefined, `GET ${path} ${strict.url}`)).toBe(200);
});

test('a known caller needs no secret where the service has none', async () => {
  const release = { service_name: 'unsigned', version: '1.0.0', artifact_url: 'shop:1.0.0' };
  expect((await call(as('alice'), 'POST /webhooks/deploy', release)).status).toBe(200);
  expect((await call(as('alice'), 'POST /webhooks/config', { service_name: 'unsigned', endpoints: {} })).status).toBe(
    200,
  );
});

test('a subject has as many registrations as it may have', async () => {
  const register = (account: string, service_name: string) =>
    call(as(account), `POST /services/register ${strict.url}`, { service_name, service_url: 'http://shop' });
  for (const name of ['one', 'two']) expect((await register('carol', name)).status).toBe(200);
  const refused = await register('carol', 'three');
  expect(refused.status).toBe(403);
  expect(await refused.json()).toEqual({ error: 'Too many registrations', message: expect.stringContaining('2') });
  expect((await register('dave', 'three')).status).toBe(200);
  expect((await register('carol', 'two')).status).toBe(200);
  expect((await call(as('carol'), `DELETE /services/one ${strict.url}`)).status).toBe(200);
  expect((await register('carol', 'four')).status).toBe(200);
});

test('only who has registered federation tells of compositions', async () => {
  const tell = (account: string) =>
    call(as(account), 'POST /services/graphs/composition', { status: 'composed', message: 'Well' });
  const facts = { service_url: 'http://shop', capabilities: ['graphql'] };
  expect((await call(as('bob'), 'POST /services/register', { ...facts, service_name: 'graphs' })).status).toBe(200);
  expect((await tell('bob')).status).toBe(403);
  expect((await call(as('dave'), 'POST /services/register', { ...facts, service_name: 'federation' })).status).toBe(
    200,
  );
  expect((await tell('dave')).status).toBe(200);
  expect((await tell('bob')).status).toBe(403);
});

const registerOneMore = () => call(as('bob'), 'POST /services/register', { ...shop, service_name: 'one-more' });

async function registerUnderQuota(): Promise<number> {
  await namespace.kubectl(['delete', 'quota', 'full', '--ignore-not-found']);
  await namespace.kubectl(['create', 'quota', 'full', '--hard=count/serviceregistrations.rollcall.dev=0']);
  await namespace
    .kubectl(['wait', 'quota/full', '--for=jsonpath={.status.used}', '--timeout=3s'])
    .catch(() => undefined);
  return (await registerOneMore()).status;
}

test('what a ResourceQuota does not allow is reported as such', { timeout: 150_000 }, async () => {
  // A new API server's controller learns of registrations within a minute. It counts those of an
  // earlier quota five minutes later.
  await expect.poll(registerUnderQuota, { timeout: 120_000, interval: 1000 }).toBe(507);
  const answer = await registerOneMore();
  await namespace.kubectl(['delete', 'quota', 'full']);
  expect(await answer.json()).toEqual({ error: 'Store is full', message: expect.stringContaining('ResourceQuota') });
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

test('who shows a token is told that it was refused, and not that there was none', async () => {
  const refused = await (await call(as('foreign'), 'POST /services/register', shop)).json();
  expect(refused).toEqual({ error: 'Unauthenticated', message: expect.stringContaining('audience') });
  const absent = await (await call(undefined, 'POST /services/register', shop)).json();
  expect(absent).toEqual({ error: 'Unauthenticated', message: expect.not.stringContaining('audience') });
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
  const log = await readFile(registry.logFile, 'utf8');
  expect(log.length).toBeGreaterThan(0);
  for (const token of Object.values(tokens)) expect(log).not.toContain(token.slice(-40));
});
