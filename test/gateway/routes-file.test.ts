import { mkdir, mkdtemp, readFile, rename, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { waitUntil } from '@rollcall/local/wait.ts';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, type TestClient, tokenOf } from './gateway.ts';

const ROUTES = `
routes:
  - name: reports
    prefix: /api/v1/reports
    service: reports
    upstreamPrefix: /internal
    scopes: [reports:read]
    methods: [GET, HEAD]
    requestsPerMinute: { premium: 3 }
  - name: open
    prefix: /public
    service: reports
    anonymous: true
    requestsPerMinute: { anonymous: 2 }
  - name: guestbook
    prefix: /guestbook
    service: reports
    anonymous: true
    writeScopes: [guestbook:write]
  - name: slow
    prefix: /slow
    service: reports
    timeoutSeconds: 0.5
  - name: slower
    prefix: /slower
    service: reports
  - name: catalogue
    prefix: /catalogue
    service: registry
    upstreamPrefix: /api/v1/services
    anonymous: true
  - name: site
    prefix: /site
    service: site
    upstreamPrefix: /api/v1
    anonymous: true
`;
/** The file is checked every two seconds; the machine may stand still. */
const PATIENCE = { timeout: 30_000, interval: 200 };

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let reports: Backend;
let directory: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('routes');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  reports = stack.use(
    await startBackend((request, response) => {
      if (request.url !== '/slow') response.end(request.url);
    }),
  );
  await registry.call('POST', '/services/register', { service_name: 'reports', service_url: reports.url });
  directory = await mkdtemp(join(inject('temporaryDirectory'), 'routes-'));
  await project('1', ROUTES);
  await symlink(join('..data', 'routes.yaml'), file());
  gateway = stack.use(await start(file()));
  const probe = await clientWith('probe', []);
  const isKnown = async () => (await call('/slower', probe)).status === 200;
  await waitUntil('the gateway has heard of the service', isKnown, { timeoutMs: 30_000 });
});

afterAll(() => stack.disposeAsync());

const file = (): string => join(directory, 'routes.yaml');

function start(routesFile: string): Promise<RunningService> {
  return startGateway({ namespace, registry: registry.url, settings: { ROLLCALL_ROUTES_FILE: routesFile } });
}

/**
 * Puts a version of the file there as the kubelet does with a ConfigMap: all at once, by another
 * target of a link.
 */
async function project(version: string, text: string): Promise<void> {
  await mkdir(join(directory, `..${version}`));
  await writeFile(join(directory, `..${version}`, 'routes.yaml'), text);
  await symlink(`..${version}`, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
}

async function clientWith(id: string, scopes: readonly string[]): Promise<string> {
  const client: TestClient = await createClient(namespace, { id, scopes });
  return tokenOf(gateway, client);
}

async function call(path: string, token?: string, method = 'GET') {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(`${gateway.url}${path}`, { method, headers });
  const text = await answer.text();
  const code = answer.headers.get('content-type')?.startsWith('application/json') === true ? codeOf(text) : undefined;
  return { status: answer.status, headers: answer.headers, text, code };
}

function codeOf(text: string): string | undefined {
  const { error } = JSON.parse(text) as { error?: { code: string } };
  return error?.code;
}

describe('a route of the file', () => {
  test('that is open to all is so for what needs no scope, and no further', async () => {
    const reader = await clientWith('reader', []);
    const writer = await clientWith('writer', ['guestbook:write']);
    const before = reports.requests.length;
    expect(await call('/guestbook', undefined, 'POST')).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
    expect(await call('/guestbook', reader, 'POST')).toMatchObject({ status: 403, code: 'INSUFFICIENT_SCOPE' });
    expect(reports.requests.length).toBe(before);
    expect(await call('/guestbook', undefined)).toMatchObject({ status: 200 });
    expect(await call('/guestbook', writer, 'POST')).toMatchObject({ status: 200 });
  });

  test('that leads to the registry opens nothing that needs a scope there', async () => {
    const reader = await clientWith('browser', ['registrations:read']);
    expect(await call('/catalogue')).toMatchObject({ status: 401, code: 'UNAUTHENTICATED' });
    expect(await call('/catalogue', await clientWith('nobody', []))).toMatchObject({ status: 403 });
    expect(await call('/catalogue/reports', reader)).toMatchObject({ status: 200 });
    expect(await call('/catalogue/reports', reader, 'DELETE')).toMatchObject({ status: 403 });
  });

  test('needs the scopes that it asks for, however its path is written', async () => {
    const without = await clientWith('without', ['reports:write']);
    const before = reports.requests.length;
    for (const path of ['/api/v1/reports', '/api/v1/%72eports/7', '/%61pi/v1/report%73/7']) {
      const refused = await call(path, without);
      expect({ path, status: refused.status, code: refused.code }).toEqual({
        path,
        status: 403,
        code: 'INSUFFICIENT_SCOPE',
      });
      expect(refused.headers.get('www-authenticate')).toContain('scope="reports:read"');
    }
    expect(reports.requests.length).toBe(before);
  });

  test('accepts the methods that it names, and has a limit of its own', async () => {
    const token = await clientWith('reporter', ['reports:read', 'registrations:read']);
    const refused = await call('/api/v1/reports/7', token, 'DELETE');
    expect(refused).toMatchObject({ status: 405, code: 'METHOD_NOT_ALLOWED' });
    expect(refused.headers.get('allow')).toBe('GET, HEAD');
    // None that the gateway passes on.
    expect(await call('/api/v1/reports/7', token, 'PROPFIND')).toMatchObject({ status: 405 });
    const answers = [];
    for (let count = 0; count < 4; count += 1) answers.push(await call('/api/v1/reports/7?a=b', token));
    // What was refused was counted, too.
    expect(answers.map(({ status }) => status)).toEqual([200, 429, 429, 429]);
    expect(answers[0]?.text).toBe('/internal/7?a=b');
    expect(answers[0]?.headers.get('ratelimit-policy')).toContain('"premium-reports";q=3');
    expect(answers[2]?.headers.get('x-ratelimit-limit')).toBe('3');
    const elsewhere = await call('/api/v1/registry/services', token);
    expect([elsewhere.status, elsewhere.headers.get('x-ratelimit-limit')]).toEqual([200, '1000']);
  });

  test('lets those without a token in where it says so, by address and no more than it says', async () => {
    expect((await call('/public/a', 'not-a-token')).status).toBe(401);
    const answers = [];
    for (let count = 0; count < 3; count += 1) answers.push(await call('/public/a'));
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 429]);
    const headers = reports.requests.at(-1)?.headers;
    expect(headers).not.toHaveProperty('x-rollcall-subject');
    expect(headers).toMatchObject({ 'x-rollcall-service': 'reports' });
    // Elsewhere nobody gets in.
    expect((await call('/publica')).status).toBe(401);
    expect((await call('/api/v1/reports/7')).status).toBe(401);
  });

  test('that is open to all does not open the registry, when its URL is registered under the name of the route', async () => {
    const registration = { service_name: 'site', service_url: registry.url };
    expect(await registry.call('POST', '/services/register', registration)).toMatchObject({ status: 200 });
    await expect.poll(async () => (await call('/site/services')).code, PATIENCE).not.toBe('SERVICE_NOT_FOUND');
    for (const path of ['/services', '/webhooks/config', '/health']) {
      expect({ path, ...(await call(`/site${path}`)) }).toMatchObject({ path, status: 403 });
    }
    const writing = await fetch(`${gateway.url}/site/webhooks/config`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-rollcall-service': 'registry' },
      body: JSON.stringify({ service_name: 'reports', endpoints: {} }),
    });
    expect(await writing.json()).toMatchObject({ error: 'Forbidden' });
  });

  test('has a timeout of its own', async () => {
    const token = await clientWith('patient', []);
    expect(await call('/slow', token)).toMatchObject({ status: 504, code: 'UPSTREAM_TIMEOUT' });
  });
});

const route = (name: string): string => `routes: [{name: ${name}, prefix: /${name}, service: reports}]`;

async function complaints(): Promise<number> {
  const log = await readFile(gateway.logFile, 'utf8');
  return log.split('routes not read, the old ones stay').length - 1;
}

test('a file that changes is in force without a restart; a broken one is reported, and changes nothing', async () => {
  const token = await clientWith('follower', ['reports:read']);
  const statuses = async () => [(await call('/one', token)).status, (await call('/two', token)).status];
  await project('2', route('one'));
  await expect.poll(statuses, PATIENCE).toEqual([200, 404]);
  // The old rules are gone with the old file.
  expect((await call('/slow', token)).status).toBe(404);
  expect((await call('/api/v1/reports/7', token)).text).toBe('/api/v1/7');

  for (const [index, broken] of ['routes: [', 'routes: [{name: two, prefix: /two}]', ''].entries()) {
    await project(`broken-${index}`, broken);
    await expect.poll(complaints, PATIENCE).toBe(index + 1);
    expect(await statuses()).toEqual([200, 404]);
  }
  await project('3', route('two'));
  await expect.poll(statuses, PATIENCE).toEqual([404, 200]);
  // Written over in place, as no kubelet does it and people do.
  await writeFile(join(directory, '..3', 'routes.yaml'), route('one'));
  await expect.poll(statuses, PATIENCE).toEqual([200, 404]);
}, 200_000);

test('a gateway does not start with a broken file, and says what is wrong with it', async () => {
  const broken = join(directory, 'broken.yaml');
  await writeFile(broken, 'routes: [{name: a, prefix: nowhere, service: s}]');
  await expect(start(broken)).rejects.toThrow(/The routes are not valid: prefix of the route a must begin with \//);
});
