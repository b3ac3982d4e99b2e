import { readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { createNamespace, type TestNamespace } from '../support/kube.ts';
import { createDatabase } from '../support/postgres.ts';
import { startRegistry } from '../support/registry.ts';
import type { RunningService } from '../support/replica.ts';
import { type Backend, createClient, startBackend, startGateway, tokenOf } from './gateway.ts';

const PAGE = 'https://app.example.com';

let namespace: TestNamespace;
let registry: RunningService;
let gateway: RunningService;
let shop: Backend;
let token: string;
const stack = new AsyncDisposableStack();

beforeAll(async () => {
  namespace = await createNamespace('heads');
  const database = stack.use(await createDatabase());
  registry = stack.use(await startRegistry({ namespace: namespace.name, databaseUrl: database.url }));
  shop = stack.use(await startBackend());
  await registry.call('POST', '/services/register', { service_name: 'shop', service_url: shop.url });
  const settings = { ROLLCALL_CORS_ORIGINS: PAGE, ROLLCALL_LIMIT_PREMIUM: '10000' };
  gateway = stack.use(await startGateway({ namespace, registry: registry.url, settings }));
  token = await tokenOf(gateway, await createClient(namespace, { id: 'heads' }));
  await vi.waitFor(async () => {
    const { status } = await fetch(`${gateway.url}/api/v1/shop/x`, { headers: { authorization: `Bearer ${token}` } });
    if (status !== 200) throw new Error(`The gateway answers ${status}`);
  }, 30_000);
});

afterAll(() => stack.disposeAsync());

interface Sent {
  readonly line: string;
  /** Besides Host, Connection, Origin and the token. */
  readonly fields?: readonly string[];
  readonly body?: string;
  readonly bearer?: string;
}

/** Sends bytes to a server and returns all that comes back until it closes. */
function send(to: RunningService, { line, fields = [], body = '', bearer = token }: Sent): Promise<string> {
  const socket = connect({ port: Number(new URL(to.url).port), host: '127.0.0.1' });
  const head = [
    `${line} HTTP/1.1`,
    'host: a',
    'connection: close',
    `origin: ${PAGE}`,
    `authorization: Bearer ${bearer}`,
  ];
  socket.write(`${[...head, ...fields].join('\r\n')}\r\n\r\n${body}`, 'latin1');
  return text(socket);
}

describe('the gateway', () => {
  test.each([
    ['a path that is no UTF-8', 'GET /api/v1/shop/%FF', [], 'INVALID_PATH'],
    ['a path with half an encoding', 'GET /api/v1/shop/%2', [], 'INVALID_PATH'],
    ['a service that is no UTF-8', 'GET /api/v1/%c3%28/x', [], 'INVALID_PATH'],
    ['the same at a route of its own', 'GET /api/metrics/%FF', [], 'INVALID_PATH'],
    ['two hosts', 'GET /api/v1/shop/x', ['host: b'], 'INVALID_REQUEST'],
    ['two tokens', 'GET /api/v1/shop/x', ['authorization: Bearer other'], 'INVALID_REQUEST'],
    ['two hosts at a route of its own', 'GET /api/metrics', ['host: b'], 'INVALID_REQUEST'],
    ['an expectation', 'GET /api/v1/shop/x', ['expect: wonders'], 'EXPECTATION_FAILED'],
  ])('refuses %s with an id, a line in the log, and so that pages may read it', async (...[, line, fields, code]) => {
    const id = crypto.randomUUID();
    const before = shop.requests.length;
    const answer = await send(gateway, { line, fields: [...fields, `x-request-id: ${id}`] });
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    expect(head).toContain(`\r\nx-request-id: ${id}`);
    expect(head).toContain(`\r\naccess-control-allow-origin: ${PAGE}`);
    expect(JSON.parse(body)).toMatchObject({ error: { code, message: expect.any(String) } });
    expect(shop.requests.length).toBe(before);
    await vi.waitFor(
      async () => {
        const lines = (await readFile(gateway.logFile, 'utf8')).split('\n').filter((each) => each.includes(id));
        expect(lines.length).toBe(1);
        expect(JSON.parse(lines[0] ?? '')).toMatchObject({ reqId: id, method: 'GET', result: expect.any(Number) });
        expect(JSON.parse(lines[0] ?? '').path).toBe(line.split(' ')[1]);
      },
      { timeout: 30_000 },
    );
  });

  test('passes on a query that only the service can read', async () => {
    const answer = await send(gateway, { line: 'GET /api/v1/shop/x?q=%e9&r=100%' });
    expect(answer).toMatch(/^HTTP\/1.1 200 /);
    expect(shop.requests.at(-1)?.url).toBe('/api/v1/x?q=%e9&r=100%');
  });

  test.each(['host: b', 'authorization: Bearer other'])('refuses an upgrade with a second %s', async (field) => {
    const fields = [
      field,
      'upgrade: websocket',
      'sec-websocket-version: 13',
      'sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==',
    ];
    const answer = await send(gateway, { line: 'GET /api/ws', fields: [...fields, 'connection: upgrade'] });
    expect(answer).toMatch(/^HTTP\/1.1 400 [^]*INVALID_REQUEST/);
  });

  test('refuses a form that is no UTF-8', async () => {
    for (const body of ['grant_type=client_credentials&client_id=a\xff', 'client_id=%ff&client_secret=b']) {
      const fields = [`content-length: ${body.length}`, 'content-type: application/x-www-form-urlencoded'];
      expect(await send(gateway, { line: 'POST /api/v1/auth/token', fields, body })).toMatch(/^HTTP\/1.1 400 /);
    }
  });
});

/** Fields that are of the connection, not of the answer. */
const OF_CONNECTION = new Set(['transfer-encoding', 'connection', 'keep-alive']);
const json = 'content-type: application/json';

describe('100 Continue', () => {
  test.each([
    ['a token', { line: 'POST /api/v1/shop/x', bearer: 'guessed' }, 401],
    ['a service that is unknown', { line: 'POST /api/v1/nobody/x' }, 404],
    ['a length', { line: 'POST /api/v1/shop/x', fields: ['content-length: 999999999'] }, 413],
    ['a method', { line: 'POST /api/metrics' }, 405],
    ['a content type', { line: 'POST /api/v1/auth/token', fields: [json] }, 415],
  ])('does not come before a refusal by %s at the gateway', async (_what, sent, status) => {
    const fields: readonly string[] = 'fields' in sent ? sent.fields : [];
    const length = fields.some((each) => each.startsWith('content-length')) ? [] : ['content-length: 2000000'];
    const answer = await send(gateway, { ...sent, fields: ['expect: 100-continue', ...fields, ...length] });
    expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test.each([
    ['a path', { line: 'POST /api/v1/nothing', fields: [json] }, 404],
    ['a method', { line: 'PATCH /api/v1/services/register', fields: [json] }, 405],
    ['a content type', { line: 'POST /api/v1/services/register', fields: ['content-type: text/csv'] }, 415],
    [
      'a content type where bodies are signed',
      { line: 'POST /api/v1/webhooks/deploy', fields: ['content-type: a/b'] },
      415,
    ],
    ['two hosts', { line: 'POST /api/v1/services/register', fields: [json, 'host: b'] }, 400],
  ])('does not come before a refusal by %s at the registry', async (_what, sent, status) => {
    const fields = ['expect: 100-continue', 'content-length: 100', ...sent.fields];
    expect(await send(registry, { ...sent, fields })).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  });

  test('comes where the body is wanted, at both', async () => {
    const fields = ['expect: 100-continue', 'content-length: 2', json];
    const through = await send(gateway, { line: 'POST /api/v1/shop/x', fields, body: '{}' });
    expect(through).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 200 [^]*"body":"\{\}"/);
    const at = await send(registry, { line: 'POST /api/v1/services/register', fields, body: '{}' });
    expect(at).toMatch(/^HTTP\/1.1 100 Continue\r\n\r\nHTTP\/1.1 400 /);
  });

  test('does not come where the service cannot be reached', async () => {
    const service = { service_name: 'gone', service_url: 'http://127.0.0.1:9' };
    expect((await registry.call('POST', '/services/register', service)).status).toBe(200);
    await vi.waitFor(
      async () => {
        const fields = ['expect: 100-continue', 'content-length: 2', json];
        const answer = await send(gateway, { line: 'POST /api/v1/gone/x', fields });
        expect(answer).toMatch(/^HTTP\/1.1 50[23] [^]*UPSTREAM_/);
      },
      { timeout: 30_000 },
    );
  });
});

function fieldsOf({ headers }: Response): string[] {
  return [...headers.keys()].filter((each) => !OF_CONNECTION.has(each)).sort();
}

test.each([
  ['registry', ['/api/v1/docs', '/api/v1/openapi.json', '/api/v1/health', '/api/v1/services']],
  ['gateway', ['/api/health', '/.well-known/jwks.json', '/api/docs', '/api/openapi.json']],
])('GET / of the %s says where to go, without a token', async (service, paths) => {
  const { url } = service === 'registry' ? registry : gateway;
  const answer = await fetch(`${url}/`);
  expect(answer.status).toBe(200);
  const entry = (await answer.json()) as Record<string, string>;
  expect(entry['service']).toBe(service);
  for (const path of paths) {
    expect(Object.values(entry)).toContain(path);
    expect((await fetch(`${url}${path}`)).status).toBe(200);
  }
});

test.each(['/services/watch', '/jobs/watch', '/jobs/:job_id/events'])(
  'HEAD of the stream %s is the head of GET',
  async (stream) => {
    const release = { service_name: 'headed', version: '1', artifact_url: 'headed:1' };
    const { body } = await registry.call('POST', '/webhooks/deploy', release);
    const path = stream.replace(':job_id', String(body?.['job_id']));
    const head = await fetch(`${registry.url}/api/v1${path}`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-type'), await head.text()]).toEqual([
      200,
      'text/event-stream; charset=utf-8',
      '',
    ]);
    const got = await fetch(`${registry.url}/api/v1${path}`);
    expect(fieldsOf(head)).toEqual(fieldsOf(got));
    await got.body?.cancel();
  },
);
