import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { ask, NoAnswerError } from '@rollcall/platform/outbound/exchange.ts';
import { createGuardedAgent } from '@rollcall/platform/outbound/guarded-agent.ts';
import { afterAll, expect, onTestFinished, test } from 'vitest';

const agent = createGuardedAgent({ mayConnect: () => true, connectTimeoutMs: 2000, keepAlive: false });
afterAll(() => agent.destroy());

/** A server that does to each connection what it is told, once the request's head has come. */
async function serve(answer: (socket: Socket) => void): Promise<URL> {
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => answer(socket));
  });
  onTestFinished(() => void server.close());
  return listen(server);
}

async function listen(server: Server): Promise<URL> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return new URL(`http://127.0.0.1:${address.port}/`);
}

async function failureOf(url: URL): Promise<NoAnswerError> {
  const question = { method: 'POST', url, body: 'amount=1', timeoutMs: 5000, limitBytes: 100 } as const;
  const error: unknown = await ask(agent, question, new AbortController().signal).catch((reason: unknown) => reason);
  if (!(error instanceof NoAnswerError)) throw new Error('there was an answer');
  return error;
}

test('an answer has its headers, of those that repeat the first', async () => {
  const url = await serve((socket) => {
    socket.end('HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nContent-Length: 2\r\n\r\nno');
  });
  const question = { method: 'PUT', url, timeoutMs: 5000, limitBytes: 100 } as const;
  const { status, headers, body } = await ask(agent, question, new AbortController().signal);
  expect({ status, body, after: headers['retry-after'], cookie: headers['set-cookie'] }).toEqual({
    status: 429,
    body: 'no',
    after: '7',
    cookie: 'a',
  });
});

test('a connection that is refused has sent nothing', async () => {
  const server = createServer();
  const url = await listen(server);
  server.close();
  await once(server, 'close');
  expect((await failureOf(url)).wasUnsent).toBe(true);
});

test('a name that does not exist has been sent nothing', async () => {
  expect((await failureOf(new URL('http://does-not-exist.invalid/'))).wasUnsent).toBe(true);
});

test.each<[string, (socket: Socket) => void]>([
  ['never answers', () => undefined],
  ['closes without an answer', (socket) => socket.end()],
  ['resets the connection', (socket) => socket.resetAndDestroy()],
  ['answers with garbage', (socket) => socket.end('garbage\r\n\r\n')],
  ['sends half of the body', (socket) => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf')],
])('a server that %s may have got the request', async (_what, answer) => {
  expect((await failureOf(await serve(answer))).wasUnsent).toBe(false);
});
