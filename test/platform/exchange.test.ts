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

test('what comes after the limit is not read, and its connection is closed', async () => {
  const closed = Promise.withResolvers<void>();
  const url = await serve((socket) => {
    socket.on('close', () => closed.resolve());
    socket.write(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n96\r\n${'é'.repeat(75)}\r\n`);
  });
  const question = { method: 'GET', url, timeoutMs: 5000, limitBytes: 100 } as const;
  const { status, body, cut } = await ask(agent, question, new AbortController().signal);
  expect({ status, body, cut }).toEqual({ status: 200, body: 'é'.repeat(50), cut: true });
  await closed.promise;
});

test('an interim answer is passed over, and the parts of a body are put together', async () => {
  const url = await serve((socket) => {
    socket.write(
      'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\xc3',
      'latin1',
    );
    setImmediate(() => socket.end(Buffer.from([0xa9, 0xc3, 0xa9])));
  });
  const question = { method: 'GET', url, timeoutMs: 5000, limitBytes: 100 } as const;
  const { status, headers, body, isUtf8, cut } = await ask(agent, question, new AbortController().signal);
  expect({ status, link: headers['link'], body, isUtf8, cut }).toEqual({
    status: 200,
    link: undefined,
    body: 'éé',
    isUtf8: true,
    cut: false,
  });
});

test('who does not wait any more closes the connection, and gets the reason', async () => {
  const arrived = Promise.withResolvers<Socket>();
  const url = await serve((socket) => arrived.resolve(socket));
  const leaving = new AbortController();
  const question = { method: 'GET', url, timeoutMs: 60_000, limitBytes: 100 } as const;
  const answer = ask(agent, question, leaving.signal).catch((reason: unknown) => reason);
  const closed = once(await arrived.promise, 'close');
  leaving.abort('gone');
  expect(await answer).toBe('gone');
  await closed;
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
