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
      unsent: true,
      blame: 'service',
    });
  },
);

test('a name that cannot be looked up speaks against nobody', async () => {
  const failure = { code: 'UPSTREAM_UNREACHABLE', retryable: false, unsent: true, blame: 'unclear' };
  expect(outcomeOf(await failureOf('http://does-not-exist.invalid'))).toMatchObject(failure);
});

test.each([
  ['resets', (socket: Socket) => void socket.once('data', () => socket.resetAndDestroy()), 'UPSTREAM_UNREACHABLE'],
  ['answers garbage', (socket: Socket) => void socket.end('garbage\r\n\r\n'), 'UPSTREAM_INVALID'],
])('something may have been sent to one that %s', async (_, onConnection, code) => {
  const { server, url } = await serverThat(onConnection);
  expect(outcomeOf(await failureOf(url))).toMatchObject({ code, unsent: false, blame: 'service' });
  server.close();
});

test('one that took too long may have got it all, and is not asked again', () => {
  const failure = { code: 'UPSTREAM_TIMEOUT', blame: 'service' } as const;
  const late = new AttemptError(failure.code, failure.blame, 'nothing came within 1000 ms');
  const reason = 'nothing came within 1000 ms';
  expect(outcomeOf(late)).toEqual({ ...failure, retryable: false, unsent: false, reason });
});
