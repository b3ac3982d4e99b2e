import { createServer, type Server, type Socket } from 'node:net';
import { Agent, request } from 'undici';
import { afterAll, expect, test } from 'vitest';
import { AttemptError, outcomeOf } from './upstream-failure.ts';

const dispatcher = new Agent({ connect: { timeout: 300 } });
afterAll(() => dispatcher.destroy());

async function failureOf(url: string): Promise<unknown> {
  try {
    await request(url, { dispatcher, method: 'POST', body: 'x' });
  } catch (error) {
    return error;
  }
  throw new Error('It was answered');
}

async function serverThat(onConnection: (socket: Socket) => void): Promise<{ server: Server; url: string }> {
  const server = createServer(onConnection);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const address = server.address();
  return { server, url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}` };
}

test.each(['http://127.0.0.1:1', 'http://localhost:1'])(
  'nothing is sent to %s, where nobody accepts connections',
  async (url) => {
    expect(outcomeOf(await failureOf(url))).toMatchObject({
      code: 'UPSTREAM_UNREACHABLE',
      retryable: true,
      unsent: true,
      blame: 'service',
    });
  },
);

test('a name that cannot be looked up speaks against nobody', async () => {
  const failure = { code: 'UPSTREAM_UNREACHABLE', retryable: false, unsent: true, blame: 'unclear' };
  expect(outcomeOf(await failureOf('http://does-not-exist.invalid'))).toMatchObject(failure);
});

const UPGRADE = 'HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n';

test.each([
  [
    'resets',
    (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy()),
    'UPSTREAM_UNREACHABLE',
    true,
  ],
  ['closes', (socket: Socket) => void socket.once('data', () => socket.end()), 'UPSTREAM_UNREACHABLE', true],
  ['answers garbage', (socket: Socket) => void socket.end('garbage\r\n\r\n'), 'UPSTREAM_INVALID', false],
  ['switches protocols', (socket: Socket) => void socket.end(UPGRADE), 'UPSTREAM_INVALID', false],
])('something may have been sent to one that %s', async (...[, onConnection, code, retryable]) => {
  const { server, url } = await serverThat(onConnection);
  expect(outcomeOf(await failureOf(url))).toMatchObject({ code, retryable, unsent: false, blame: 'service' });
  server.close();
});

test.each(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EMFILE'])(
  'a connection that fails by %s is tried again',
  (code) => {
    const error = Object.assign(new Error(`connect ${code}`), { code, syscall: 'connect' });
    expect(outcomeOf(error)).toMatchObject({ code: 'UPSTREAM_UNREACHABLE', retryable: true, unsent: true });
  },
);

test.each(['ECONNRESET', 'EPIPE', 'ETIMEDOUT'])('a connection that breaks off by %s may have carried it', (code) => {
  const error = Object.assign(new Error(`write ${code}`), { code, syscall: 'write' });
  expect(outcomeOf(error)).toMatchObject({ code: 'UPSTREAM_UNREACHABLE', retryable: true, unsent: false });
});

test.each([
  { code: 'ECONNRESET', retryable: true },
  { code: 'CERT_HAS_EXPIRED', retryable: false },
  { code: 'ERR_TLS_CERT_ALTNAME_INVALID', retryable: false },
  { code: 'ERR_ASSERTION', retryable: false },
  { code: '', retryable: false },
])('an error of TLS with the code "$code" is tried again: $retryable', ({ code, retryable }) => {
  const outcome = outcomeOf(Object.assign(new Error(code), { code }));
  expect(outcome).toMatchObject({ code: 'UPSTREAM_UNREACHABLE', retryable });
});

test('one that took too long may have got it all, and is not asked again', () => {
  const failure = { code: 'UPSTREAM_TIMEOUT', blame: 'service' } as const;
  const late = new AttemptError(failure.code, failure.blame, 'nothing came within 1000 ms');
  const reason = 'nothing came within 1000 ms';
  expect(outcomeOf(late)).toEqual({ ...failure, retryable: false, unsent: false, reason });
});
