import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { Registry } from 'prom-client';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createLogger } from '../process/log.ts';
import { type App, createServer } from './server.ts';

const entries: { readonly reqId?: string; readonly msg?: string }[] = [];
let app: App;

beforeAll(async () => {
  app = createServer({
    log: createLogger('test', 'debug', { write: (line) => entries.push(JSON.parse(line) as object) }),
    metrics: new Registry(),
    bodyLimit: 10,
    closingLimitMs: 100,
    mapError: () => undefined,
  });
  app.get('/things/:name', () => 'thing');
  app.post('/things', ({ body }) => body);
  app.get('/fault', () => {
    throw new Error('fault');
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
});

afterAll(() => app.close());

/** @returns the one answer to what is sent, and its id. */
async function send(bytes: string): Promise<{ readonly text: string; readonly id: string }> {
  const socket = connect({ port: (app.server.address() as AddressInfo).port, host: '127.0.0.1' });
  let text = '';
  socket.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  socket.write(bytes);
  await once(socket, 'close');
  const ids = [...text.matchAll(/^x-request-id: (.*)\r$/gm)].map(([, id = '']) => id);
  expect(ids).toHaveLength(1);
  return { text, id: ids[0] ?? '' };
}

async function expectLogged(id: string): Promise<void> {
  await vi.waitFor(() => expect(entries.filter(({ reqId }) => reqId === id)).not.toEqual([]), { timeout: 30_000 });
}

const ENDS = 'host: h\r\nconnection: close\r\n';
const json = (body: string) => `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

test.each([
  ['an answer', `GET /things/a HTTP/1.1\r\n${ENDS}`, '\r\n', 200],
  ['an answer to HEAD', `HEAD /things/a HTTP/1.1\r\n${ENDS}`, '\r\n', 200],
  ['a fault', `GET /fault HTTP/1.1\r\n${ENDS}`, '\r\n', 500],
  ['no such path', `GET /none HTTP/1.1\r\n${ENDS}`, '\r\n', 404],
  ['a path that cannot be decoded', `GET /%zz HTTP/1.1\r\n${ENDS}`, '\r\n', 400],
  ['another method', `PUT /things HTTP/1.1\r\n${ENDS}`, '\r\n', 405],
  ['the methods of a path', `OPTIONS /things HTTP/1.1\r\n${ENDS}`, '\r\n', 204],
  ['no host', 'GET /things/a HTTP/1.1\r\nconnection: close\r\n', '\r\n', 400],
  ['an expectation', `GET /things/a HTTP/1.1\r\nexpect: more\r\n${ENDS}`, '\r\n', 417],
  ['a body that is too large', `POST /things HTTP/1.1\r\n${ENDS}`, json('"0123456789"'), 413],
  ['a body that is no JSON', `POST /things HTTP/1.1\r\n${ENDS}`, json('{'), 400],
  [
    'a type that nobody reads',
    `POST /things HTTP/1.1\r\n${ENDS}`,
    'content-type: a/b\r\ncontent-length: 1\r\n\r\na',
    415,
  ],
  ['another version', `GET /things/a HTTP/2.0\r\n${ENDS}`, '\r\n', 505],
  ['a tunnel', `CONNECT h:443 HTTP/1.1\r\n${ENDS}`, '\r\n', 501],
])("%s has its caller's id", async (...[what, head, rest, status]) => {
  const id = `id/of:${what.replaceAll(' ', '-')}`;
  const answer = await send(`${head}x-request-id: ${id}\r\n${rest}`);
  expect(answer).toEqual({ id, text: expect.stringMatching(new RegExp(`^HTTP/1\\.1 ${status} `)) });
  await expectLogged(id);
});

test.each([
  ['fields that are too large', `GET / HTTP/1.1\r\nhost: h\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`, 431],
  ['no HTTP', 'hello\r\n\r\n', 400],
  ['two lengths', 'POST /things HTTP/1.1\r\nhost: h\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n', 400],
])('%s, refused before it is a request, has a new id', async (_what, bytes, status) => {
  const { id, text } = await send(bytes);
  expect(text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  await expectLogged(id);
});

test.each([
  ['none', ''],
  ['an empty one', 'x-request-id:\r\n'],
  ['one with quotes', 'x-request-id: a","reqId":"b\r\n'],
  ['one with a space', 'x-request-id: a b\r\n'],
  ['one of other letters', 'x-request-id: ä\r\n'],
  ['one of 129 characters', `x-request-id: ${'a'.repeat(129)}\r\n`],
  ['two', 'x-request-id: a\r\nx-request-id: b\r\n'],
])('who sends %s gets a new one', async (_what, field) => {
  const answers = await Promise.all(
    ['GET /things/a', 'GET /none', 'CONNECT h:443'].map((line) => send(`${line} HTTP/1.1\r\n${ENDS}${field}\r\n`)),
  );
  for (const { id } of answers) expect(id).toMatch(/^[0-9a-f]{32}$/);
  expect(new Set(answers.map(({ id }) => id)).size).toBe(answers.length);
});
