import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';

interface Schema {
  readonly $ref?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
}
interface Operation {
  readonly parameters?: readonly { readonly name: string; readonly schema: Schema }[];
  readonly requestBody?: {
    readonly required: boolean;
    readonly content: { readonly 'application/json': { readonly schema: Schema } };
  };
  readonly responses: Readonly<Record<string, { readonly content?: object; readonly headers?: object }>>;
}

const stack = new AsyncDisposableStack();
let registry: RunningService;
let paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
let schemas: Readonly<Record<string, Schema>>;

beforeAll(async () => {
  const namespace = await createNamespace('openapi-document');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  const { body } = await registry.call('GET', '/openapi.json');
  ({
    paths,
    components: { schemas },
  } = body as unknown as { paths: typeof paths; components: { schemas: typeof schemas } });
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: 'http://shop' });
});

afterAll(() => stack.disposeAsync());

function operation(name: string): Operation {
  const [method = '', path = ''] = name.split(' ');
  const found = paths[path]?.[method.toLowerCase()];
  if (found === undefined) throw new Error(`${name} is not described`);
  return found;
}

/** Whether the document has a text for valid. @param at a parameter, or a member of the body. */
function isValid(name: string, at: string, text: string): boolean {
  const { parameters = [], requestBody } = operation(name);
  const parameter = parameters.find((each) => each.name === at)?.schema;
  const schema = parameter ?? requestBody?.content['application/json'].schema.properties?.[at];
  if (schema === undefined) throw new Error(`${name} has no ${at}`);
  const { $ref } = schema;
  const {
    minLength = 0,
    maxLength = Number.POSITIVE_INFINITY,
    pattern = '',
  } = $ref === undefined ? schema : (schemas[$ref.split('/').at(-1) ?? ''] ?? {});
  if (pattern === '') throw new Error(`${at} of ${name} has no pattern`);
  const { length } = Array.from(text);
  return length >= minLength && length <= maxLength && new RegExp(pattern, 'u').test(text);
}

const NAMES = [
  'shop',
  'größe-日本',
  '😀'.repeat(253),
  'x'.repeat(254),
  '',
  '.',
  '..',
  '..;x',
  '*',
  'a:b',
  'a b',
  'a\u00a0b',
  'a/b',
  'a\\b',
  'a\ufffd',
  '\ufeff',
  '...',
  '%2e',
];
const URLS = [
  'http://a',
  'HTTPS://a.b:65535/c',
  'http://a:65536',
  'http://a:080',
  'http://1.2.3.4',
  'http://1.2.3',
  'http://[::1]',
  'http://[::1',
  'http://é',
  'http://a?b',
  'http://a#',
  'http://u@a',
  '',
  'a',
  `http://a/${'😀'.repeat(2039)}`,
  `http://a/${'x'.repeat(2040)}`,
];
const PATHS = [
  '/',
  '/a.b/...',
  '//',
  '//x',
  '/a//b/',
  '/a\\b',
  '/\\x',
  '/a#b',
  '/a b',
  '/a\0',
  '/a\n',
  '/é',
  'http://a/b',
  '/%41?',
  '/.',
  '/a/..',
  '/%2e%2E/b',
  '/.%2fb',
  '/%4',
  'a',
  '',
  `/${'x'.repeat(256)}`,
];
const VERSIONS = ['1.2.3', '😀'.repeat(128), 'x'.repeat(129), '', '.', '..', '...', 'a/b', 'a b', 'a\u2028'];
const WORDS = ['ok', 'zwei Worte', '😀'.repeat(64), 'x'.repeat(65), '', 'a\nb', 'a\u202eb', 'a\u2069'];
const CHANNELS = ['slack', '😀'.repeat(64), 'x'.repeat(65), '', 'a b'];
const LIMITS = ['1', '1000', '1001', '0', '01', '', '1.0', '-1', '1e2'];

const artifact = { artifact_url: 'shop:1', version: '1' };

describe('is refused with 400 exactly where the document says that it is not valid', () => {
  test.each([
    ['POST /services/register', 'service_name', NAMES, { service_url: 'http://a' }],
    ['POST /services/register', 'service_url', URLS, { service_name: 'a' }],
    ['POST /services/register', 'graphql_path', PATHS, { service_name: 'a', service_url: 'http://a' }],
    ['POST /webhooks/health', 'status', WORDS, { service_name: 'shop' }],
    ['POST /webhooks/lifecycle', 'event', WORDS, { service_name: 'shop' }],
    ['POST /webhooks/update', 'version', VERSIONS, { service_name: 'shop', ...artifact }],
    ['POST /webhooks/rollback', 'version', VERSIONS, { service_name: 'shop' }],
    ['POST /webhooks/deploy', 'service_name', NAMES, artifact],
    ['POST /webhooks/check-updates', 'service_name', NAMES, {}],
    ['POST /webhooks/notify', 'channel', CHANNELS, { service_name: 'shop', message: 'x' }],
    [
      'POST /webhooks/notify',
      'message',
      ['x', '', 'a\0', '€'.repeat(16_384), 'x'.repeat(16_385)],
      { service_name: 'shop', channel: 'none' },
    ],
  ])('%s: %s', async (...[name, at, texts, rest]) => {
    const [method = '', path = ''] = name.split(' ');
    for (const text of texts) {
      const { status, body } = await registry.call(method, path, { ...rest, [at]: text });
      expect([text, status !== 400, body]).toEqual([text, isValid(name, at, text), body]);
    }
  });

  test.each([
    '/updates/history',
    '/updates/history/{service_name}',
    '/updates/history/{service_name}/export/{format}',
    '/jobs',
    '/webhooks/deliveries',
  ])('GET %s: limit', async (template) => {
    const path = template.replace('{service_name}', 'shop').replace('{format}', 'csv');
    for (const text of LIMITS) {
      const { status } = await registry.call('GET', `${path}?limit=${text}`);
      expect([text, status]).toEqual([text, isValid(`GET ${template}`, 'limit', text) ? 200 : 400]);
    }
  });

  test.each(['DELETE /services/{service_name}', 'GET /updates/history/{service_name}'])(
    '%s: the name in the path',
    async (name) => {
      const [method = '', path = ''] = name.split(' ');
      // URL libraries fold dots, and no name is another path.
      for (const text of NAMES.filter((each) => !['', '.', '..', 'shop'].includes(each))) {
        const { status } = await registry.call(method, `${path.replace(/[^/]*$/, '')}${encodeURIComponent(text)}`);
        expect([text, status !== 400]).toEqual([text, isValid(name, 'service_name', text)]);
      }
    },
  );
});

describe('answers are of the types that the document names', () => {
  test.each([
    ['GET /updates/history/{service_name}/export/{format}', '/updates/history/shop/export/csv', 'text/csv'],
    ['GET /updates/history/{service_name}/export/{format}', '/updates/history/shop/export/json', 'application/json'],
    ['GET /services/watch', '/services/watch', 'text/event-stream'],
    ['GET /jobs/watch', '/jobs/watch', 'text/event-stream'],
    ['GET /jobs', '/jobs', 'application/json'],
    ['GET /services', '/services', 'application/json'],
  ])('%s', async (name, path, type) => {
    const answer = await fetch(`${registry.url}/api/v1${path}`);
    expect(answer.headers.get('content-type')?.split(';')[0]).toBe(type);
    expect(Object.keys(operation(name).responses['200']?.content ?? {})).toContain(type);
    await answer.body?.cancel();
  });

  test.each([
    ['GET /services', '/services'],
    ['GET /services/{service_name}', '/services/shop'],
    ['GET /jobs', '/jobs'],
  ])('%s has an ETag, and 304 for who has it', async (name, path) => {
    const url = `${registry.url}/api/v1${path}`;
    const etag = (await fetch(url)).headers.get('etag') ?? '';
    const { responses, parameters = [] } = operation(name);
    for (const status of ['200', '304']) expect(Object.keys(responses[status]?.headers ?? {})).toContain('ETag');
    expect(parameters.map((each) => each.name)).toContain('if-none-match');
    expect((await fetch(url, { headers: { 'if-none-match': etag } })).status).toBe(304);
  });
});

test('every operation names what any server refuses, what its body may be refused for, and may leave the body out or not', () => {
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, { responses, requestBody }] of Object.entries(methods)) {
      const named = Object.keys(responses);
      expect(named).toEqual(expect.arrayContaining(['200', '400', '405', '408', '431', '500', '503']));
      expect(named).toEqual(expect.arrayContaining(path === '/health' ? [] : ['401', '403']));
      expect(named).toEqual(expect.arrayContaining(method === 'get' ? [] : ['413', '415']));
      for (const status of named.filter((each) => Number(each) >= 400 && path !== '/health')) {
        expect(responses[status]?.content).toEqual({
          'application/json': { schema: { $ref: '#/components/schemas/Error' } },
        });
      }
      expect(requestBody?.required ?? true).toBe(!/(promote|abort|replay)$/.test(path));
    }
  }
  expect(operation('GET /jobs/{job_id}/events').responses).toMatchObject({
    200: { content: { 'text/event-stream': {} } },
    404: {},
    429: {},
  });
  expect(operation('POST /webhooks/deploy').responses).toMatchObject({
    401: { headers: { 'WWW-Authenticate': {} } },
    409: {},
    507: {},
  });
});
