import { type AddressInfo, connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { createLogger } from '@rollcall/platform/process/log.ts';
import { createMetrics } from '@rollcall/platform/process/metrics.ts';
import { expect, onTestFinished, test } from 'vitest';
import { buildApp } from './app.ts';

/** Sends bytes to a gateway without routes and returns all that comes back until it closes. */
async function exchange(bytes: string): Promise<string> {
  const app = await buildApp({
    log: createLogger('test', 'silent'),
    metrics: createMetrics('test'),
    version: '1',
    bodyLimit: 1000,
    routes: [],
    corsOrigins: new Set(),
    accessLog: undefined,
    tracing: undefined,
    closingLimitMs: 100,
    isStopping: () => true,
  });
  onTestFinished(() => app.close());
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(bytes);
  return text(socket);
}

test.each([
  [417, 'EXPECTATION_FAILED', 'POST / HTTP/1.1\r\nhost: x\r\nexpect: wonders\r\ncontent-length: 0'],
  [404, 'PATH_NOT_FOUND', 'GET / HTTP/1.1\r\nhost: x'],
  [400, 'INVALID_PATH', 'GET /%zz HTTP/1.1\r\nhost: x\r\nconnection: close'],
  [400, 'INVALID_REQUEST', 'hello'],
  [431, 'HEADERS_TOO_LARGE', `GET / HTTP/1.1\r\nhost: x\r\nx: ${'y'.repeat(20_000)}`],
])('what no route sees is answered in the shape of the gateway: %i %s', async (status, code, head) => {
  const [answered = '', body = ''] = (await exchange(`${head}\r\n\r\n`)).split('\r\n\r\n');
  expect(answered).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
  expect(answered).toMatch(/^content-type: application\/json/m);
  expect(JSON.parse(body)).toEqual({ error: { code, message: expect.any(String), details: {} } });
});
