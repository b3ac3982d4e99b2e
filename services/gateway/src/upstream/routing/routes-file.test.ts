import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { expect, onTestFinished, test } from 'vitest';
import { createRouteTable, parseRoutes } from './routes-file.ts';

test('a file of routes', () => {
  const text = `
routes:
  - name: reports
    prefix: /api/v1/reports/
    service: reporting
    upstreamPrefix: /v2
    scopes: [reports:read]
    writeScopes: [reports:write]
    methods: [GET]
    requestsPerMinute: { free: 2 }
    timeoutSeconds: 1.5
  - name: open
    prefix: /public
    service: site
    anonymous: true
`;
  expect(parseRoutes(text)).toEqual([
    {
      prefix: '/api/v1/reports',
      service: 'reporting',
      upstreamPrefix: '/v2',
      scopes: ['reports:read'],
      writeScopes: ['reports:write'],
      methods: ['GET'],
      anonymous: false,
      limits: { route: 'reports', limits: { free: { requests: 2, windowMs: 60_000 } } },
      timeoutMs: 1500,
    },
    expect.objectContaining({
      prefix: '/public',
      upstreamPrefix: '/public',
      anonymous: true,
      scopes: [],
      limits: undefined,
    }),
  ]);
});

test.each([
  { name: 'what is no YAML', text: 'routes: [', says: /./ },
  { name: 'no routes', text: '{}', says: /not valid/ },
  { name: 'an unknown field', text: 'routes: [{name: a, prefix: /a, service: s, scope: x}]', says: /not valid/ },
  ...['', 'a b', 'a"b', 'a\\\\b', 'größe'].flatMap((scope) => [
    {
      name: `the scope "${scope}"`,
      text: routeWith(`scopes: [ok, ${JSON.stringify(scope)}]`),
      says: /a scope of the route a is/,
    },
    {
      name: `"${scope}" for writing`,
      text: routeWith(`writeScopes: [${JSON.stringify(scope)}]`),
      says: /a scope of the route a is/,
    },
  ]),
  ...['v2', '/v2?x=1', '/v2#x', '/v2/../admin', '/v2//x', '/v2/%2e%2e/x', '/v2%2fx', '/a b', '/größe', '/%zz'].flatMap(
    (path) => [
      {
        name: `the upstreamPrefix ${path}`,
        text: routeWith(`upstreamPrefix: "${path}"`),
        says: /upstreamPrefix of the route a/,
      },
      {
        name: `the prefix ${path}`,
        text: `routes: [{name: a, prefix: "${path}", service: s}]`,
        says: /prefix of the route a/,
      },
    ],
  ),
  ...['', '..', 'a/b', 'a:b', 'a b'].map((service) => ({
    name: `the service "${service}"`,
    text: `routes: [{name: a, prefix: /a, service: "${service}"}]`,
    says: /service of the route a must/,
  })),
  ...['get', 'CONNECT', 'FETCH'].map((method) => ({
    name: `the method ${method}`,
    text: routeWith(`methods: [GET, ${method}]`),
    says: /a method of the route a is/,
  })),
  { name: 'scopes that are no list', text: routeWith('scopes: a b'), says: /\/routes\/0\/scopes/ },
  {
    name: 'an upstreamPrefix that is no text',
    text: routeWith('upstreamPrefix: 5'),
    says: /\/routes\/0\/upstreamPrefix/,
  },
  { name: 'a prefix with a query', text: 'routes: [{name: a, prefix: "/a?b", service: s}]', says: /prefix/ },
  {
    name: 'a name twice',
    text: 'routes: [{name: a, prefix: /a, service: s}, {name: a, prefix: /b, service: s}]',
    says: /two have the name a/,
  },
])('refuses $name', ({ text, says }) => {
  expect(() => parseRoutes(text)).toThrow(says);
});

function routeWith(setting: string): string {
  return `routes: [{name: a, prefix: /a, service: s, ${setting}}]`;
}

test.each(['""', '/', '/v2/', '/v2/%20'])('the upstreamPrefix %s is accepted', (prefix) => {
  expect(parseRoutes(routeWith(`upstreamPrefix: ${prefix}`))).toHaveLength(1);
});

function routeTo(service: string): string {
  return `routes: [{name: a, prefix: /a, service: ${service}}]`;
}

/**
 * Puts a version of the file into a directory as the kubelet does with a ConfigMap: all at once, by
 * another target of a link.
 */
async function project(directory: string, version: string, text: string): Promise<void> {
  await mkdir(join(directory, version));
  await writeFile(join(directory, version, 'routes.yaml'), text);
  await symlink(version, join(directory, '..data_tmp'));
  await rename(join(directory, '..data_tmp'), join(directory, '..data'));
}

test('another version of a mounted ConfigMap is in force soon, and a faulty one never', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'routes-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  await project(directory, '..1', routeTo('first'));
  const file = join(directory, 'routes.yaml');
  await symlink(join('..data', 'routes.yaml'), file);
  let logged = '';
  const table = createRouteTable(file, createLogger('test', 'error', { write: (line) => void (logged += line) }));
  await table.actor.start();
  onTestFinished(() => table.actor.stop());
  const service = () => table.route('/a')?.service;
  expect(service()).toBe('first');
  const patience = { timeout: 30_000 };
  await project(directory, '..2', routeTo('second'));
  await expect.poll(service, patience).toBe('second');
  await project(directory, '..3', 'routes: [');
  await expect.poll(() => logged, patience).toContain('routes not read, the old ones stay');
  expect(service()).toBe('second');
  await project(directory, '..4', routeTo('fourth'));
  await expect.poll(service, patience).toBe('fourth');
}, 100_000);
