import { Registry } from 'prom-client';
import { Type } from 'typebox';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { HttpError } from './errors.ts';
import { type App, createServer } from './server.ts';

class TooFarError extends Error {}

const metrics = new Registry();
let app: App;
let isStopping = false;

beforeAll(() => {
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics,
    bodyLimit: 300_000,
    closingLimitMs: 1000,
    isStopping: () => isStopping,
    mapError: (error) =>
      error instanceof TooFarError
        ? new HttpError(409, 'Out of range', { message: error.message, headers: { 'retry-after': '1' } })
        : undefined,
  });
  const body = Type.Object({ name: Type.String(), count: Type.Optional(Type.Integer()) });
  app.post('/things', { schema: { body } }, (request) => ({ body: request.body, polluted: 'polluted' in {} }));
  app.get('/things/:name', (request) => request.params);
  app.options('/asked', () => '');
  app.post('/beats', () => 'taken');
  app.register(async (scope) => void scope.get('/', () => ''), { prefix: '/prefix' });
  app.get('/range', () => {
    throw new TooFarError('too far');
  });
  app.get('/fault', () => {
    throw new TypeError('password=hunter2');
  });
  app.get('/rejection', () => Promise.reject('a text'));
});

afterAll(() => app.close());

function post(payload: string | Buffer, contentType = 'application/json') {
  return app.inject({ method: 'POST', url: '/things', headers: { 'content-type': contentType }, payload });
}

test.each(['application/json', 'application/x-www-form-urlencoded'])(
  'a request that needs no body may have an empty one, also of type %s',
  async (contentType) => {
    const answer = await app.inject({
      method: 'POST',
      url: '/beats',
      headers: { 'content-type': contentType, 'content-length': '0' },
    });
    expect([answer.statusCode, answer.body]).toEqual([200, 'taken']);
  },
);

test('an answer closes its connection once the process is about to end, and not before', async () => {
  expect((await app.inject('/things/a')).headers.connection).toBe('keep-alive');
  isStopping = true;
  try {
    expect((await app.inject('/things/a')).headers.connection).toBe('close');
  } finally {
    isStopping = false;
  }
});

function put(payload: string, contentType: string) {
  return app.inject({ method: 'PUT', url: '/things', headers: { 'content-type': contentType }, payload });
}

const deep = `${'{"a":'.repeat(40_000)}1${'}'.repeat(40_000)}`;

test.each([
  ['{"name": ', 'The body must be JSON'],
  ['{"name": "a", "__proto__": {}}', 'have no member __proto__'],
])('what is wrong with the body %j is said', async (payload, message) => {
  expect((await post(payload)).json()).toEqual({ error: 'Invalid request', message: expect.stringContaining(message) });
});

test('the type of a body that is not taken is named', async () => {
  const answer = await post('name=a', 'application/x-www-form-urlencoded');
  expect(answer.json()).toMatchObject({ message: expect.stringContaining('is application/x-www-form-urlencoded;') });
});

test.each([
  ['no JSON', 400, () => post('{"name": ')],
  ['nothing at all', 400, () => post('')],
  ['JSON of another shape', 400, () => post('[]')],
  ['null', 400, () => post('null')],
  ['a wrong type, which is not converted', 400, () => post('{"name": "a", "count": "1"}')],
  ['a name that could change every object', 400, () => post('{"name": "a", "__proto__": {"polluted": true}}')],
  ['the same deep inside', 400, () => post('{"name": "a", "x": {"constructor": {"prototype": {"polluted": true}}}}')],
  ['nesting without end', 400, () => post(deep)],
  ['bytes that are no UTF-8', 400, () => post(Buffer.from('{"name": "a\xff"}', 'latin1'))],
  ['UTF-16', 400, () => post(Buffer.from('\uFEFF{"name": "a"}', 'utf16le'))],
  ['UTF-8 that is cut', 400, () => post(Buffer.from('{"name": "\u00e9"}').subarray(0, 11))],
  ['an encoded surrogate', 400, () => post(Buffer.from('{"name": "\xed\xa0\x80"}', 'latin1'))],
  ['half a pair of UTF-16', 400, () => post('{"name": "\\ud800"}')],
  ['the same deep inside', 400, () => post('{"name": "a", "x": [{"y": "\\uDC00\\ud800"}]}')],
  ['a member named so', 400, () => post('{"name": "a", "\\udfff": 1}')],
  ['another content type', 415, () => post('name=a', 'application/x-www-form-urlencoded')],
  ['a content type that is none', 415, () => post('{"name": "a"}', 'json')],
  ['a charset that is not UTF-8', 415, () => post('{"name": "a"}', 'application/json; charset="ISO-8859-1"')],
  ['a charset of JSON in UTF-16', 415, () => post('{"name": "a"}', 'application/json;charset=utf-16')],
  ['too many bytes', 413, () => post(JSON.stringify({ name: 'x'.repeat(300_000) }))],
  ['an unknown path', 404, () => app.inject('/nothing?secret=hunter2')],
  ['a path that cannot be decoded', 400, () => app.inject('/things/%zz')],
  ['a wrong method', 405, () => app.inject({ method: 'DELETE', url: '/things' })],
  ['a wrong method with a body of another type', 405, () => put('name=a', 'application/x-www-form-urlencoded')],
  ['a method that hardly anybody knows', 405, () => app.inject({ method: 'PROPFIND' as 'GET', url: '/things/a' })],
  ['an error of the domain', 409, () => app.inject('/range')],
  ['a fault of ours', 500, () => app.inject('/fault')],
  ['a rejection with what is no error', 500, () => app.inject('/rejection')],
])('%s is answered with %i in the shape of the contract', async (_what, status, send) => {
  const answer = await send();
  expect(answer.statusCode).toBe(status);
  expect(answer.headers['content-type']).toMatch(/^application\/json/);
  expect(answer.json()).toEqual({ error: expect.any(String), message: expect.any(String) });
  expect(answer.body).not.toContain('hunter2');
  expect('polluted' in {}).toBe(false);
});

test.each([
  ['/things', 'GET', 'OPTIONS, POST'],
  ['/things/a?b=c', 'POST', 'GET, HEAD, OPTIONS'],
  ['/things/a', 'DELETE', 'GET, HEAD, OPTIONS'],
  ['/prefix', 'DELETE', 'GET, HEAD, OPTIONS'],
  ['/prefix/', 'DELETE', 'GET, HEAD, OPTIONS'],
] as const)('what %s can be called with is told to who uses %s, and to OPTIONS', async (url, method, allowed) => {
  const refused = await app.inject({ method, url });
  expect([refused.statusCode, refused.headers['allow']]).toEqual([405, allowed]);
  expect(refused.json().message).toBe(`${url.split('?')[0]} can be called with ${allowed} only`);
  const asked = await app.inject({ method: 'OPTIONS', url });
  expect([asked.statusCode, asked.headers['allow'], asked.body]).toEqual([204, allowed, '']);
});

test('OPTIONS is listed once where a route has it', async () => {
  expect((await app.inject('/asked')).headers['allow']).toBe('OPTIONS');
});

test.each([
  ['/none', 404],
  ['/things', 405],
])('%s is as long for HEAD as for GET, though both are refused', async (url, status) => {
  const [got, head] = await Promise.all([app.inject(url), app.inject({ method: 'HEAD', url })]);
  expect([head.statusCode, head.headers['content-length']]).toEqual([status, got.headers['content-length']]);
});

test('HEAD is answered like GET without the body, and like any request where there is no GET', async () => {
  const got = await app.inject('/things/a');
  const head = await app.inject({ method: 'HEAD', url: '/things/a' });
  expect([head.statusCode, head.body, head.headers['content-length']]).toEqual([
    200,
    '',
    got.headers['content-length'],
  ]);
  expect((await app.inject({ method: 'HEAD', url: '/things' })).statusCode).toBe(405);
  expect((await app.inject({ method: 'OPTIONS', url: '/nothing' })).statusCode).toBe(404);
});

test('an error may carry headers', async () => {
  const answer = await app.inject('/range');
  expect(answer.headers['retry-after']).toBe('1');
  expect(answer.json()).toEqual({ error: 'Out of range', message: 'too far' });
});

test.each([
  ['a pair of escapes', '{"name": "\\ud83d\\ude00"}', '\u{1F600}'],
  ['an escaped escape', '{"name": "\\\\ud800"}', '\\ud800'],
  ['a byte order mark', '\uFEFF{"name": "a"}', 'a'],
])('%s is text', async (_what, payload, name) => {
  expect((await post(payload)).json()).toMatchObject({ body: { name } });
});

test.each(['QUERY', 'PROPFIND', 'PATCH'])('%s without a content type is refused by the path alone', async (method) => {
  const answer = await app.inject({ method: method as 'PATCH', url: '/things', payload: '{}' });
  expect([answer.statusCode, answer.headers['allow']]).toEqual([405, 'OPTIONS, POST']);
});

test('valid requests pass, with names of any length that a service may have', async () => {
  expect((await post('{"name": "a", "count": 1}')).json()).toEqual({ body: { name: 'a', count: 1 }, polluted: false });
  const name = 'ä'.repeat(1500);
  expect((await app.inject(`/things/${encodeURIComponent(name)}`)).json()).toEqual({ name });
});

test('durations are counted by route, not by path', async () => {
  await app.inject('/things/a');
  const text = await metrics.metrics();
  expect(text).toMatch(/http_request_duration_seconds_count\{method="GET",route="\/things\/:name",code="200"\} \d/);
  expect(text).toContain('route="<unknown>",code="404"');
  expect(text).not.toContain('/things/a"');
});
