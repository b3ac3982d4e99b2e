import { type AddressInfo, connect } from 'node:net';
import { Registry } from 'prom-client';
import { expect, onTestFinished, test } from 'vitest';
import { createLogger } from '../process/log.ts';
import { createServer } from './server.ts';

/**
 * Sends bytes to a server that waits 300 ms for what is not there in full.
 *
 * @returns all that comes back, and how it ended.
 */
async function exchange(bytes: string): Promise<{ readonly text: string; readonly end: string }> {
  const app = createServer({
    log: createLogger('test', 'silent'),
    metrics: new Registry(),
    bodyLimit: 1000,
    closingLimitMs: 100,
    mapError: () => undefined,
    requestTimeoutMs: 300,
    connectionsCheckingIntervalMs: 50,
  });
  // Node takes the longer one for that of bodies.
  app.server.headersTimeout = 300;
  app.get('/at-once', () => 'all');
  app.get('/begun', (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { 'content-type': 'text/plain' }).write('half');
  });
  app.get('/never', (_request, reply) => void reply.hijack());
  app.post('/taken', () => 'taken');
  onTestFinished(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const socket = connect({ port: (app.server.address() as AddressInfo).port, host: '127.0.0.1' });
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const end = new Promise<string>((resolve) => {
    socket.once('error', ({ message }) => resolve(message));
    socket.once('close', () => resolve('closed'));
  });
  socket.write(bytes);
  return { end: await end, text };
}

const get = (path: string) => `GET ${path} HTTP/1.1\r\nhost: x\r\n\r\n`;
const UPLOAD = 'POST /taken HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{';
const UNDECODABLE = 'POST /%zz HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{';

test.each([
  ['a body that does not come, behind an answer that has begun', get('/begun') + UPLOAD],
  ['one behind two of them', get('/begun') + get('/at-once') + UPLOAD],
  ['one to a path that cannot be decoded, behind one', get('/begun') + UNDECODABLE],
  ['one behind a request that waits for its answer', get('/never') + UPLOAD],
  ['a head that does not come, behind one', `${get('/never')}GET / HTTP/1.1\r\n`],
  ['no HTTP, behind one', `${get('/never')}what?\r\n\r\n`],
])('%s ends the connection: a refusal would be seen as the answer to something else', async (_what, bytes) => {
  const { text, end } = await exchange(bytes);
  expect(text).not.toMatch(/HTTP\/1\.1 4/);
  expect(end).toContain('ECONNRESET');
});

test.each([
  ['a body that does not come', UPLOAD, /^HTTP\/1\.1 408 /],
  ['one behind an answer that has ended', get('/at-once') + UPLOAD, /^HTTP\/1\.1 200 [^]*\r\n\r\nallHTTP\/1\.1 408 /],
  ['no HTTP, behind one', `${get('/at-once')}what?\r\n\r\n`, /^HTTP\/1\.1 200 [^]*\r\n\r\nallHTTP\/1\.1 400 /],
])('%s is refused where nothing else is under way', async (_what, bytes, answers) => {
  const { text, end } = await exchange(bytes);
  expect(text).toMatch(answers);
  expect(end).toBe('closed');
});

const post = (field: string) => `POST /unknown HTTP/1.1\r\nhost: x\r\n${field}\r\n\r\n`;

test.each([
  ['a body of no chunks', `${post('transfer-encoding: chunked')}zz\r\n`, 404],
  ['a body of an unknown coding', `${post('transfer-encoding: identity')}{}`, 501],
  ['a body that does not come', post('content-length: 100'), 404],
])('%s ends the connection where its request has been answered', async (_what, bytes, status) => {
  const { text, end } = await exchange(bytes);
  expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  expect(end).toBe('closed');
});
