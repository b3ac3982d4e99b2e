import { Agent, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { type App, createServer } from '@rollcall/platform/http/server.ts';
import { createLogger } from '@rollcall/platform/log.ts';
import { createMetrics } from '@rollcall/platform/metrics.ts';
import { sleep } from '@rollcall/platform/retry.ts';
import { beforeEach, expect, onTestFinished, test } from 'vitest';

let app: App;
let port: number;

beforeEach(async () => {
  app = createServer({
    log: createLogger('test', 'silent'),
    metrics: createMetrics('test'),
    bodyLimit: 1000,
    mapError: () => undefined,
  });
  app.get('/quick', () => ({ ok: true }));
  app.get('/slow', async () => {
    await sleep(500);
    return { ok: true };
  });
  await app.listen({ host: '127.0.0.1', port: 0 });
  const address = app.server.address();
  port = typeof address === 'object' && address !== null ? address.port : 0;
  return () => app.close();
});

interface Answer {
  readonly status: number | undefined;
  readonly localPort: number | undefined;
  readonly body: string;
}

function get(path: string, agent: Agent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = httpRequest({ port, host: '127.0.0.1', path, agent }, (response) => {
      const { localPort } = response.socket;
      text(response).then((body) => resolve({ status: response.statusCode, localPort, body }), reject);
    });
    sent.once('error', reject).end();
  });
}

function keepAliveAgent(): Agent {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  return agent;
}

/** Sends bytes and returns all that comes back until the server closes. */
async function exchangeRaw(bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1' });
  socket.write(bytes);
  return text(socket);
}

test('a connection is kept and reused, longer than proxies keep theirs', async () => {
  const agent = keepAliveAgent();
  const answers = [await get('/quick', agent), await get('/quick', agent), await get('/nothing', agent)];
  expect(new Set(answers.map(({ localPort }) => localPort)).size).toBe(1);
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 404]);
  expect(app.server.keepAliveTimeout).toBeGreaterThan(60_000);
});

test('closing answers what is under way and waits for no connection that is idle or becomes so', async () => {
  const [busy, idle] = [keepAliveAgent(), keepAliveAgent()];
  await get('/quick', idle);
  const slow = get('/slow', busy);
  await sleep(100);
  const startedAt = performance.now();
  const closed = app.close();
  expect((await slow).status).toBe(200);
  await closed;
  expect(performance.now() - startedAt).toBeLessThan(2000);
  await expect(get('/quick', idle)).rejects.toThrow(/ECONNREFUSED|ECONNRESET|socket hang up/);
});

test.each([
  ['no HTTP', 'hello\r\n\r\n', 400],
  ['a header that never ends', `GET /quick HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`, 431],
  ['two different lengths', 'POST /quick HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab', 400],
])('%s is answered in the shape of the contract and closed', async (_what, bytes, status) => {
  const answer = await exchangeRaw(bytes);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  const [, body = ''] = answer.split('\r\n\r\n');
  expect(JSON.parse(body)).toEqual({ error: 'Invalid request', message: expect.any(String) });
});
